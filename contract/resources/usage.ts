import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  Id,
  Input,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  SearchQuery,
  SortQuery,
  Timestamp,
} from '../scalars/common.ts';
import { settings } from '../settings.ts';

/** Length of a window. */
export const WINDOW_MS = 5 * 60_000;
/** Longest range of what is summed. */
export const LONGEST_DAYS = 400;

const Amount = Type.String({ pattern: '^[0-9]+$', description: 'Decimal integer, exact however large.' });

export const UsageRecord = Type.Object({
  id: Type.String({ description: 'Site id, a dot and the Unix seconds of windowStart; never changes.' }),
  siteId: { ...Id, description: 'Stays when the site is deleted.' },
  windowStart: Timestamp,
  windowEnd: { ...Timestamp, description: 'Five minutes after windowStart; not part of the window.' },
  requests: Amount,
  bytesSent: Amount,
  bytesReceived: Amount,
  revision: Type.Integer({ minimum: 1, description: 'One more each time that late data changed a value.' }),
  seq: {
    ...Decimal,
    description: 'Higher than any before when the record is made or revised; numbers may be left out.',
  },
  updatedAt: Timestamp,
});
export type UsageRecord = Static<typeof UsageRecord>;

const Sums = { requests: Amount, bytesSent: Amount, bytesReceived: Amount };

export const UsagePoint = Type.Object({ start: Timestamp, ...Sums });
export type UsagePoint = Static<typeof UsagePoint>;

export const SiteUsage = Type.Object({
  id: { ...Id, description: 'Id of the site.' },
  name: { ...Type.String(), description: 'As the site is called, or was; empty where that is not known any more.' },
  deleted: Type.Boolean(),
  ...Sums,
});
export type SiteUsage = Static<typeof SiteUsage>;
export const USAGE_SORT = ['requests', 'bytesSent', 'bytesReceived'] as const;

export const UsageGap = Type.Object({
  id: Decimal,
  nodeId: Id,
  nodeName: { ...Nullable(Type.String()), description: 'null: the node is gone.' },
  from: Timestamp,
  to: Timestamp,
  reason: OneOf(['told', 'skipped'], {
    description:
      'told: the node said so, its data plane was killed or its spool was full; skipped: it had sent the time to a database that was restored since.',
  }),
  recordedAt: Timestamp,
});
export type UsageGap = Static<typeof UsageGap>;

const items = Type.Array(UsageRecord);
const completeUntil = {
  ...Nullable(Timestamp),
  description:
    'Windows that end at or before it contain the data of every node that was active then; later data makes revisions. null: not known yet.',
};
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 5000, default: 1000 }));

const reads = {
  method: 'GET',
  status: 200,
  access: { scope: 'usage:read' },
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

const range = {
  from: { ...Timestamp, description: 'Start of the first window, a multiple of five minutes.' },
  to: { ...Timestamp, description: 'End of the last window, a multiple of five minutes; after from.' },
};
const summed = {
  ...range,
  to: { ...range.to, description: `${range.to.description} At most ${LONGEST_DAYS} days later.` },
};
const siteId = Type.Optional(Id);

export const usage = resource('usage', {
  list: procedure({
    ...reads,
    path: '/usage',
    summary: 'Lists usage records of five-minute windows, by window and site.',
    input: Input({
      ...range,
      siteId,
      cursor: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 200,
          description: 'nextCursor of the page before, with the same range.',
        }),
      ),
      limit,
    }),
    output: Type.Object({
      items,
      nextCursor: { ...Nullable(Type.String()), description: 'null on the last page.' },
      completeUntil,
    }),
    errors: ['USAGE_RANGE_INVALID', 'USAGE_CURSOR_INVALID'],
  }),
  changes: procedure({
    ...reads,
    path: '/usage/changes',
    summary: 'Lists usage records that were made or revised after a sequence number, in the order of their own.',
    input: Input({
      afterSeq: Type.Optional({ ...Decimal, default: '0', description: 'lastSeq of the answer before.' }),
      limit,
    }),
    output: Type.Object({
      items,
      lastSeq: { ...Decimal, description: 'What to ask for next as afterSeq.' },
      completeUntil,
    }),
    errors: [],
  }),
  summary: procedure({
    ...reads,
    path: '/usage/summary',
    summary: 'Sums usage of a range, of one site or of all, by five minutes, hours or days.',
    input: Input({ ...summed, siteId }),
    output: Type.Object({
      bucketSeconds: {
        ...Type.Integer({ minimum: 300, maximum: 86_400 }),
        description: 'Length of what a point sums: the shortest that makes at most 400 points; days are those of UTC.',
      },
      points: Type.Array(UsagePoint, { description: 'From that of from, each once, also without traffic.' }),
      totals: Type.Object(Sums),
      completeUntil,
    }),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  sites: procedure({
    ...reads,
    path: '/usage/sites',
    summary: 'Lists sites by their usage in a range, those that were deleted too.',
    input: Input({
      ...summed,
      ...SearchQuery('Part of the name or of a domain.'),
      ...SortQuery(USAGE_SORT),
      ...PageQuery(50),
    }),
    output: Page(SiteUsage),
    errors: ['USAGE_RANGE_INVALID'],
  }),
  gaps: procedure({
    ...reads,
    path: '/usage/gaps',
    summary: 'Lists times of a range of which usage is missing for good, the latest first.',
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
    path: '/usage/export',
    summary: 'Answers all usage records of a range, by window and site, as CSV.',
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
      description: 'A line with names, then one for each record. An answer that breaks off was not all.',
    }),
    errors: ['USAGE_RANGE_INVALID'],
  }),
});

export const UsageSettings = Type.Object({
  retentionDays: Type.Integer({ minimum: 35, maximum: 400, description: 'How long usage is kept; default 100.' }),
  offlineThresholdMinutes: Type.Integer({
    minimum: 5,
    maximum: 1440,
    description: 'completeUntil waits so long for a node that does not report; default 60.',
  }),
});
export type UsageSettings = Static<typeof UsageSettings>;

export const DEFAULT_USAGE_SETTINGS: UsageSettings = { retentionDays: 100, offlineThresholdMinutes: 60 };

export const usageSettings = resource(
  'settings.usage',
  settings({
    path: '/settings/usage',
    of: {},
    reads: 'Answers how long usage is kept, and how long is waited for nodes.',
    saves: 'Changes the settings of usage; omitted fields keep their values.',
    change: Type.Partial(UsageSettings).properties,
    output: UsageSettings,
    saved: UsageSettings,
    audit: 'system.usage_update',
  }),
);
