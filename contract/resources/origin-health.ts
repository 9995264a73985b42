// Health of the origins of a site, as the nodes of its cluster see it.
import Type from 'typebox';
import { ORIGIN_FAILURES } from '../origin-failures.ts';
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
