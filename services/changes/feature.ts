import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import {
  purgeSiteLabels,
  raiseDeltaFloors,
  SWEEP_BATCH,
  sweepBlobs,
  sweepEntries,
  sweepRevisions,
  sweepSettings,
} from '../../models/db/sweeps.ts';
import { waitingPublications } from '../../models/overview/overview.ts';
import { sweepPropagation } from '../../models/overview/propagation.ts';
import { publishLeftRequests } from './left-requests.ts';

export const feature = {
  jobs: [
    { name: 'publish-requests', everyMs: 2 * SECOND_MS, run: publishLeftRequests },
    { name: 'raise-delta-floors', everyMs: 5 * MINUTE_MS, run: ({ pools }) => raiseDeltaFloors(pools.api) },
    sweep('sweep-entries', 10 * MINUTE_MS, sweepEntries),
    sweep('sweep-revisions', HOUR_MS, sweepRevisions),
    sweep('purge-site-labels', HOUR_MS, purgeSiteLabels),
    sweep('sweep-blobs', HOUR_MS, sweepBlobs),
    sweep('sweep-settings', HOUR_MS, sweepSettings),
    sweep('sweep-propagation', MINUTE_MS, (sql) => sweepPropagation(sql, SWEEP_BATCH)),
  ],
  attention: {
    kinds: { publications_waiting: { alert: 'installation' } },
    async find(sql, clusterId) {
      const { count, at } = await waitingPublications(sql, clusterId);
      return count > 0 ? [{ kind: 'publications_waiting', count, at: at?.toISOString() ?? null }] : [];
    },
  },
} satisfies ServiceFeature;
