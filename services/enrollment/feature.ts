import { purgeTokens } from '../../models/db/sweeps.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { HOUR_MS, sweep } from '../../runtime/sweep.ts';

export const feature = {
  jobs: [sweep('purge-enrollment-tokens', HOUR_MS, purgeTokens)],
} satisfies ServiceFeature;
