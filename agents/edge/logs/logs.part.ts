import type { Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { LogSender } from './log-sender.ts';

/** A row is at the console about this long after the end of its request. */
const EVERY_MS = 1000;

/** Request logs on their way to the console. */
export const logsPart: PartKind = {
  name: 'request logs',
  make: (node, { client }): Part => {
    const { clock } = node.of(clockPart);
    const sender = new LogSender({
      client,
      channel: node.reached,
      openBacklog: node.openChannel,
      offsetMs: () => clock.offsetMs(),
      log: node.log,
    });
    return {
      start: () => node.every(EVERY_MS, 'request logs', async () => sender.look()),
      event: (event) => {
        if (event.case === 'connected') sender.hurry();
      },
      stop: () => sender.stop(),
    };
  },
};
