import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SETUP_DONE: entry(403, 'The console is already set up.'),
  SETUP_IN_PROGRESS: entry(409, 'Another setup is running.'),
  SETUP_TOKEN_INVALID: entry(403, 'The setup token is wrong; the console logs it at every start.'),
} satisfies ErrorEntries;
