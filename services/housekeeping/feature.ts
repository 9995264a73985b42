import { purgeIdempotency } from '../../models/db/sweeps.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { HOUR_MS, sweep } from '../../runtime/sweep.ts';

/** Answers to requests are the gateway's, which knows no tables. */
export const feature = {
  jobs: [sweep('purge-idempotency', HOUR_MS, purgeIdempotency)],
} satisfies ServiceFeature;
