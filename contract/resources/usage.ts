import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Id,
  Input,
  Nullable,
  OneOf,
  Page,
  PageCursor,
  PageQuery,
  SearchQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { Job } from './jobs.ts';

/** Length of a window. */
export const WINDOW_MS = 5 * 60_000;
/** Longest range of what is summed. */
export const LONGEST_DAYS = 400;

const Amount = Type.String({ pattern: '^[0-9]+$', description: 'Exact decimal integer of any size.' });

export const UsageRecord = Type.Object({
  id: Type.String({ description: 'Site ID, a dot and the Unix seconds of `windowStart`; never changes.' }),
  siteId: { ...Id, description: 'Site ID; stays after the site is deleted.' },
  windowStart: Timestamp,
  windowEnd: { ...Timestamp, description: 'Exclusive end of the window, 5 minutes after `windowStart`.' },
  requests: Amount,
  bytesSent: Amount,
  bytesReceived: Amount,
  revision: Type.Integer({
    minimum: 1,
    description: 'Revision of the record; rises by 1 each time late data changes a value.',
  }),
  seq: {
    ...Decimal,
    description: 'Sequence number, higher than all before when the record is created or revised; gaps are possible.',
  },
  updatedAt: Timestamp,
});
export type UsageRecord = Static<typeof UsageRecord>;

const Sums = { requests: Amount, bytesSent: Amount, bytesReceived: Amount };

export const UsagePoint = Type.Object({ start: Timestamp, ...Sums });
export type UsagePoint = Static<typeof UsagePoint>;

export const SiteUsage = Type.Object({
  id: { ...Id, description: 'Site ID.' },
  name: { ...Type.String(), description: 'Current or last name of the site; empty: unknown.' },
  deleted: Type.Boolean(),
  ...Sums,
});
export type SiteUsage = Static<typeof SiteUsage>;
export const USAGE_SORT = ['requests', 'bytesSent', 'bytesReceived'] as const;

export const UsageGap = Type.Object({
  id: Decimal,
  nodeId: Id,
  nodeName: { ...Nullable(Type.String()), description: 'null: the node was deleted.' },
  from: Timestamp,
  to: Timestamp,
  reason: OneOf(['told', 'skipped'], {
    description:
      'told: the node reported the gap, because its data plane was killed or its spool was full. skipped: ' +
      'the node had sent the data to a database that was restored since.',
  }),
  recordedAt: Timestamp,
});
export type UsageGap = Static<typeof UsageGap>;

const items = Type.Array(UsageRecord);
const completeUntil = {
  ...Nullable(Timestamp),
  description:
    'Windows that end at or before this time contain the data of every node active then. Late data ' +
    'creates revisions. null: unknown.',
};
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 5000, default: 1000 }));

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

const range = {
  from: {
    ...Timestamp,
    description: 'Start of the first window, a multiple of 5 minutes. Example: 2026-01-01T00:05:00Z.',
  },
  to: {
    ...Timestamp,
    description: 'End of the last window, a multiple of 5 minutes, after `from`. Example: 2026-01-01T01:00:00Z.',
  },
};
const summed = {
  ...range,
  to: { ...range.to, description: `${range.to.description} At most ${LONGEST_DAYS} days after \`from\`.` },
};
const siteId = Type.Optional(Id);

