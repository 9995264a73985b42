import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  LIVE_STREAM_LIMIT: entry(429, 'Too many live update streams are open; the limit is `data.limit`. Close one first.'),
} satisfies ErrorEntries;
