import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  PROTECTION_POW_DIFFICULTY: entry(400, '`powHighDifficulty` is below `powDifficulty`. Use at least `data.min`.'),
} satisfies ErrorEntries;

export const attention = {
  sites_under_attack: { order: 50, level: 'watch', page: '/protection/incidents' },
} satisfies AttentionEntries;

export const reasons = {
  site_protection_updated: 'Site protection changed.',
  challenge_keys_rotated: 'Challenge keys rotated.',
} satisfies ReasonEntries;
