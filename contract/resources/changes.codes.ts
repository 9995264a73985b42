import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  CHANGE_NOT_FOUND: entry(404, 'There is no such change.'),
} satisfies ErrorEntries;
