import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  INVALID_CREDENTIALS: entry(401, 'The email address or the password is wrong.'),
  SIGN_IN_RATE_LIMITED: entry(429, 'Too many attempts. Wait `data.retryAfterSeconds` seconds.'),
  INVALID_PASSWORD: entry(400, 'The current password is wrong.'),
  INVALID_CODE: entry(400, 'The code is wrong or was already used. Enter the next one.'),
  SECOND_STEP_EXPIRED: entry(401, 'The second step took too long or failed too often. Sign in again.'),
  TWO_FACTOR_ENABLED: entry(409, 'Two-factor sign-in is already on. Turn it off first.'),
  TWO_FACTOR_NOT_PENDING: entry(409, 'No two-factor setup is pending. Start the setup again.'),
  PASSKEY_REFUSED: entry(400, 'The passkey was not accepted. Start again.'),
  PASSKEY_NOT_FOUND: entry(404, 'This passkey does not exist.'),
  PASSKEY_LIMIT: entry(409, 'The limit of `data.limit` passkeys is reached. Delete one first.'),
  PASSKEYS_UNAVAILABLE: entry(
    409,
    'Passkeys need a host name in the public URL, and `data.publicUrl` has an IP address. Set a public ' +
      'URL with a host name.',
  ),
} satisfies ErrorEntries;
