import type { Part, PartKind } from '../lib/part.ts';
import { AppliedReporter } from './applied-reporter.ts';

/** Tells the console which positions this node enforces. */
export const appliedPart: PartKind = {
  name: 'applied',
  make: ({ channel, log }): Part => {
    const reporter = new AppliedReporter(channel, log);
    return {
      event: (event) => {
        if (event.case === 'configApplied') reporter.configApplied(event.position, event.failed, event.micros);
        else if (event.case === 'bansApplied') reporter.bansApplied(event.state.position!, event.micros);
        else if (event.case === 'acmeApplied') reporter.acmeApplied(event.position);
        else if (event.case === 'heartbeat') reporter.spread(event.value.appliedSpreadMs);
      },
      stop: () => reporter.stop(),
    };
  },
};
