import type { FoundAttention } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { purgeMetrics } from '../../models/nodes/node-metrics.ts';
import { tellOfflineNodes } from '../../models/nodes/node-state.ts';
import { expireNodeTasks, purgeNodeTasks } from '../../models/nodes/node-task.ts';
import { offlineNodes } from '../../models/nodes/offline-node.ts';
import type { NodeGroup } from '../../models/overview/overview-nodes.ts';

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
  attention: {
    kinds: {
      nodes_unhealthy: { alert: 'node' },
      nodes_lagging: { alert: 'node' },
      nodes_bans_unapplied: { alert: 'node' },
      node_certificates_ending: { alert: 'node' },
      nodes_proxy_peers_unset: { alert: 'node' },
    },
    find: async (_sql, _clusterId, fleet) => (await fleet).view.groups.map(itemOf),
  },
  alerts: {
    kinds: ['node_offline'],
    async find(sql, { nodeOfflineSeconds }) {
      const ids = await offlineNodes(sql, nodeOfflineSeconds, MAX_SUBJECTS);
      return ids.map((id) => ({ kind: 'node_offline', subject: 'node', id }));
    },
  },
} satisfies ServiceFeature;

function itemOf({ revision, at, named, ...group }: NodeGroup): FoundAttention {
  return {
    ...group,
    revision: group.kind === 'nodes_lagging' ? revision : null,
    at: at?.toISOString() ?? null,
    named: named.map((node) => ({ type: 'node', ...node })),
  };
}
