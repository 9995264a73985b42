// What serves each stream of the contract, by its name.
import type { live } from '../../../contract/resources/live.ts';
import type { logTail } from '../../../contract/resources/log-tail.ts';
import type { StreamInput } from '../../../contract/stream.ts';
import type { LiveHub } from './live-hub.ts';
import type { TailHub, TailSearch } from './tail-hub.ts';
import type { Sink } from './watcher.ts';

/** Admits a session with checked input and returns how its stream begins; throws the contract's errors. */
export type Streamer = (token: string, input: unknown) => Promise<(sink: Sink) => void | Promise<void>>;
export type Streamers = Readonly<Record<string, Streamer>>;

type TailInput = StreamInput<typeof logTail.tail>;

/** `searchOf` checks what a tail looks for. */
export function streamersOf(
  hub: LiveHub,
  tails: TailHub,
  searchOf: (input: TailInput) => Promise<TailSearch>,
): Streamers {
  return {
    'live.watch': async (token, input) => {
      const { cursor, recentSeconds } = input as StreamInput<typeof live.watch>;
      hub.admit(token);
      return (sink) => hub.open(token, cursor ?? null, sink, recentSeconds);
    },
    'logs.tail': async (token, input) => {
      tails.admit(token);
      const search = await searchOf(input as TailInput);
      return (sink) => tails.open(token, search, sink);
    },
  };
}