export const usage = resource('usage', {
  list: procedure({
    ...reads,
    access: { scope: 'usage:read' },
    path: '/usage',
    summary: 'Lists usage records of 5-minute windows, by window and site.',
    input: Input({
      ...range,
      siteId,
      cursor: Type.Optional(
        PageCursor('USAGE_CURSOR_INVALID', '`nextCursor` of the previous page, with the same range.'),
      ),
      limit,
    }),
    output: Type.Object({
      items,
      nextCursor: { ...Nullable(Type.String()), description: 'null: this is the last page.' },
      completeUntil,
    }),
    errors: ['USAGE_RANGE_INVALID', 'USAGE_CURSOR_INVALID'],
  }),
  changes: procedure({
    ...reads,
    access: { scope: 'usage:read' },
    path: '/usage/changes',
    summary: 'Lists usage records created or revised after a sequence number, in sequence order.',
    input: Input({
      afterSeq: Type.Optional({ ...Decimal, default: '0', description: '`lastSeq` of the previous response.' }),
      limit,
    }),
    output: Type.Object({
      items,
      lastSeq: { ...Decimal, description: 'Value of `afterSeq` for the next request.' },
      completeUntil,
    }),
    errors: [],
  }),
  summary: procedure({
    ...reads,
    access: 'operator',
    path: '/usage/summary',
    summary: 'Returns the usage of one site or of all in a range, summed by 5 minutes, hours or days.',
    input: Input({ ...summed, siteId }),
    output: Type.Object({
      bucketSeconds: {
        ...Type.Integer({ minimum: 300, maximum: 86_400 }),
        description: 'Length of a point in seconds: the shortest that gives at most 400 points. Days are UTC days.',
      },
      points: Type.Array(UsagePoint, { description: 'Points from `from` on, including points without traffic.' }),
      totals: Type.Object(Sums),
      completeUntil,
    }),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  sites: procedure({
    ...reads,
    access: 'operator',
    path: '/usage/sites',
    summary: 'Lists sites by their usage in a range, including deleted ones.',
    input: Input({
      ...summed,
      ...SearchQuery('Part of the name or of a domain, case-insensitive.'),
      ...SortQuery(USAGE_SORT),
      ...PageQuery(50),
    }),
    output: Page(SiteUsage),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  gaps: procedure({
    ...reads,
    access: 'operator',
    path: '/usage/gaps',
    summary: 'Lists the periods of a range whose usage is permanently missing, latest first.',
    input: Input({
      ...summed,
      siteId: Type.Optional({ ...Id, description: 'Only gaps of nodes that may serve the site.' }),
      ...PageQuery(50),
    }),
    output: Page(UsageGap),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  export: procedure({
    ...reads,
    access: 'operator',
    path: '/usage/export',
    summary: 'Returns all usage records of a range as CSV, by window and site.',
    input: Input({ ...summed, siteId }),
    media: 'text/csv',
    output: Type.String({
      examples: [
        [
          'window_start,window_end,site_id,site_name,requests,bytes_sent,bytes_received,revision,updated_at',
          '2026-01-15T09:30:00.000Z,2026-01-15T09:35:00.000Z,0199f2c4-7a10-7c3e-9a55-2f1d6c0b8e21,www.example.com,17,48213,5120,1,2026-01-15T09:36:02.000Z',
          '',
        ].join('\r\n'),
      ],
      description: 'A header line, then one line per record. If the transfer breaks off, the export is incomplete.',
    }),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  startExport: procedure({
    method: 'POST',
    path: '/usage/exports',
    summary: 'Starts a job that writes all usage records of a range to a CSV file, by window and site.',
    input: Input({ ...summed, siteId }),
    output: Job,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['JOB_LIMIT', 'USAGE_RANGE_INVALID'],
  }),
});

export const UsageSettings = Type.Object({
  retentionDays: Type.Integer({ minimum: 35, maximum: 400, description: 'Days that usage is kept. Default 100.' }),
  offlineThresholdMinutes: Type.Integer({
    minimum: 5,
    maximum: 1440,
    description: 'Minutes that `completeUntil` waits for a node that does not report. Default 60.',
  }),
});
export type UsageSettings = Static<typeof UsageSettings>;

export const DEFAULT_USAGE_SETTINGS: UsageSettings = { retentionDays: 100, offlineThresholdMinutes: 60 };

export const usageSettings = resource(
  'settings.usage',
  settings({
    path: '/settings/usage',
    of: {},
    reads: 'Returns the usage settings: retention and the wait for offline nodes.',
    saves: 'Changes the usage settings; omitted fields keep their values.',
    change: Type.Partial(UsageSettings).properties,
    output: UsageSettings,
    saved: UsageSettings,
    audit: 'system.usage_update',
  }),
);
