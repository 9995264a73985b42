import type { Part, PartKind } from '../lib/part.ts';
import { VitalReporter } from './vital-reporter.ts';

/** Tells the console how the sites fare that it watches after a change. */
export const vitalsPart: PartKind = {
  name: 'vitals',
  make: ({ reached, log }, dataPlane): Part => {
    const reporter = new VitalReporter({ client: dataPlane.client, channel: reached, log });
    return {
      event: (event) => {
        if (event.case === 'heartbeat') reporter.watch(event.value.vitalWatch);
        else if (event.case === 'configApplied')
          reporter.onApplied(event.position, event.failed, dataPlane.status?.instanceId ?? '');
      },
      stop: () => reporter.stop(),
    };
  },
};
