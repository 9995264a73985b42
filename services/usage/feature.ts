import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { purgeUsageCursors } from '../../models/db/sweeps.ts';
import { dropOldUsage, makeUsagePartitions } from '../../models/usage/usage-partitions.ts';
import { takeAllUsageMarks } from '../../models/usage/usage-windows.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { compactUsage } from './compaction.ts';
import { rollUpUsage } from './roll-up.ts';

export const feature = {
  jobs: [
    { name: 'usage-marks', everyMs: 5 * SECOND_MS, run: ({ pools }, signal) => takeAllUsageMarks(pools.api, signal) },
    { name: 'usage-windows', everyMs: MINUTE_MS, run: rollUpUsage },
    { name: 'usage-compaction', everyMs: 10 * MINUTE_MS, run: compactUsage },
    { name: 'usage-weeks', everyMs: HOUR_MS, run: keepUsageWeeks },
    sweep('purge-usage-cursors', HOUR_MS, purgeUsageCursors),
  ],
} satisfies ServiceFeature;

async function keepUsageWeeks({ pools, log }: Runtime): Promise<void> {
  const now = new Date();
  await makeUsagePartitions(pools.api, now);
  const dropped = await dropOldUsage(pools.api, now);
  if (dropped.length > 0) log.info({ dropped }, 'old usage deleted');
}
