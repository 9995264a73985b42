import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, SECOND_MS } from '../../mixins/sweep.ts';
import { deleteEmptySubscriptions } from '../../models/alerts/alert-subscription.ts';
import { deliverAlerts } from './deliver.ts';

export const feature = {
  jobs: [
    { name: 'deliver-alerts', everyMs: 2 * SECOND_MS, run: deliverAlerts },
    {
      name: 'delete-empty-subscriptions',
      everyMs: HOUR_MS,
      run: async ({ pools }) => {
        await deleteEmptySubscriptions(pools.api);
      },
    },
  ],
} satisfies ServiceFeature;
