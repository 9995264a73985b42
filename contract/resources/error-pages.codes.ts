import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  ERROR_PAGE_TOO_LARGE: entry(
    400,
    'The template for the status in `data.status` is larger than `data.limit` bytes. Shorten it, or move styles and images into files.',
  ),
} satisfies ErrorEntries;

export const reasons = {
  site_error_pages_updated: 'Error pages of a site changed.',
  error_pages_updated: 'Global error pages changed.',
  site_maintenance_updated: 'Maintenance of a site changed.',
} satisfies ReasonEntries;
