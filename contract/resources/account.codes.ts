import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  INVALID_CREDENTIALS: entry(401, 'E-mail address or password is wrong.'),
  SIGN_IN_RATE_LIMITED: entry(429, 'Too many attempts; wait data.retryAfterSeconds.'),
  INVALID_PASSWORD: entry(400, 'The current password is wrong.'),
  INVALID_CODE: entry(400, 'The code is wrong, or was used before.'),
  SECOND_STEP_EXPIRED: entry(401, 'The second step took too long or failed too often; sign in again.'),
  TWO_FACTOR_ENABLED: entry(409, 'Two-factor sign-in is on; turn it off first.'),
  TWO_FACTOR_NOT_PENDING: entry(409, 'No secret waits for its first code.'),
  PASSKEY_REFUSED: entry(400, 'The passkey was not accepted; start again.'),
  PASSKEY_NOT_FOUND: entry(404, 'There is no such passkey.'),
  PASSKEY_LIMIT: entry(409, 'There are data.limit passkeys already.'),
  PASSKEYS_UNAVAILABLE: entry(409, 'Passkeys need a host name in data.publicUrl, not an address.'),
} satisfies ErrorEntries;
