import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { purgeCacheTasks } from '../../models/cache/cache-task.ts';
import { foldPurges } from '../../models/cache/purge.ts';
import { advancePrefetches } from './advance-prefetches.ts';
import { settleCacheTasks } from './settle-tasks.ts';

export const feature = {
  jobs: [
    { name: 'settle-cache-tasks', everyMs: 2 * SECOND_MS, run: settleCacheTasks },
    { name: 'advance-prefetches', everyMs: 2 * SECOND_MS, run: advancePrefetches },
    sweep('fold-purges', 10 * MINUTE_MS, foldPurges),
    sweep('purge-cache-tasks', HOUR_MS, purgeCacheTasks),
  ],
} satisfies ServiceFeature;
