import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  CHANGE_NOT_FOUND: entry(404, 'This change does not exist or is no longer kept.'),
} satisfies ErrorEntries;
