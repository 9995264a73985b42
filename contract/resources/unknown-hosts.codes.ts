import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  DEFAULT_SITE_INVALID: entry(400, 'The default site is not an enabled site of the cluster. Choose one that is.'),
  DEFAULT_SITE_CERTIFICATE_REQUIRED: entry(
    409,
    'The default site has no certificate. Give it one, or turn off `defaultCertificate`.',
  ),
} satisfies ErrorEntries;

export const reasons = {
  unknown_hosts_updated: 'Response to unknown hosts changed.',
} satisfies ReasonEntries;
