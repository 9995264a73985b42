import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ALERT_SILENCE_NOT_FOUND: entry(404, 'This silence does not exist, or has ended.'),
  ALERT_SILENCE_LIMIT: entry(409, 'There are `data.limit` silences already. End one first.'),
} satisfies ErrorEntries;
