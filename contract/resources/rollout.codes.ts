import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ROLLOUT_NOT_ACTIVE: entry(409, 'No canary is running in the cluster.'),
  ROLLOUT_EVENT_NOT_FOUND: entry(404, 'This rollout event does not exist in the cluster.'),
} satisfies ErrorEntries;

export const attention = {
  canary_rolled_back: { order: 16, level: 'act', page: '/rollouts' },
  canary_awaiting_promotion: { order: 17, level: 'watch', page: '/rollouts' },
  changes_undone: { order: 15, level: 'act', page: '/rollouts' },
  canary_running: { order: 18, level: 'watch', page: '/rollouts' },
} satisfies AttentionEntries;
