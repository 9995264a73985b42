import type { FailingSite } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { Part, PartKind } from '../lib/part.ts';

/** Tells the console which sites fail for many visitors: at once where that begins, ends or has another cause. */
export const failingSitesPart: PartKind = {
  name: 'failing-sites',
  make: ({ reportSoon }): Part => {
    let sites: readonly FailingSite[] = [];
    let told = '';
    return {
      event: (event) => {
        if (event.case !== 'dataPlaneStatus') return;
        sites = event.value.failingSites;
        const now = sites
          .map(({ siteId, cause }) => `${siteId} ${cause}`)
          .sort()
          .join('\n');
        if (now !== told) reportSoon();
        told = now;
      },
      status: (report) => {
        report.heartbeat.failingSites = [...sites];
      },
    };
  },
};
