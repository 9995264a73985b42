// Why a step of a test failed, in the contract's words.
import { AddressRefused } from '../address-policy.ts';

export const FAILURES = [
  'not_found',
  'forbidden',
  'refused',
  'unreachable',
  'timeout',
  'closed',
  'certificate_expired',
  'certificate_name',
  'certificate_untrusted',
  'handshake',
  'not_http2',
  'not_http',
] as const;
export type Failure = (typeof FAILURES)[number];

/** A step that failed by a word of the contract, or by the error in `cause`. */
export class StepFailed extends Error {
  constructor(cause: unknown) {
    super('the step of an origin test failed', { cause });
    this.name = 'StepFailed';
  }
}

const CODES: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'certificate_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate_untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate_untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate_untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate_untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate_untrusted',
};

/** The failure that an error of a step means. */
export function failureOf(error: unknown): Failure {
  if (error instanceof AddressRefused) {
    if (error.reason === 'forbidden') return 'forbidden';
    return error.reason === 'timeout' ? 'timeout' : 'not_found';
  }
  if (error instanceof StepFailed) return error.cause as Failure;
  const { code = '', name = '' } = (error ?? {}) as { code?: unknown; name?: string };
  if (name === 'TimeoutError') return 'timeout';
  const known = CODES[String(code)];
  if (known) return known;
  if (/NO_APPLICATION_PROTOCOL/.test(String(code))) return 'not_http2';
  if (/^HPE_|^ERR_HTTP2_|^ERR_HTTP_/.test(String(code))) return 'not_http';
  if (/^ERR_SSL|^ERR_TLS|^EPROTO|^CERT_/.test(String(code))) return 'handshake';
  return 'closed';
}
