// Rows of request logs: found, counted and exported.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, PageCursor, Timestamp } from '../scalars/common.ts';
import { Job } from './jobs.ts';

export const CACHE_STATUSES = ['HIT', 'MISS', 'BYPASS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED'] as const;
export const BLOCK_REASONS = [
  'ip_banned',
  'ip_blocked',
  'rule',
  'rate_limit',
  'crs',
  'cc',
  'challenge',
  'client_cert',
  'maintenance',
  'path',
] as const;
export const LOG_TOP_FIELDS = [
  'path',
  'host',
  'clientIp',
  'status',
  'method',
  'cacheStatus',
  'country',
  'asn',
  'userAgent',
  'referer',
  'blockReason',
  'upstream',
  'errorCode',
] as const;
export const LOG_FORMATS = ['csv', 'ndjson'] as const;
/** Times further ahead than this are none. */
export const LOG_AHEAD_MS = 5 * 60_000;
const MAX_STATUS = 599;
const MAX_ASN = 4_294_967_295;
const MAX_DURATION = 86_400_000;

const text = Nullable(Type.String());
export const LogEntry = Type.Object({
  id: { ...Id, description: 'ID of the row.' },
  time: { ...Timestamp, description: 'When the request was complete.' },
  nodeId: Id,
  nodeName: { ...text, description: 'null: the node was deleted.' },
  siteId: Id,
  clientIp: text,
  method: Type.String(),
  host: Type.String(),
  path: { ...Type.String(), description: 'As the client sent it, without the query.' },
  status: { ...Type.Integer(), description: '0: no response began to leave.' },
  bytesSent: Type.Integer(),
  requestBytes: { ...Type.Integer(), description: 'Bytes received from the client.' },
  durationMs: Type.Integer(),
  sampleRate: {
    ...Type.Integer(),
    description: 'Sample rate of the row in parts per 10,000: it stands for 10,000 / `sampleRate` requests.',
  },
  requestId: { ...text, description: 'Request ID; a client may choose its own.' },
  cacheStatus: { ...Nullable(OneOf(CACHE_STATUSES)), description: 'null: the site has no cache.' },
  ja4: text,
  wafRuleIds: Type.Array(Type.Integer(), { description: 'At most 16.' }),
  wafBlocked: Type.Boolean(),
  userAgent: text,
  referer: { ...text, description: 'Without query and fragment.' },
  ruleIds: Type.Array(Type.String(), {
    description: 'Rules that matched, at most 8; those of the platform begin with `platform:`.',
  }),
  peerIp: { ...text, description: 'Address of the connection; null unless `logPeer` is on.' },
  httpVersion: text,
  scheme: OneOf(['http', 'https']),
  country: text,
  asn: Nullable(Type.Integer()),
  asName: text,
  upstreamAddr: { ...text, description: 'Address of the origin; null: none was connected.' },
  upstreamStatus: Nullable(Type.Integer()),
  upstreamMs: { ...Nullable(Type.Integer()), description: 'Time until the response header of the origin, in ms.' },
  contentType: text,
  tlsVersion: text,
  blockReason: {
    ...Nullable(OneOf(BLOCK_REASONS)),
    description: 'Why the node refused the request; null: it did not.',
  },
  blockRuleId: text,
  query: { ...text, description: 'null unless `logQuery` is on.' },
  headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  errorCode: { ...text, description: 'Code of a response that the node itself made, as in `X-Svc-Error`.' },
});
export type LogEntry = Static<typeof LogEntry>;

export const LogHistogramPoint = Type.Object({
  start: Timestamp,
  rows: Type.Integer({ description: 'Rows of the log.' }),
  requests: Type.Integer({ description: 'Requests that the rows stand for, by their sample rates.' }),
  clientErrors: Type.Integer({ description: 'Of the requests, those with a status of 4xx.' }),
  serverErrors: Type.Integer({ description: 'Of the requests, those with a status of 5xx.' }),
  blocked: Type.Integer({ description: 'Of the requests, those that nodes refused.' }),
});
export type LogHistogramPoint = Static<typeof LogHistogramPoint>;

export const LogTopValue = Type.Object({
  value: text,
  rows: Type.Integer({ description: 'Rows of the log.' }),
  requests: Type.Integer({ description: 'Requests that the rows stand for, by their sample rates.' }),
});
export type LogTopValue = Static<typeof LogTopValue>;

