import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  USAGE_RANGE_INVALID: entry(
    400,
    '`from` and `to` must be multiples of 5 minutes, `to` after `from`, and the range within the limit. ' +
      'Use for example 2026-01-01T00:05:00Z.',
  ),
  USAGE_CURSOR_INVALID: entry(
    400,
    'The cursor is not valid. Use `nextCursor` of the previous page, with the same range.',
  ),
} satisfies ErrorEntries;
