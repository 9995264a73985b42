import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, sweep } from '../../mixins/sweep.ts';
import { purgeNodeCertificates, purgeTokens } from '../../models/db/sweeps.ts';

export const feature = {
  jobs: [
    sweep('purge-enrollment-tokens', HOUR_MS, purgeTokens),
    sweep('purge-node-certificates', HOUR_MS, purgeNodeCertificates),
  ],
} satisfies ServiceFeature;
