import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SETUP_DONE: entry(403, 'The console is already set up. Sign in instead.'),
  SETUP_IN_PROGRESS: entry(409, 'Another setup is running. Retry when it has finished.'),
  SETUP_TOKEN_INVALID: entry(403, 'The setup token is wrong. The console logs the current one at each start.'),
} satisfies ErrorEntries;
