import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  CERTIFICATE_NOT_FOUND: entry(404, 'There is no such certificate.'),
  CERTIFICATE_INVALID: entry(
    400,
    'The certificate cannot be used; data.reason says why, data.index which of the chain.',
  ),
  CERTIFICATE_CHAIN_FOREIGN_BLOCK: entry(400, 'The chain holds something else than certificates; see data.label.'),
  CERTIFICATE_CHAIN_UNREADABLE: entry(400, 'A certificate of the chain cannot be read; see data.index.'),
  CERTIFICATE_CHAIN_ORDER: entry(400, 'A certificate was not issued by the one that follows it; see data.index.'),
  CERTIFICATE_CHAIN_EXPLICIT_CURVE: entry(
    400,
    'A certificate spells its curve out instead of naming it; see data.index.',
  ),
  CERTIFICATE_KEY_UNREADABLE: entry(400, 'The key cannot be read, or is encrypted.'),
  CERTIFICATE_KEY_MISMATCH: entry(400, 'The key is not that of the certificate.'),
  CERTIFICATE_KEY_EXPLICIT_CURVE: entry(400, 'The key spells its curve out instead of naming it.'),
  CERTIFICATE_KEY_TYPE_UNSUPPORTED: entry(400, 'Keys are RSA of at least 2048 bits or ECDSA P-256, P-384 or P-521.'),
  CERTIFICATE_NOT_CURRENTLY_VALID: entry(
    400,
    'The certificate is not valid now; see data.notBefore and data.notAfter.',
  ),
  CERTIFICATE_NO_DNS_NAMES: entry(400, 'The certificate names no DNS name.'),
  CERTIFICATE_DOMAIN_MISMATCH: entry(400, 'The certificates do not cover every domain; see data.domains.'),
  CERTIFICATE_UNAVAILABLE: entry(409, 'The certificate was not issued yet, or has expired.'),
  CERTIFICATE_NOT_UPLOADED: entry(409, 'The certificate is issued by an authority; renew it instead.'),
  CERTIFICATE_IN_USE: entry(409, 'Sites use the certificate; see data.sites.'),
  CERTIFICATE_BUSY: entry(409, 'The certificate is being issued.'),
} satisfies ErrorEntries;

export const reasons = {
  certificate_updated: 'HTTPS settings or certificates changed.',
} satisfies ReasonEntries;