const range = {
  from: { ...Timestamp, description: 'Start, not before the first day that is kept.' },
  to: { ...Timestamp, description: 'Exclusive end, at most 5 minutes ahead.' },
};
export const LogFilter = {
  status: Type.Optional(Type.Integer({ minimum: 100, maximum: MAX_STATUS })),
  statusClass: Type.Optional(Type.Integer({ minimum: 1, maximum: 5, description: '5: 500 to 599.' })),
  ip: Type.Optional(Type.String({ maxLength: 64, examples: ['203.0.113.7'], description: 'Address of the client.' })),
  cidr: Type.Optional(Type.String({ maxLength: 64, examples: ['203.0.113.0/24'] })),
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 32 })),
  host: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
  path: Type.Optional(Type.String({ minLength: 1, maxLength: 2048, description: 'Beginning of the path.' })),
  requestId: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Exact request ID.' })),
  cacheStatus: Type.Optional(OneOf(CACHE_STATUSES)),
  blockReason: Type.Optional(OneOf([...BLOCK_REASONS, 'any'], { description: 'any: every request that was refused.' })),
  country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', examples: ['DE'] })),
  asn: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ASN })),
  ua: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'Part of the user agent, case-insensitive.' }),
  ),
  referer: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'Part of the referer, case-insensitive.' }),
  ),
  minDuration: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_DURATION, description: 'Milliseconds.' })),
  ja4: Type.Optional(Type.String({ minLength: 1, maxLength: 36 })),
};

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;
const estimated = Type.Boolean({
  description: 'Whether `requests` is an estimate, because some of the rows are of a sample.',
});
const errors = ['SITE_NOT_FOUND', 'LOG_RANGE_INVALID', 'LOG_FILTER_INVALID', 'LOG_QUERY_TOO_LARGE'] as const;

export const logs = resource('logs', {
  query: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/logs',
    summary: 'Lists logged requests of a site, the latest first.',
    input: Input({
      id: Id,
      ...range,
      ...LogFilter,
      cursor: Type.Optional(
        PageCursor('LOG_CURSOR_INVALID', '`nextCursor` of the previous page, with the same filter.'),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
    }),
    output: Type.Object({
      entries: Type.Array(LogEntry),
      truncated: Type.Boolean({ description: 'Whether more rows match.' }),
      nextCursor: { ...Nullable(Type.String()), description: 'null: this is the last page.' },
      missingRows: Type.Integer({
        minimum: 0,
        description:
          'Rows of the site that are missing, of the hours of the range: nodes had no room for them, or the console ' +
          'refused them.',
      }),
    }),
    errors: [...errors, 'LOG_CURSOR_INVALID'],
  }),
  histogram: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/logs/histogram',
    summary: 'Counts logged requests of a site over time.',
    input: Input({ id: Id, ...range, ...LogFilter }),
    output: Type.Object({
      bucketSeconds: Type.Integer({ description: 'Length of a point: the shortest that gives at most 120 points.' }),
      estimated,
      points: Type.Array(LogHistogramPoint, { description: 'Points that the range touches, including empty ones.' }),
    }),
    errors: [...errors],
  }),
  top: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/logs/top',
    summary: 'Lists the most frequent values of a field of logged requests of a site.',
    input: Input({
      id: Id,
      ...range,
      ...LogFilter,
      field: OneOf(LOG_TOP_FIELDS),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10 })),
    }),
    output: Type.Object({ estimated, items: Type.Array(LogTopValue) }),
    errors: [...errors],
  }),
  export: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/logs/export',
    summary: 'Returns up to 1000 logged requests of a site as CSV, the latest first.',
    input: Input({ id: Id, ...range, ...LogFilter }),
    output: Type.Object({
      csv: Type.String({
        description:
          'A header line, then a line per row. A cell that a spreadsheet would take for a formula begins with an apostrophe.',
      }),
      truncated: Type.Boolean({ description: 'Whether more rows match.' }),
    }),
    errors: [...errors],
  }),
  startExport: procedure({
    method: 'POST',
    path: '/sites/{id}/logs/exports',
    summary: 'Starts a job that writes all logged requests of a range to a CSV or NDJSON file, the latest first.',
    input: Input({
      id: Id,
      ...range,
      ...LogFilter,
      format: Type.Optional({ ...OneOf(LOG_FORMATS), default: 'csv' }),
    }),
    output: Job,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['JOB_LIMIT', 'SITE_NOT_FOUND', 'LOG_RANGE_INVALID', 'LOG_FILTER_INVALID'],
  }),
});
