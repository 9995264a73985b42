import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../mixins/sweep.ts';
import { deleteOldTopLists, takeAllTopMarks } from '../../models/traffic/top-list.ts';
import { deleteOldTraffic, makeTrafficDays } from '../../models/traffic/traffic-age.ts';
import { takeAllTrafficMarks } from '../../models/traffic/traffic-mark.ts';
import { restAfter } from '../../runtime/pace.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { sumTraffic } from './roll-up.ts';

export const feature = {
  jobs: [
    { name: 'traffic-marks', everyMs: 10 * SECOND_MS, run: (runtime, signal) => addMarks(runtime, signal) },
    { name: 'traffic-windows', everyMs: MINUTE_MS, run: sumTraffic },
    {
      name: 'top-lists',
      everyMs: MINUTE_MS,
      run: ({ pools }, signal) => takeAllTopMarks(pools.api, new Date(), signal, restAfter),
    },
    { name: 'traffic-age', everyMs: HOUR_MS, run: deleteOld },
  ],
} satisfies ServiceFeature;

async function deleteOld({ pools }: Runtime): Promise<void> {
  const now = new Date();
  await deleteOldTraffic(pools.api, now);
  await deleteOldTopLists(pools.api, now);
}

async function addMarks({ pools }: Runtime, signal: AbortSignal): Promise<void> {
  await makeTrafficDays(pools.api, new Date());
  await takeAllTrafficMarks(pools.api, signal, restAfter);
}
