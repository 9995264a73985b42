import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  DEFAULT_SITE_INVALID: entry(400, 'The default site must be an enabled site of the cluster.'),
  DEFAULT_SITE_CERTIFICATE_REQUIRED: entry(409, 'The default site has no certificate.'),
} satisfies ErrorEntries;

export const reasons = {
  unknown_hosts_updated: 'Answer to unknown hosts changed.',
} satisfies ReasonEntries;
