import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  IP_LIST_NOT_FOUND: entry(404, 'There is no such IP list.'),
  IP_LIST_NAME_TAKEN: entry(409, 'Another IP list has this name.'),
  IP_LIST_LIMIT: entry(409, 'The limit of IP lists or of their entries is reached.'),
  IP_LIST_IN_USE: entry(409, 'The IP list is still referenced.'),
} satisfies ErrorEntries;

export const reasons = {
  rules_updated: 'Rules or IP lists changed.',
} satisfies ReasonEntries;
