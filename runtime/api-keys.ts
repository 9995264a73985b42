// Keys of the public API, whoever owns them: how a secret is made and what is kept of it.
import { createHash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;
/** Of the key, shown in lists: the mark and six characters. */
const SHOWN = 10;

export interface NewSecret {
  secret: string;
  /** What lists show of it. */
  prefix: string;
  secretHash: Buffer;
}

/** A new secret that begins with the mark, such as `ewk_`. */
export function newSecret(mark: string): NewSecret {
  const secret = `${mark}${randomBytes(SECRET_BYTES).toString('base64url')}`;
  return { secret, prefix: secret.slice(0, SHOWN), secretHash: createHash('sha256').update(secret).digest() };
}
