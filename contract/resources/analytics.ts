// Statistics: what sites served, over time and by site, node and status.
import Type, { type Static } from 'typebox';
import { FAILURE_CAUSES } from '../failure-causes.ts';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, Timestamp } from '../scalars/common.ts';
import { RULE_EVENTS } from './rule-hits.ts';

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Ranges with the length of a point and of the whole, in seconds. */
export const RANGES = {
  '1h': { bucketSeconds: MINUTE, seconds: HOUR },
  '6h': { bucketSeconds: 5 * MINUTE, seconds: 6 * HOUR },
  '24h': { bucketSeconds: 10 * MINUTE, seconds: DAY },
  '7d': { bucketSeconds: HOUR, seconds: 7 * DAY },
  '30d': { bucketSeconds: 6 * HOUR, seconds: 30 * DAY },
  '90d': { bucketSeconds: DAY, seconds: 90 * DAY },
  '365d': { bucketSeconds: DAY, seconds: 365 * DAY },
} as const;
export type AnalyticsRange = keyof typeof RANGES;
export const ANALYTICS_RANGES = Object.keys(RANGES) as AnalyticsRange[];

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const counted = (description: string) => ({ ...Count, description });

const Percentile = Nullable(Count);
/** Percentiles of a duration; `of` says of which. */
const Latency = (of: string) =>
  Type.Object(
    { p50Ms: Percentile, p95Ms: Percentile, p99Ms: Percentile },
    {
      description:
        `${of}. Each percentile in ms is the upper bound of its bucket: at most twice the value from 1 ms on, at most ` +
        '32768. null: nothing was timed.',
    },
  );

const COUNTS = {
  requests: Count,
  bytesSent: counted('Bytes sent to clients, with headers.'),
  bytesReceived: counted('Bytes received from clients, with headers.'),
  cacheHits: counted('Responses with `X-Cache` HIT, STALE, UPDATING or REVALIDATED.'),
  cacheMisses: counted('Responses with `X-Cache` MISS or EXPIRED. BYPASS is neither a hit nor a miss.'),
  status1xx: Count,
  status2xx: Count,
  status3xx: Count,
  status4xx: Count,
  status5xx: Count,
  blocked: counted('Requests blocked by bans, IP lists, rules, rate limits, CC mitigation or the WAF.'),
  challengesIssued: counted('Challenges shown instead of a response.'),
  challengesPassed: Count,
  failures: Type.Array(Type.Object({ cause: OneOf(FAILURE_CAUSES), requests: Count }), {
    description: 'Requests that failed with status 5xx, by cause, most first, from nodes with `statistics-v1`.',
  }),
  latency: Latency('Time to the end of a response, without tunnels'),
  originLatency: Latency('Time from a request to an origin to the end of its headers, from nodes with `statistics-v1`'),
};

export const TrafficPoint = Type.Object({ start: Timestamp, ...COUNTS });
export type TrafficPoint = Static<typeof TrafficPoint>;
const TrafficSums = Type.Object({
  ...COUNTS,
  peakBytesPerSecond: {
    ...Type.Number({ minimum: 0 }),
    description: '`bytesSent` of the largest point, per second of a point.',
  },
});
export type TrafficSums = Static<typeof TrafficSums>;

export const TopItem = Type.Object({
  id: Id,
  name: { ...Type.String(), description: 'Current or last name; empty: unknown.' },
  parentId: { ...Nullable(Id), description: 'Cluster; null: the site or node was deleted.' },
  parentName: Nullable(Type.String()),
  requests: Count,
  bytesSent: Count,
  cacheHits: Count,
  cacheMisses: Count,
});
export type TopItem = Static<typeof TopItem>;

export const BROWSERS = [
  'chrome',
  'edge',
  'safari',
  'firefox',
  'opera',
  'samsung',
  'yandex',
  'uc',
  'qq',
  'wechat',
  'ie',
  'webview',
  'crawler',
  'other',
] as const;
export const SYSTEMS = ['windows', 'macos', 'ios', 'android', 'linux', 'chromeos', 'harmonyos', 'other'] as const;
export const DEVICES = ['desktop', 'mobile', 'tablet', 'crawler', 'other'] as const;
export const HTTP_VERSIONS = ['1.0', '1.1', '2', '3', 'other'] as const;
export const TLS_VERSIONS = ['1.2', '1.3', 'none', 'other'] as const;

