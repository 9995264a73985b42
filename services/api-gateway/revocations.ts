import type { Redis } from 'ioredis';
import { REVOKED_CHANNEL } from '../../mixins/api-keys.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import type { KeyCache } from './key-cache.ts';

/** Forgets keys that any process revokes. While Redis is away, the cache's own 5 s hold. */
export function watchRevocations(runtime: Runtime, keys: KeyCache): Redis {
  const redis = runtime.newRedis();
  redis.on('message', (_channel, hash) => keys.forget(hash));
  redis
    .subscribe(runtime.env.redisPrefix + REVOKED_CHANNEL)
    .catch((err) => runtime.log.debug({ err }, 'subscribing to revocations ended'));
  return redis;
}
