import type { AttentionEntries } from '../attention-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const attention = {
  under_attack_on: { order: 40, level: 'watch', page: '/protection/incidents' },
} satisfies AttentionEntries;

export const reasons = {
  platform_protection_updated: 'Global protection changed.',
  cc_template_updated: 'CC mitigation template changed.',
} satisfies ReasonEntries;
