import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, sweep } from '../../mixins/sweep.ts';
import { purgeVitals } from '../../models/rollouts/vital.ts';
import { purgeVitalWatches } from '../../models/rollouts/vital-watch.ts';

export const feature = {
  jobs: [
    sweep('purge-vitals', 5 * MINUTE_MS, purgeVitals),
    sweep('purge-vital-watches', 5 * MINUTE_MS, purgeVitalWatches),
  ],
} satisfies ServiceFeature;
