import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  LIVE_STREAM_LIMIT: entry(429, 'Too many streams of live updates are open; data.limit may be at a time.'),
} satisfies ErrorEntries;