/** Requests by one of a few names, most first; those without requests are left out. */
const Shares = <T extends string>(description: string, names: readonly T[]) =>
  Type.Array(Type.Object({ name: OneOf(names), requests: Count }), { description });

export const TOP_SORT = ['requests', 'bytesSent'] as const;
export const BreakdownItem = Type.Object({
  id: { ...Id, description: 'Site, node or status.' },
  name: { ...Type.String(), description: 'Current or last name; empty: unknown.' },
  parent: { ...Nullable(Type.String()), description: 'Name of the cluster; null for a status.' },
  total: Count,
  series: Type.Array(Count, { description: 'One value for each of `times`.' }),
});
export type BreakdownItem = Static<typeof BreakdownItem>;

const AT_LEAST = {
  requests: counted('At least so many.'),
  bytesSent: counted('Bytes sent to clients for them, with headers.'),
};
export const TopRequest = Type.Object({
  value: { ...Type.String(), description: 'Host and path without the query (url), or the address of a client (ip).' },
  ...AT_LEAST,
});
export type TopRequest = Static<typeof TopRequest>;
/** What became of requests under a rule, in the order of RuleEvent of the messages. */
export const RULE_RESULTS = [...RULE_EVENTS, 'matched'] as const;
export const TopRule = Type.Object({
  ruleId: { ...Type.String(), description: 'Rule, or number of a rule of the WAF.' },
  kind: OneOf(['site', 'platform', 'waf'], {
    description: 'Whether it is a rule of the site, a global rule, or one of the WAF.',
  }),
  name: { ...Nullable(Type.String()), description: 'null: the rule was deleted, or is one of the WAF.' },
  result: OneOf(RULE_RESULTS, { description: 'As `event` of the hits of rules; matched: a rule of the WAF.' }),
  requests: Count,
});
export type TopRule = Static<typeof TopRule>;
export const TOP_REQUESTS_BY = ['url', 'ip'] as const;
const APPROXIMATE =
  'Approximate: each node keeps the 64 heaviest of a site and minute, so that light ones may be missing and counts are at least ' +
  'that high. From nodes with `top-lists-v1`.';
const unlisted = {
  ...Count,
  description:
    'Active nodes without `top-lists-v1`: their requests are in no such list. With `siteId`, those of the cluster of the site.',
};
/** Sites of one call: more than a page of any list has. */
export const MAX_SPARK_SITES = 100;
/** Points of an hour. */
export const SPARK_POINTS = 24;

const Sparkline = Type.Object({
  siteId: Id,
  requests: Type.Array(Count, { description: 'One value per hour, oldest first; the last hour is the running one.' }),
  failed: Type.Array(Count, { description: 'Of them, responses with status 5xx.' }),
});

export const BREAKDOWN_BY = ['site', 'node', 'status'] as const;

const range = Type.Optional(
  OneOf(ANALYTICS_RANGES, {
    description:
      'Time before now, with points of 1 minute (1h), 5 minutes (6h), 10 minutes (24h), 1 hour (7d), 6 hours (30d) or 1 UTC ' +
      'day (90d, 365d). Default 24h.',
  }),
);
/** A period of one's own in place of `range`. */
const period = {
  range,
  from: Type.Optional({
    ...Timestamp,
    description:
      'Start of a period of your own, with `to` and without `range`. Points get the shortest length that is kept.',
  }),
  to: Type.Optional({ ...Timestamp, description: 'End of that period. Both are widened to whole points.' }),
};
const siteId = Type.Optional({ ...Id, description: 'Only this site, which may be deleted. Default: all sites.' });
const clusterId = Type.Optional({
  ...Id,
  description: 'Only the sites of this cluster, counted since clusters are; without `siteId`.',
});
const metric = Type.Optional(OneOf(TOP_SORT, { description: 'Amount to sort and sum by. Default requests.' }));
const span = {
  range: Nullable(OneOf(ANALYTICS_RANGES, { description: 'null: `from` and `to` were given.' })),
  bucketSeconds: { ...Type.Integer({ minimum: MINUTE, maximum: DAY }), description: 'Length of a point in seconds.' },
  from: { ...Timestamp, description: 'Start of the first point.' },
  to: { ...Timestamp, description: 'Exclusive end of the last point, which is the running one.' },
};
const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

