import type { CacheUsage } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { Part, PartKind } from '../lib/part.ts';

/** Tells the console how much disk space stored responses take. */
export const cacheUsagePart: PartKind = {
  name: 'cache-usage',
  make: (): Part => {
    let usage: CacheUsage | undefined;
    return {
      event: (event) => {
        if (event.case === 'dataPlaneStatus') usage = event.value.cache;
      },
      status: (report) => {
        if (usage) report.heartbeat.cache = usage;
      },
    };
  },
};
