import type { OriginHealth } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { Part, PartKind } from '../lib/part.ts';

/** Tells the console of origins that fail: at once where one goes down or comes up. */
export const originHealthPart: PartKind = {
  name: 'origin-health',
  make: ({ reportSoon }): Part => {
    let origins: readonly OriginHealth[] = [];
    let told = '';
    return {
      event: (event) => {
        if (event.case !== 'dataPlaneStatus') return;
        origins = event.value.originHealth;
        const down = origins
          .filter(({ healthy }) => !healthy)
          .map(({ siteId, originId, active }) => `${siteId} ${originId} ${active}`)
          .sort()
          .join('\n');
        if (down !== told) reportSoon();
        told = down;
      },
      status: (report) => {
        report.heartbeat.originHealth = [...origins];
      },
    };
  },
};
