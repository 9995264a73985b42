import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  RULE_INVALID: entry(400, 'A rule is not valid, or a rule needs what the change takes away; see data.'),
  IP_LIST_REFERENCE_UNKNOWN: entry(404, 'A rule names IP lists that are not there; see data.lists.'),
} satisfies ErrorEntries;
