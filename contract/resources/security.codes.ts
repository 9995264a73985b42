import type { AttentionEntries } from '../attention-entry.ts';

export const attention = {
  sites_above_normal: { order: 30, level: 'watch', page: '/protection/incidents' },
} satisfies AttentionEntries;
