import type { Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { LogTailer } from './log-tail.ts';

/** Requests of watched sites on their way to the console. */
export const logTailPart: PartKind = {
  name: 'log tail',
  make: (node, { client }): Part => {
    const { clock } = node.of(clockPart);
    const tailer = new LogTailer({ client, channel: node.reached, offsetMs: () => clock.offsetMs(), log: node.log });
    return {
      event: (event) => {
        if (event.case === 'logTail') tailer.watch(event.value);
      },
      stop: () => tailer.stop(),
    };
  },
};
