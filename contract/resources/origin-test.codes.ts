import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ORIGIN_TEST_LIMIT: entry(
    429,
    'Too many origin tests; a user may run `data.limit` in a minute. Retry after `data.retryAfterSeconds` seconds.',
  ),
} satisfies ErrorEntries;
