import type { AttentionEntries } from '../attention-entry.ts';

export const attention = {
  node_channel: { order: 100, level: 'act', page: '/settings' },
} satisfies AttentionEntries;
