// Health of the origins of a site, as the nodes of its cluster see it.
import Type from 'typebox';
import { LATENCY_BOUNDS_MS, LATENCY_BUCKETS } from '../latency-buckets.ts';
import { ORIGIN_FAILURES, TRAFFIC_FAILURES } from '../origin-failures.ts';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { Origin } from './site-origins.ts';

/** Entries of one origin, at most. */
export const MAX_HEALTH_ENTRIES = 200;

const LastFailure = {
  lastError: { ...Nullable(Type.String()), description: 'The latest failure in words; null: none is known.' },
  lastErrorCode: Nullable(OneOf(ORIGIN_FAILURES)),
  lastErrorParams: Type.Object(
    {
      status: Type.Optional(Type.Integer({ description: 'Status of the response, with upstream_status.' })),
      host: Type.Optional(Type.String({ description: 'Host name without an address, with dns_failed.' })),
      address: Type.Optional(Type.String({ description: 'Address of the origin, with address_forbidden.' })),
    },
    { additionalProperties: false },
  ),
  lastFailureAt: Nullable(Timestamp),
};

export const OriginNodeHealth = Type.Object({
  nodeId: Id,
  nodeName: Type.String(),
  source: OneOf(['passive', 'active'], {
    description: 'passive: failures of requests; active: failures of checks that the node makes by itself.',
  }),
  healthy: Type.Boolean({ description: 'Whether the origin receives requests, as far as this source says.' }),
  consecutiveFailures: Type.Integer({ minimum: 0 }),
  ...LastFailure,
  downSince: Nullable(Timestamp),
  downUntil: {
    ...Nullable(Timestamp),
    description: 'passive: the next request to the origin; active: the end of the mark if checks stop. null: up.',
  },
  lastCheckAt: { ...Nullable(Timestamp), description: 'Latest check of an origin that fails; null: it does not.' },
  checkIntervalSeconds: {
    ...Nullable(Type.Integer({ minimum: 1 })),
    description: 'Real interval of the checks, if the node or the address has its limit of checks; null: as set.',
  },
  reportedAt: Timestamp,
});

const Percentile = (name: string) => ({
  ...Nullable(Type.Integer({ minimum: 1, maximum: LATENCY_BOUNDS_MS.at(-1)! })),
  description:
    `${name} of the time from sending the request until the response headers were complete, in milliseconds, as the ` +
    'upper bound of its bucket: at most twice the real value from 1 ms on. The maximum means at least that. null: no response.',
});

export const OriginTraffic = Type.Object({
  requests: Type.Integer({ minimum: 0, description: 'Requests in the last minute. Each try at the origin counts.' }),
  failures: Type.Array(Type.Object({ error: OneOf(TRAFFIC_FAILURES), count: Type.Integer({ minimum: 1 }) }), {
    maxItems: TRAFFIC_FAILURES.length,
    description:
      'Failed requests by class, most frequent first. upstream_status: any 5xx; connections_in_use: the node had no ' +
      'connection left for the origin. A response that breaks off counts, too.',
  }),
  p50Ms: Percentile('Median'),
  p95Ms: Percentile('95th percentile'),
  latency: Type.Array(Type.Integer({ minimum: 0 }), {
    maxItems: LATENCY_BUCKETS,
    description:
      `Responses in each bucket of that time. Upper bounds in milliseconds: ${LATENCY_BOUNDS_MS.join(', ')}; ` +
      'the last bucket has no bound.',
  }),
  nodes: Type.Integer({ minimum: 1, description: 'Online nodes that reported requests.' }),
});

export const OriginHealth = Type.Object({
  address: Origin.properties.address,
  scheme: Origin.properties.scheme,
  port: Origin.properties.port,
  backup: Origin.properties.backup,
  group: Origin.properties.group,
  downNodes: Type.Integer({ minimum: 0, description: 'Online nodes on which the origin is down by either source.' }),
  onlineNodes: Type.Integer({ minimum: 0, description: 'Online nodes of the cluster.' }),
  totalNodes: Type.Integer({
    minimum: 0,
    description: 'Enabled nodes of the cluster. The health on those that are not online is unknown.',
  }),
  ...LastFailure,
  traffic: {
    ...Nullable(OriginTraffic),
    description:
      'Requests of all online nodes in the last minute, without checks. null: no node reported any. Each node reports the ' +
      '200 origins with the most failures, then the most requests.',
  },
  nodes: Type.Array(OriginNodeHealth, {
    maxItems: MAX_HEALTH_ENTRIES,
    description: `One entry for each online node and source, unhealthy ones first, at most ${MAX_HEALTH_ENTRIES}.`,
  }),
});

export const originHealth = resource('sites', {
  originHealth: procedure({
    method: 'GET',
    path: '/sites/{id}/origin-health',
    summary: 'Lists the origins of a site in their order, with their health on each online node.',
    input: Input({ id: Id }),
    output: Type.Object({ items: Type.Array(OriginHealth), total: Type.Integer({ minimum: 0 }) }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
