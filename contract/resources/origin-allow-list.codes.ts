import type { ReasonEntries } from '../reason-entry.ts';

export const reasons = {
  origin_allow_list_updated: 'Origin allow list changed.',
} satisfies ReasonEntries;
