import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  ACME_DIRECTORY_INVALID: entry(
    400,
    'The ACME directory cannot be read; `data.reason` says why. Check `url` and `caPem`.',
  ),
  ACME_DIRECTORY_CA_INVALID: entry(400, 'The CA certificates in `caPem` cannot be used; `data.reason` says why.'),
  ACME_DIRECTORY_EAB_INCOMPLETE: entry(
    400,
    'An external account needs both `eabKid` and `eabHmacKey`. Send both or neither.',
  ),
} satisfies ErrorEntries;
