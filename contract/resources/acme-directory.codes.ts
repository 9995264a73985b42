import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ACME_DIRECTORY_INVALID: entry(400, 'The directory cannot be read; data.reason says how far one came.'),
  ACME_DIRECTORY_CA_INVALID: entry(400, 'The authorities of the directory cannot be used; data.reason says why.'),
  ACME_DIRECTORY_EAB_INCOMPLETE: entry(400, 'An external account has an id and a key.'),
} satisfies ErrorEntries;
