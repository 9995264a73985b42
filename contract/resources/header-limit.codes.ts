import type { ReasonEntries } from '../reason-entry.ts';

export const reasons = {
  header_limit_updated: 'Largest header field changed.',
} satisfies ReasonEntries;
