import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ENROLLMENT_TOKEN_NOT_FOUND: entry(404, 'This enrollment token does not exist.'),
} satisfies ErrorEntries;
