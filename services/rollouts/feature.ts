import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, sweep } from '../../mixins/sweep.ts';
import { MAX_SUBJECTS } from '../../models/alerts/alert.ts';
import { purgeRolloutEvents } from '../../models/db/sweeps.ts';
import { rolloutAttention } from '../../models/rollouts/rollout.ts';
import { rolloutAlerts } from '../../models/rollouts/rollout-alert.ts';
import { evaluateCanaries } from './evaluate.ts';
import { undoHarm } from './undo.ts';

/** What was undone within seconds was hardly seen by anybody. */
const LOOK_MS = 2_000;

export const feature = {
  jobs: [
    { name: 'rollouts.evaluate', everyMs: LOOK_MS, run: (runtime, signal) => evaluateCanaries(runtime, signal) },
    { name: 'rollouts.undo', everyMs: LOOK_MS, run: undoHarm },
    sweep('purge-rollout-events', HOUR_MS, purgeRolloutEvents),
  ],
  attention: {
    kinds: {
      canary_rolled_back: { alert: 'cluster' },
      canary_awaiting_promotion: { alert: 'cluster' },
      canary_running: { alert: 'cluster' },
      changes_undone: { alert: 'cluster' },
    },
    async find(sql, clusterId) {
      const found = await rolloutAttention(sql, clusterId);
      return found.map(({ at, ...one }) => ({ ...one, at: at?.toISOString() ?? null }));
    },
  },
  alerts: {
    kinds: ['config_rollout_failed', 'config_rollout_no_canary'],
    async find(sql) {
      const found = await rolloutAlerts(sql, MAX_SUBJECTS);
      return found.map(({ kind, clusterId }) => ({ kind, subject: 'cluster', id: clusterId }));
    },
  },
} satisfies ServiceFeature;
