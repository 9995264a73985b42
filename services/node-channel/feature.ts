import { purgeVitals } from '../../models/rollouts/vital.ts';
import { purgeVitalWatches } from '../../models/rollouts/vital-watch.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { MINUTE_MS, sweep } from '../../runtime/sweep.ts';

export const feature = {
  jobs: [
    sweep('purge-vitals', 5 * MINUTE_MS, purgeVitals),
    sweep('purge-vital-watches', 5 * MINUTE_MS, purgeVitalWatches),
  ],
} satisfies ServiceFeature;
