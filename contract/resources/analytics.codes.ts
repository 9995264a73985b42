import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ANALYTICS_QUERY_INVALID: entry(
    400,
    'Bytes are not counted by status, and nodes not by site. Use `metric=requests` with `statusClass` and `by=status`, and ' +
      'omit `siteId` with `by=node`.',
  ),
} satisfies ErrorEntries;
