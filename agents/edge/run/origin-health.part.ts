import type { OriginHealth, OriginTraffic } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { Part, PartKind } from '../lib/part.ts';

/** Tells the console how origins fare, and of those that fail: at once where one goes down or comes up. */
export const originHealthPart: PartKind = {
  name: 'origin-health',
  make: ({ reportSoon }): Part => {
    let origins: readonly OriginHealth[] = [];
    let traffic: readonly OriginTraffic[] = [];
    let told = '';
    return {
      event: (event) => {
        if (event.case !== 'dataPlaneStatus') return;
        origins = event.value.originHealth;
        traffic = event.value.originTraffic;
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
        report.heartbeat.originTraffic = [...traffic];
      },
    };
  },
};
