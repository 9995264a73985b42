import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  LOG_HEADER_FORBIDDEN: entry(
    400,
    'The header in `data.name` often carries credentials and is never logged. Remove it from `logHeaders`.',
  ),
  LOG_UNTIL_INVALID: entry(
    400,
    '`sampleUntil` must be later than now, and not later than `data.latest`. For sampling without an end, use null.',
  ),
  LOG_RANGE_INVALID: entry(
    400,
    '`from` must be before `to` and not before `data.earliest`, the first day that is kept; `to` is at most 5 minutes ahead.',
  ),
  LOG_FILTER_INVALID: entry(400, 'The filter `data.name` is not an IP address or CIDR.'),
  LOG_CURSOR_INVALID: entry(
    400,
    'The cursor is not valid. Use `nextCursor` of the previous page, with the same filter.',
  ),
  LOG_QUERY_TOO_LARGE: entry(
    400,
    'The search did not end within `data.seconds` seconds. Use a shorter range, or a filter that fewer rows match.',
  ),
} satisfies ErrorEntries;

export const siteFeatures = {
  logs: { capability: 'access-logs-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  site_logs_updated: 'Log settings of a site changed.',
} satisfies ReasonEntries;
