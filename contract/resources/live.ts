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
  'settings',
] as const;
export type LiveTopic = (typeof LIVE_TOPICS)[number];

/** Ids of one topic in one line; more are told as the topic alone. */
export const MAX_LIVE_IDS = 100;

const Cursor = Type.String({
  pattern: '^[0-9]{1,15}-[0-9]{1,15}$',
  description: 'A place in the stream: what is sent to go on from there.',
});

const LiveEvent = Type.Object({
  topic: OneOf(LIVE_TOPICS),
  ids: Type.Optional(
    Type.Array(Type.String(), { minItems: 1, maxItems: MAX_LIVE_IDS, description: 'Absent: any of the topic.' }),
  ),
});

const LiveLine = Type.Union([
  Type.Object(
    { type: Type.Literal('start'), cursor: Cursor },
    { description: 'First: what follows comes after the cursor that was sent, or after this one.' },
  ),
  Type.Object(
    { type: Type.Literal('reset'), cursor: Cursor },
    { description: 'What happened before cannot be told: read everything that is shown again.' },
  ),
  Type.Object({ type: Type.Literal('events'), cursor: Cursor, events: Type.Array(LiveEvent, { minItems: 1 }) }),
  Type.Object(
    { type: Type.Literal('pause') },
    { description: 'The console hears of nothing now: what happens is told by the reset that follows.' },
  ),
  Type.Object({ type: Type.Literal('ping') }, { description: 'Every 15 s.' }),
  Type.Object(
    { type: Type.Literal('end'), reason: OneOf(['session', 'stopping']) },
    { description: 'Last: the session ended, or this process stops and another one goes on from the last cursor.' },
  ),
]);

export const live = {
  watch: stream({
    name: 'live.watch',
    method: 'POST',
    summary: 'Tells what changes as it happens, as lines of JSON.',
    input: Input({
      cursor: Type.Optional(Nullable(Cursor)),
      recentSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 30,
          default: 0,
          description: 'Without a cursor: begin with what happened this long before, for whoever has just read.',
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
