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
  Type.String({ minLength: 1, maxLength: 2048, description: 'Its address, https; null: there is none.' }),
);
const CaPem = Type.String({
  maxLength: 131_072,
  description: `Authorities that vouch for its server, 1 to ${MAX_DIRECTORY_AUTHORITIES} in PEM; empty: those of the system.`,
});

const saved = Type.Object({
  url: Url,
  caPem: CaPem,
  eabKid: EabKid,
  eabHmacKeySet: Type.Boolean({ description: 'Whether the key of the external account is there.' }),
  updatedAt: Nullable(Timestamp),
});

export const acmeDirectory = resource(
  'settings.acmeDirectory',
  settings({
    path: '/settings/acme-directory',
    of: {},
    reads: 'Answers where your own certificate authority is.',
    saves: 'Sets where your own certificate authority is; its directory is read first.',
    change: {
      url: Url,
      caPem: Type.Optional(CaPem),
      eabKid: Type.Optional(EabKid),
      eabHmacKey: Type.Optional({ ...EabHmacKey, description: 'Its key in base64url; left out: stays with its id.' }),
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
