import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

/** Length of a window. */
export const WINDOW_MS = 5 * 60_000;

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

export const usage = resource('usage', {
  list: procedure({
    ...reads,
    path: '/usage',
    summary: 'Lists usage records of five-minute windows, by window and site.',
    input: Input({
      from: { ...Timestamp, description: 'Start of the first window, a multiple of five minutes.' },
      to: { ...Timestamp, description: 'End of the last window, a multiple of five minutes; after from.' },
      siteId: Type.Optional(Id),
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
