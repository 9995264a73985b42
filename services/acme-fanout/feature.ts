import { sweepAcmeTokens } from '../../models/certificates/acme-token.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { MINUTE_MS, sweep } from '../../runtime/sweep.ts';

export const feature = {
  jobs: [sweep('sweep-acme-tokens', 10 * MINUTE_MS, sweepAcmeTokens)],
} satisfies ServiceFeature;
