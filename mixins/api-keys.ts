// Keys of the public API, whoever owns them: how a secret is made, what is kept of it, and how gateways forget it.
import { createHash, randomBytes } from 'node:crypto';
import type { Runtime } from './runtime.ts';

/** Redis channel on which hashes (hexadecimal SHA-256) of keys to forget are told; prefixed like every name. */
export const REVOKED_CHANNEL = 'svc:revoked-keys';

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

/** Makes every gateway ask for these keys anew: at once, or within 5 s while Redis is away. Call it after the commit. */
export async function forgetKeys({ redis, env, log }: Runtime, hashes: readonly Buffer[]): Promise<void> {
  try {
    const channel = env.redisPrefix + REVOKED_CHANNEL;
    await Promise.all(hashes.map((hash) => redis.publish(channel, hash.toString('hex'))));
  } catch (err) {
    log.warn({ err }, 'telling gateways of a revoked key failed');
  }
}
