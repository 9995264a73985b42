// What changes, told as it happens: which topic and which ids, never the data. Whoever shows them reads them again.
import Type from 'typebox';
import { Input, Nullable, OneOf } from '../scalars/common.ts';
import { type StreamLine, stream } from '../stream.ts';

/**
 * | Topic     | Says that                                                                 | ids are of          |
 * |-----------|---------------------------------------------------------------------------|---------------------|
 * | nodes     | state, positions or data of nodes changed                                 | nodes               |
 * | gauges    | heartbeats came in: figures that move all the time                        | none                |
 * | revisions | a revision was published, or nodes applied one                            | clusters            |
 * | bans      | bans were created, lifted, or applied by nodes                            | clusters            |
 * | incidents | levels of sites changed                                                   | sites               |
 * | security  | the same, or nodes reported events                                        | sites               |
 * | sites     | sites were created, changed or deleted                                    | sites               |
 * | cache     | cache tasks were created, or nodes carried one out                        | clusters            |
 * | jobs      | long jobs were started, moved on or ended                                 | jobs                |
 * | settings  | anything else was: the type of what changed, or the audit action          | types and actions   |
 */
export const LIVE_TOPICS = [
  'nodes',
  'gauges',
  'revisions',
  'bans',
  'incidents',
  'security',
  'sites',
  'cache',
  'jobs',
  'settings',
] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

/** Ids of one topic in one line; more are told as the topic alone. */
export const MAX_LIVE_IDS = 100;

const Cursor = Type.String({
  pattern: '^[0-9]{1,15}-[0-9]{1,15}$',
  description: 'Position in the stream. Send it to continue from there.',
});

const LiveEvent = Type.Object({
  topic: OneOf(LIVE_TOPICS),
  ids: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: MAX_LIVE_IDS,
      description: 'IDs of the changed objects; absent: any object of the topic.',
    }),
  ),
});

const LiveLine = Type.Union([
  Type.Object(
    { type: Type.Literal('start'), cursor: Cursor },
    { description: 'First line: later lines follow the cursor that was sent, or this one.' },
  ),
  Type.Object(
    { type: Type.Literal('reset'), cursor: Cursor },
    { description: 'Events were lost: read everything that is shown again.' },
  ),
  Type.Object({ type: Type.Literal('events'), cursor: Cursor, events: Type.Array(LiveEvent, { minItems: 1 }) }),
  Type.Object(
    { type: Type.Literal('pause') },
    { description: 'The console receives no events now. A reset follows when it does again.' },
  ),
  Type.Object({ type: Type.Literal('ping') }, { description: 'Sent every 15 s.' }),
  Type.Object(
    { type: Type.Literal('end'), reason: OneOf(['session', 'stopping']) },
    { description: 'Last line: the session ended, or this process is stopping. Reconnect with the latest cursor.' },
  ),
]);

export const live = {
  watch: stream({
    name: 'live.watch',
    method: 'POST',
    summary: 'Streams changes as they happen, as lines of JSON.',
    input: Input({
      cursor: Type.Optional(Nullable(Cursor)),
      recentSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 30,
          default: 0,
          description:
            'Without a cursor: start this many seconds in the past, for a client that has just read its data.',
        }),
      ),
    }),
    line: LiveLine,
    access: 'session',
    errors: ['LIVE_STREAM_LIMIT'],
  }),
};

export type LiveLine = StreamLine<typeof live.watch>;
export type LiveEvent = Extract<LiveLine, { type: 'events' }>['events'][number];
