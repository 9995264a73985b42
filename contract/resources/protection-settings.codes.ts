import type { AttentionEntries } from '../attention-entry.ts';

export const attention = {
  under_attack_on: { order: 40, level: 'watch', page: '/protection/incidents' },
} satisfies AttentionEntries;
