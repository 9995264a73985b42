import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  DNS_CREDENTIAL_NOT_FOUND: entry(404, 'This DNS credential does not exist.'),
  DNS_CREDENTIAL_IN_USE: entry(
    409,
    'The DNS credential is in use: by the certificates `data.certificates`, by the clusters `data.clusters`, or by DNS ' +
      'records that are still to be removed (`data.records`).',
  ),
} satisfies ErrorEntries;
