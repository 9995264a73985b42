import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ACCESS_KEY_READ_ONLY: entry(403, 'This access key may only read.'),
  ACCESS_KEY_SESSION_REQUIRED: entry(403, 'Access keys are created from a signed-in console session only.'),
  ACCESS_KEY_NOT_FOUND: entry(404, 'There is no such access key.'),
} satisfies ErrorEntries;
