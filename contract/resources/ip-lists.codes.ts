import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  IP_LIST_NOT_FOUND: entry(404, 'This IP list does not exist.'),
  IP_LIST_NAME_TAKEN: entry(409, 'Another IP list already has this `name`. Choose another one.'),
  IP_LIST_LIMIT: entry(409, 'The limit of IP lists or of their entries is reached. Delete lists or entries first.'),
  IP_LIST_IN_USE: entry(409, 'Rules still refer to the IP list. Remove the references first.'),
} satisfies ErrorEntries;

export const reasons = {
  rules_updated: 'Rules or IP lists changed.',
} satisfies ReasonEntries;
