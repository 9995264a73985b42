import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  BULK_REDIRECT_HOST_UNKNOWN: entry(400, 'Sources name hosts that are no domains of the site; see data.hosts.'),
} satisfies ErrorEntries;
