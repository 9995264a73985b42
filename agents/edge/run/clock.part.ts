import type { Part, PartKind } from '../lib/part.ts';
import { ServerClock } from '../lib/server-clock.ts';
import { ClockFile } from './clock-file.ts';

/** The console's clock, as this node knows it. */
interface ClockPart extends Part {
  readonly clock: ServerClock;
}

export const clockPart: PartKind<ClockPart> = {
  name: 'clock',
  make: ({ options, log }) => {
    const file = new ClockFile(options.paths.clock, log);
    const clock = new ServerClock(undefined, file.read());
    const keep = (): void => file.keep(clock.reading());
    return {
      clock,
      event: (event) => {
        if (event.case === 'ping' || event.case === 'target' || event.case === 'heartbeat')
          clock.observe(event.value.serverTimeMs);
      },
      maintain: keep,
      stop: keep,
    };
  },
};
