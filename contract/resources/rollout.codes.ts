import type { AlertKindEntries } from '../alert-kind.ts';
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

export const alerts = {
  config_rollout_failed: {
    order: 90,
    audience: 'everything',
    text: {
      en: {
        firing: 'The canary of cluster {name} was rolled back.',
        resolved: 'A canary of cluster {name} was promoted.',
      },
      'zh-CN': { firing: '集群 {name} 的灰度已回滚。', resolved: '集群 {name} 的灰度已全量发布。' },
    },
  },
  config_rollout_no_canary: {
    order: 100,
    audience: 'everything',
    text: {
      en: {
        firing: 'A change went to all nodes of cluster {name} at once: no node of its canary was connected.',
        resolved: 'Changes of cluster {name} are tried on its canary again.',
      },
      'zh-CN': {
        firing: '集群 {name} 的一次更改直接下发到了所有节点：没有灰度节点在线。',
        resolved: '集群 {name} 的更改已重新先经灰度。',
      },
    },
  },
  changes_undone: {
    order: 110,
    audience: 'everything',
    text: {
      en: {
        firing: 'Changes of cluster {name} were undone automatically.',
        resolved: 'No change of cluster {name} was undone in the last 24 hours.',
      },
      'zh-CN': { firing: '集群 {name} 的更改被自动撤销。', resolved: '集群 {name} 在最近 24 小时内没有撤销更改。' },
    },
  },
} satisfies AlertKindEntries;
