import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS } from '../../mixins/sweep.ts';
import { wafRestorer } from './restore-site-waf.ts';
import { wafShareAttention, watchWafShares } from './shares.ts';

export const feature = {
  restores: [wafRestorer],
  jobs: [
    {
      name: 'waf-shares',
      everyMs: MINUTE_MS,
      run: (runtime, signal) => watchWafShares(runtime, new Date(), signal),
    },
  ],
  // The job opens and closes the alert waf_share of each site.
  attention: { kinds: { sites_waf_share: { alert: null } }, find: wafShareAttention },
} satisfies ServiceFeature;
