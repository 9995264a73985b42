import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  CERTIFICATE_NOT_ORDERED: entry(409, 'The certificate was uploaded; upload the next one instead.'),
  ACME_DIRECTORY_NOT_CONFIGURED: entry(409, 'No directory of a certificate authority of your own is configured.'),
} satisfies ErrorEntries;
