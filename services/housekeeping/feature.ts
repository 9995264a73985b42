import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, sweep } from '../../mixins/sweep.ts';
import { purgeIdempotency } from '../../models/db/sweeps.ts';

/** Answers to requests are the gateway's, which knows no tables. */
export const feature = {
  jobs: [sweep('purge-idempotency', HOUR_MS, purgeIdempotency)],
} satisfies ServiceFeature;
