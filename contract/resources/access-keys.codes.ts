import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ACCESS_KEY_READ_ONLY: entry(403, 'This access key is read-only. Use a key with the scope `readwrite`.'),
  ACCESS_KEY_SESSION_REQUIRED: entry(
    403,
    'Only a signed-in console session can create access keys. Sign in to the console.',
  ),
  ACCESS_KEY_NOT_FOUND: entry(404, 'This access key does not exist.'),
} satisfies ErrorEntries;
