import type { Part, PartKind } from '../lib/part.ts';
import { AppliedReporter } from './applied-reporter.ts';

/** Tells the console which positions this node enforces. */
export const appliedPart: PartKind = {
  name: 'applied',
  make: ({ channel, log }): Part => {
    const reporter = new AppliedReporter(channel, log);
    return {
      event: (event) => {
        if (event.case === 'reached') reporter.reached(event);
        else if (event.case === 'heartbeat') reporter.spread(event.value.appliedSpreadMs);
      },
      stop: () => reporter.stop(),
    };
  },
};