const top = {
  input: Input({
    ...period,
    clusterId: Type.Optional({ ...Id, description: 'Only those that are of this cluster now.' }),
    metric,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 5, description: 'Most items.' })),
  }),
  output: Page(TopItem),
};

export const analytics = resource('analytics', {
  traffic: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/traffic',
    summary: 'Returns the traffic of one site or of all over time, with totals and those of the previous period.',
    input: Input({
      ...period,
      siteId,
      clusterId,
      compare: Type.Optional(Type.Boolean({ description: 'Whether to return `previousPoints`.' })),
    }),
    output: Type.Object({
      ...span,
      points: Type.Array(TrafficPoint, { description: 'All points of the range, also those without traffic.' }),
      totals: TrafficSums,
      statuses: Type.Array(Type.Object({ status: Type.Integer({ minimum: 100, maximum: 599 }), requests: Count }), {
        description: 'Requests of the range by exact status, most frequent first.',
      }),
      previous: {
        ...Nullable(TrafficSums),
        description: 'Totals of the period of the same length before `from`. null: it is not kept (365d).',
      },
      previousPoints: {
        ...Nullable(Type.Array(TrafficPoint)),
        description: 'With `compare`, as many points of the period before; null without, or if it is not kept.',
      },
    }),
    errors: ['ANALYTICS_PERIOD_INVALID', 'ANALYTICS_QUERY_INVALID'],
  }),
  topSites: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/top-sites',
    summary: 'Lists the sites with the most traffic in a range.',
    ...top,
    errors: ['ANALYTICS_PERIOD_INVALID'],
  }),
  topNodes: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/top-nodes',
    summary: 'Lists the nodes with the most traffic of sites in a range.',
    ...top,
    errors: ['ANALYTICS_PERIOD_INVALID'],
  }),
  topRequests: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/top-requests',
    summary: 'Lists the URLs or the client addresses with the most requests in a range, approximately.',
    input: Input({
      ...period,
      by: Type.Optional(OneOf(TOP_REQUESTS_BY, { description: 'URLs or client addresses. Default url.' })),
      siteId,
      clusterId,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'Most items.' })),
    }),
    output: Type.Object({
      range: span.range,
      from: { ...Timestamp, description: 'Start of the first list: whole hours or UTC days for long or old periods.' },
      to: { ...Timestamp, description: 'Exclusive end of the last list.' },
      items: Type.Array(TopRequest, { description: `Most requests first. ${APPROXIMATE}` }),
      unsupportedNodes: unlisted,
    }),
    errors: ['ANALYTICS_PERIOD_INVALID', 'ANALYTICS_QUERY_INVALID'],
  }),
  topRules: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/top-rules',
    summary:
      'Lists the rules that matched most in a range: of one site with its WAF, or the global rules on all sites.',
    input: Input({
      ...period,
      siteId: Type.Optional({
        ...Id,
        description: 'The site, which may be deleted. Default: global rules on all sites.',
      }),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 20, description: 'Most items.' })),
    }),
    output: Type.Object({
      range: span.range,
      from: { ...Timestamp, description: 'Start of the counts, at most 30 days ago. Hours count as a whole.' },
      to: { ...Timestamp, description: 'Exclusive end of the counts.' },
      items: Type.Array(TopRule, {
        description:
          'Most requests first. Approximate: nodes count only the rules that matched most in each minute, and report within ' +
          '2 minutes.',
      }),
      unsupportedNodes: {
        ...Count,
        description:
          'Active nodes without `rule-log-v1`, which count no rules. With `siteId`, those of the cluster of the site.',
      },
    }),
    errors: ['ANALYTICS_PERIOD_INVALID'],
  }),
  dimensions: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/dimensions',
    summary: 'Returns the requests of a range by browser, protocol, country, network, referrer and more.',
    input: Input({ ...period, siteId, clusterId }),
    output: Type.Object({
      range: span.range,
      from: span.from,
      to: span.to,
      requests: { ...Count, description: 'All requests, also those of nodes in `unsupportedNodes`.' },
      browsers: Shares('Browser, as the `User-Agent` field says.', BROWSERS),
      systems: Shares('Operating system, as the `User-Agent` field says.', SYSTEMS),
      devices: Shares('Kind of device, as the `User-Agent` field says.', DEVICES),
      httpVersions: Shares('HTTP version.', HTTP_VERSIONS),
      tlsVersions: Shares('TLS version of the connection; `none`: plain HTTP.', TLS_VERSIONS),
      blockReasons: Type.Array(
        Type.Object({
          name: { ...Type.String(), description: 'Such as `ban`, `waf`, `rate-limit`.' },
          requests: Count,
        }),
        { description: 'Blocked requests by what blocked them, most first.' },
      ),
      challenges: Type.Object({ issued: Count, passed: Count }),
      countries: Type.Array(
        Type.Object({ country: { ...Type.String(), description: 'ISO 3166-1 code of two letters.' }, ...AT_LEAST }),
        { description: `Countries of clients, from nodes with a GeoIP database, most requests first. ${APPROXIMATE}` },
      ),
      networks: Type.Array(
        Type.Object({
          asn: { ...Count, description: 'Number of the autonomous system.' },
          name: Type.String(),
          ...AT_LEAST,
        }),
        { description: 'The 50 networks of clients with the most requests, as `countries`.' },
      ),
      referrers: Type.Array(
        Type.Object({ host: { ...Type.String(), description: 'Host of the `Referer` field.' }, ...AT_LEAST }),
        { description: 'The 50 referring hosts with the most requests, as `countries`.' },
      ),
      unsupportedNodes: {
        ...Count,
        description:
          'Active nodes without `statistics-v1`: they count block reasons and challenges, and nothing else of this. With ' +
          '`siteId`, those of the cluster of the site.',
      },
      unlistedNodes: unlisted,
    }),
    errors: ['ANALYTICS_PERIOD_INVALID', 'ANALYTICS_QUERY_INVALID'],
  }),
  sparklines: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/sparklines',
    summary: 'Returns the requests and failed requests of up to 100 sites by hour over the last 24 hours.',
    input: Input({
      siteIds: Type.Array(
        Type.String({
          pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
          examples: ['0199f2c4-7a10-7c3e-9a55-2f1d6c0b8e21'],
        }),
        {
          minItems: 1,
          maxItems: MAX_SPARK_SITES,
          uniqueItems: true,
          description: 'IDs of the sites, separated by commas.',
        },
      ),
    }),
    output: Type.Object({
      from: { ...Timestamp, description: 'Start of the first point.' },
      bucketSeconds: span.bucketSeconds,
      sites: Type.Array(Sparkline, { description: 'Sites with requests in this time.' }),
    }),
    errors: [],
  }),
  breakdown: procedure({
    ...reads,
    access: 'operator',
    path: '/analytics/breakdown',
    summary: 'Returns the traffic of a range over time by site, node or status.',
    input: Input({
      ...period,
      by: OneOf(BREAKDOWN_BY),
      siteId,
      clusterId,
      metric,
      statusClass: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 5, description: 'Only responses with this first digit of the status.' }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, default: 10, description: 'Most items.' })),
    }),
    output: Type.Object({
      ...span,
      times: Type.Array(Timestamp, { description: 'Starts of the points.' }),
      items: Type.Array(BreakdownItem, { description: 'Items with the most, most first.' }),
      total: { ...Count, description: 'Sum over all items, also those that are not listed.' },
      totalSeries: Type.Array(Count),
    }),
    errors: ['ANALYTICS_PERIOD_INVALID', 'ANALYTICS_QUERY_INVALID'],
  }),
});
