import type { AlertKindEntries } from '../alert-kind.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';

export const errors = {
  CERTIFICATE_NOT_FOUND: entry(404, 'This certificate does not exist.'),
  CERTIFICATE_INVALID: entry(
    400,
    'The certificate cannot be used; `data.reason` says why, and `data.index` gives its position in the chain.',
  ),
  CERTIFICATE_CHAIN_FOREIGN_BLOCK: entry(
    400,
    '`chainPem` contains a PEM block that is not a certificate; see `data.label`. Remove it.',
  ),
  CERTIFICATE_CHAIN_UNREADABLE: entry(
    400,
    'A certificate in `chainPem` cannot be read; `data.index` gives its position.',
  ),
  CERTIFICATE_CHAIN_ORDER: entry(
    400,
    'A certificate in `chainPem` was not issued by the one after it; `data.index` gives its position. ' +
      'Reorder the chain.',
  ),
  CERTIFICATE_CHAIN_EXPLICIT_CURVE: entry(
    400,
    'A certificate in `chainPem` has explicit curve parameters; `data.index` gives its position. Use one ' +
      'with a named curve.',
  ),
  CERTIFICATE_KEY_UNREADABLE: entry(
    400,
    '`privateKeyPem` cannot be read or is encrypted. Send an unencrypted key in PEM.',
  ),
  CERTIFICATE_KEY_MISMATCH: entry(400, '`privateKeyPem` does not belong to the certificate. Send the matching key.'),
  CERTIFICATE_KEY_EXPLICIT_CURVE: entry(
    400,
    'The key in `privateKeyPem` has explicit curve parameters. Use a key with a named curve.',
  ),
  CERTIFICATE_KEY_TYPE_UNSUPPORTED: entry(
    400,
    'The key type is not supported. Use RSA with at least 2048 bits, or ECDSA P-256, P-384 or P-521.',
  ),
  CERTIFICATE_NOT_CURRENTLY_VALID: entry(
    400,
    'The certificate is not valid now; its period is `data.notBefore` to `data.notAfter`. Upload a valid one.',
  ),
  CERTIFICATE_NO_DNS_NAMES: entry(
    400,
    'The certificate has no DNS name. Use one with at least one DNS name as subject alternative name.',
  ),
  CERTIFICATE_DOMAIN_MISMATCH: entry(
    400,
    'The certificates do not cover every domain; `data.domains` lists the uncovered ones. Choose ' +
      'certificates that cover them.',
  ),
  CERTIFICATE_UNAVAILABLE: entry(
    409,
    'The certificate is not issued yet or has expired. Choose another one, or wait until it is issued.',
  ),
  CERTIFICATE_NOT_UPLOADED: entry(
    409,
    'The certificate was issued by a CA and cannot be replaced by an upload. Renew it instead.',
  ),
  CERTIFICATE_IN_USE: entry(409, 'Sites still use the certificate; see `data.sites`. Remove it from them first.'),
  CERTIFICATE_BUSY: entry(409, 'The certificate is being issued. Retry when its order has finished.'),
} satisfies ErrorEntries;

export const reasons = {
  certificate_updated: 'HTTPS settings or certificates changed.',
} satisfies ReasonEntries;

export const alerts = {
  certificate_expiring: {
    order: 20,
    audience: 'site',
    text: {
      en: {
        firing: 'The certificate of site {name} ends on {notAfter}.',
        resolved: 'The certificate of site {name} was renewed.',
      },
      'zh-CN': { firing: '站点 {name} 的证书将于 {notAfter} 到期。', resolved: '站点 {name} 的证书已续期。' },
    },
  },
  certificate_failed: {
    order: 30,
    audience: 'everything',
    text: {
      en: {
        firing: 'Certificate {name} cannot be issued: {error}.',
        resolved: 'Certificate {name} has no failed order.',
      },
      'zh-CN': { firing: '证书 {name} 无法签发：{error}。', resolved: '证书 {name} 已没有失败的订单。' },
    },
  },
} satisfies AlertKindEntries;
