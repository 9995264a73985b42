import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { purgeMetrics } from '../../models/nodes/node-metrics.ts';
import { tellOfflineNodes } from '../../models/nodes/node-state.ts';
import { expireNodeTasks, purgeNodeTasks } from '../../models/nodes/node-task.ts';

const OFFLINE_EVERY_MS = 5 * SECOND_MS;
/** A run that came late misses nothing; what is told twice is read twice. */
const OFFLINE_SECONDS = (2 * OFFLINE_EVERY_MS) / SECOND_MS;

export const feature = {
  jobs: [
    {
      name: 'tell-offline-nodes',
      everyMs: OFFLINE_EVERY_MS,
      run: ({ pools }) => tellOfflineNodes(pools.channel, OFFLINE_SECONDS),
    },
    sweep('purge-node-metrics', 10 * MINUTE_MS, purgeMetrics),
    sweep('expire-node-tasks', 5 * SECOND_MS, expireNodeTasks),
    sweep('purge-node-tasks', 10 * MINUTE_MS, purgeNodeTasks),
  ],
} satisfies ServiceFeature;
