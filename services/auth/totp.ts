// Codes of an authenticator app (RFC 6238): six digits, a new one every 30 s, the one before and the one after accepted.
import { Secret, TOTP } from 'otpauth';

const ISSUER = 'Edge Delivery Console';
const PERIOD_SECONDS = 30;
const WINDOW = 1;
const SECRET_BYTES = 20;

export function newTotpSecret(): Uint8Array {
  return new Secret({ size: SECRET_BYTES }).bytes;
}

function totp(secret: Uint8Array, label: string): TOTP {
  const bytes = new Uint8Array(secret);
  return new TOTP({
    issuer: ISSUER,
    label,
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_SECONDS,
    secret: new Secret({ buffer: bytes.buffer }),
  });
}

/** otpauth:// address that an authenticator app takes, usually as a QR code. */
export function totpUri(secret: Uint8Array, email: string): string {
  return totp(secret, email).toString();
}

/** The 30 s step, counted from 1970, that the code belongs to; null when it belongs to none around `now`. */
export function stepOf(secret: Uint8Array, code: string, now: Date): number | null {
  const timestamp = now.getTime();
  const delta = totp(secret, '').validate({ token: code, timestamp, window: WINDOW });
  return delta === null ? null : Math.floor(timestamp / 1000 / PERIOD_SECONDS) + delta;
}
