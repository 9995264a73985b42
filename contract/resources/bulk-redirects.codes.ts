import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  BULK_REDIRECT_HOST_UNKNOWN: entry(
    400,
    'Some sources name hosts that are not domains of the site; see `data.hosts`. Add the domains or ' +
      'change the sources.',
  ),
} satisfies ErrorEntries;
