import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  CERTIFICATE_NOT_ORDERED: entry(
    409,
    'The certificate was uploaded and cannot be renewed by a CA. Upload its successor instead.',
  ),
  ACME_DIRECTORY_NOT_CONFIGURED: entry(
    409,
    'No ACME directory of a custom CA is configured. Set it in the settings first.',
  ),
} satisfies ErrorEntries;
