import Type from 'typebox';
import { resource } from '../procedure.ts';
import { ExpectedUpdatedAt, Nullable, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { EabHmacKey, EabKid } from './certificate-requests.ts';

/** Authorities that vouch for the server of a directory. */
export const MAX_DIRECTORY_AUTHORITIES = 10;
/** Why a directory cannot be used, as data.reason of ACME_DIRECTORY_INVALID has it. */
export const DIRECTORY_FAULTS = ['url', 'answer', 'refused', 'unreachable', 'timeout', 'too_large', 'tls'] as const;

const Url = Nullable(
  Type.String({ minLength: 1, maxLength: 2048, description: 'HTTPS URL of the ACME directory; null: none.' }),
);
const CaPem = Type.String({
  maxLength: 131_072,
  description:
    `CA certificates that verify the directory server, 1 to ${MAX_DIRECTORY_AUTHORITIES} in PEM; empty: ` +
    'the CAs of the system.',
});

const saved = Type.Object({
  url: Url,
  caPem: CaPem,
  eabKid: EabKid,
  eabHmacKeySet: Type.Boolean({ description: 'Whether the key of the external account is set.' }),
  updatedAt: Nullable(Timestamp),
});

export const acmeDirectory = resource(
  'settings.acmeDirectory',
  settings({
    path: '/settings/acme-directory',
    of: {},
    reads: 'Returns the ACME directory of your own certificate authority.',
    saves: 'Sets the ACME directory of your own certificate authority, after reading it.',
    change: {
      url: Url,
      caPem: Type.Optional(CaPem),
      eabKid: Type.Optional(EabKid),
      eabHmacKey: Type.Optional({
        ...EabHmacKey,
        description: 'HMAC key of the external account in base64url. If omitted, the key of the same `eabKid` stays.',
      }),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: saved,
    saved,
    audit: 'system.acme_directory_update',
    saveErrors: [
      'ACME_DIRECTORY_INVALID',
      'ACME_DIRECTORY_CA_INVALID',
      'ACME_DIRECTORY_EAB_INCOMPLETE',
      'UPDATED_AT_MISMATCH',
    ],
  }),
);
