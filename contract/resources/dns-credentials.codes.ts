import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  DNS_CREDENTIAL_NOT_FOUND: entry(404, 'There is no such DNS credential.'),
  DNS_CREDENTIAL_IN_USE: entry(
    409,
    'Certificates use the DNS credential, see data.certificates; or records are still to be removed, see data.records.',
  ),
} satisfies ErrorEntries;
