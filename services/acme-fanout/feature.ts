import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, sweep } from '../../mixins/sweep.ts';
import { sweepAcmeTokens } from '../../models/certificates/acme-token.ts';

export const feature = {
  jobs: [sweep('sweep-acme-tokens', 10 * MINUTE_MS, sweepAcmeTokens)],
} satisfies ServiceFeature;
