import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  PROTECTION_POW_DIFFICULTY: entry(400, 'powHighDifficulty is below powDifficulty, which is data.min.'),
} satisfies ErrorEntries;
