import type { Redis } from 'ioredis';
import { REVOKED_CHANNEL } from '../../mixins/api-keys.ts';
import { SESSIONS_ENDED_CHANNEL } from '../../mixins/auth-action.ts';
import type { Runtime } from '../../mixins/runtime.ts';

export interface RevocationHandlers {
  /** Hash of a key that any process revoked. While Redis is away, the cache's own 5 s hold. */
  onKey(hash: string): void;
  /** Some session ended in any process. */
  onSessions(): void;
}

/** Hears what other processes revoke. */
export function watchRevocations(runtime: Runtime, { onKey, onSessions }: RevocationHandlers): Redis {
  const { redisPrefix } = runtime.env;
  const [keys, sessions] = [redisPrefix + REVOKED_CHANNEL, redisPrefix + SESSIONS_ENDED_CHANNEL];
  const redis = runtime.newRedis();
  redis.on('message', (channel, message) => {
    if (channel === keys) onKey(message);
    else onSessions();
  });
  redis.subscribe(keys, sessions).catch((err) => runtime.log.debug({ err }, 'subscribing to revocations ended'));
  return redis;
}
