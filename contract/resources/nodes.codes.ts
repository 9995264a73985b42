import type { AlertKindEntries } from '../alert-kind.ts';
import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  NODE_NOT_FOUND: entry(404, 'This node does not exist.'),
  NODE_OFFLINE: entry(
    409,
    'The node in `data.node` is not connected, or did not respond in time. Choose another node.',
  ),
  NODE_TASK_FAILED: entry(409, 'The node in `data.node` could not do the task; `data.code` is its result code.'),
} satisfies ErrorEntries;

export const attention = {
  nodes_unhealthy: { order: 10, level: 'act', page: '/nodes' },
  nodes_lagging: { order: 20, level: 'watch', page: '/nodes' },
  nodes_bans_unapplied: { order: 60, level: 'watch', page: '/nodes' },
  node_certificates_ending: { order: 70, level: 'act', page: '/nodes' },
  nodes_proxy_peers_unset: { order: 80, level: 'act', page: '/nodes' },
} satisfies AttentionEntries;

export const alerts = {
  node_offline: {
    order: 10,
    audience: 'cluster',
    text: {
      en: { firing: 'Node {name} does not respond.', resolved: 'Node {name} responds again.' },
      'zh-CN': { firing: '节点 {name} 没有响应。', resolved: '节点 {name} 已恢复响应。' },
    },
  },
} satisfies AlertKindEntries;
