// Which requests of a site are logged, and with what.
import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const MAX_SAMPLE_RATE = 10_000;
export const MAX_LOGGED_HEADERS = 8;
/** `sampleUntil` is at most so far ahead. */
export const MAX_SAMPLE_DAYS = 30;
/** Logged for no site. */
export const SECRET_HEADERS = ['authorization', 'cookie', 'proxy-authorization'] as const;

const fields = {
  sampleRate: Type.Integer({
    minimum: 0,
    maximum: MAX_SAMPLE_RATE,
    examples: [100],
    description: 'Share of requests that are logged, in parts per 10,000; 0: none, 10000: all.',
  }),
  sampleUntil: {
    ...Nullable(Timestamp),
    description:
      'When the console sets `sampleRate` back to 0, at most 30 days ahead; null: it stays. Always null while ' +
      '`sampleRate` is 0.',
  },
  logBlocked: Type.Boolean({
    description:
      'Whether requests that the node refused are logged whatever `sampleRate` says, at most 100 a second and node.',
  }),
  logQuery: Type.Boolean({ description: 'Whether the query string is logged, at most 2048 bytes.' }),
  logHeaders: Type.Array(
    Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      examples: ['accept-language'],
    }),
    {
      maxItems: MAX_LOGGED_HEADERS,
      description:
        'Request headers that are logged, at most 512 bytes each; stored in lower case. Not allowed: authorization, ' +
        'cookie, proxy-authorization.',
    },
  ),
  logPeer: Type.Boolean({
    description: 'Whether the address of the connection is logged beside that of the client.',
  }),
};

const LogsOfSite = Type.Object(fields);
export type LogsOfSite = Static<typeof LogsOfSite>;

/** What a site has until it is changed. */
export const DEFAULT_LOGS: LogsOfSite = {
  sampleRate: 0,
  sampleUntil: null,
  logBlocked: false,
  logQuery: false,
  logHeaders: [],
  logPeer: false,
};

const state = { siteId: Id, ...fields, updatedAt: { ...Nullable(Timestamp), description: 'null: never saved.' } };
const given = Type.Partial(LogsOfSite).properties;

export const siteLogs = resource(
  'sites.logs.settings',
  settings({
    path: '/sites/{id}/logs/settings',
    of: { id: Id },
    reads: 'Returns which requests of a site are logged.',
    saves: 'Replaces the log settings of a site; omitted fields return to their defaults.',
    change: {
      sampleRate: { ...given.sampleRate, default: DEFAULT_LOGS.sampleRate },
      sampleUntil: { ...given.sampleUntil, default: DEFAULT_LOGS.sampleUntil },
      logBlocked: { ...given.logBlocked, default: DEFAULT_LOGS.logBlocked },
      logQuery: { ...given.logQuery, default: DEFAULT_LOGS.logQuery },
      logHeaders: { ...given.logHeaders, default: DEFAULT_LOGS.logHeaders },
      logPeer: { ...given.logPeer, default: DEFAULT_LOGS.logPeer },
      expectedUpdatedAt: Type.Optional({ ...Nullable(Timestamp), description: 'null: never saved.' }),
    },
    output: Type.Object(state),
    saved: Type.Object({
      ...state,
      revision: Nullable({
        ...Decimal,
        description: 'Revision that publishes the change; null if nothing changed for nodes.',
      }),
    }),
    audit: 'site.logs_configure',
    errors: ['SITE_NOT_FOUND'],
    saveErrors: ['LOG_HEADER_FORBIDDEN', 'LOG_UNTIL_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
);
