// Requests of a site as they end, whether they are stored or not.
import Type from 'typebox';
import { Id, Input, OneOf } from '../scalars/common.ts';
import { type StreamInput, type StreamLine, stream } from '../stream.ts';
import { LogEntry, LogFilter } from './logs.ts';

/** Rows that a tail is sent in a second at most. */
export const MAX_TAIL_ROWS = 200;

const TailLine = Type.Union([
  Type.Object({ type: Type.Literal('start') }, { description: 'First line: nodes are being asked for rows.' }),
  Type.Object({
    type: Type.Literal('rows'),
    entries: Type.Array(LogEntry, { description: 'The earliest first. Each node sends its own rows in order.' }),
    dropped: Type.Integer({
      minimum: 0,
      description: `Rows that match and are missing before these: there were more than ${MAX_TAIL_ROWS} in a second, or the client reads too slowly.`,
    }),
  }),
  Type.Object(
    { type: Type.Literal('pause') },
    {
      description:
        'The console receives no rows now. Further rows follow when it does again; those in between are missing.',
    },
  ),
  Type.Object({ type: Type.Literal('ping') }, { description: 'Sent every 15 s.' }),
  Type.Object(
    { type: Type.Literal('end'), reason: OneOf(['session', 'stopping']) },
    { description: 'Last line: the session ended, or this process is stopping.' },
  ),
]);

export const logTail = {
  tail: stream({
    name: 'logs.tail',
    method: 'POST',
    summary: 'Streams requests of a site as they end, as lines of JSON, also of a site that logs nothing.',
    input: Input({ id: Id, ...LogFilter }),
    line: TailLine,
    access: 'session',
    errors: ['LIVE_STREAM_LIMIT', 'SITE_NOT_FOUND', 'LOG_FILTER_INVALID'],
  }),
};

export type TailLine = StreamLine<typeof logTail.tail>;
/** What a tail looks for. */
export type TailFilter = Omit<StreamInput<typeof logTail.tail>, 'id'>;
