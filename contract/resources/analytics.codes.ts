import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ANALYTICS_PERIOD_INVALID: entry(
    400,
    '`from` and `to` go together and without `range`; `from` is before `to` and now, and at most 365 days ago.',
  ),
  ANALYTICS_QUERY_INVALID: entry(
    400,
    'Bytes are not counted by status, and nodes not by site. Use `metric=requests` with `statusClass` and `by=status`, and ' +
      'omit `siteId` with `by=node`. A site and a cluster are not asked for at the same time.',
  ),
} satisfies ErrorEntries;
