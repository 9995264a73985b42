import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  USAGE_RANGE_INVALID: entry(
    400,
    'from and to are not multiples of five minutes, to is not after from, or they are too far apart for what is asked.',
  ),
  USAGE_CURSOR_INVALID: entry(400, 'The cursor is not one that a page of this list answered.'),
} satisfies ErrorEntries;
