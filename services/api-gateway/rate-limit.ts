// At most 600 requests in a row with one access key; the count restarts when more than 60 s pass without a request that
// counted. Counted in Redis, so that it holds over several gateways; refused requests neither count nor move the clock.
import type { Redis } from 'ioredis';
import { Counter } from 'prom-client';
import type { Runtime } from '../../mixins/runtime.ts';

export const REQUESTS_IN_A_ROW = 600;
export const RESTART_MS = 60_000;

// The key lives as long as the count: its expiry is the restart. Answers 0, or the milliseconds left.
const SCRIPT = `
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n >= tonumber(ARGV[1]) then
  return math.max(1, redis.call('PTTL', KEYS[1]))
end
redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[2])
return 0
`;

interface ScriptedRedis extends Redis {
  svcRateLimit(key: string, limit: number, restartMs: number): Promise<number>;
}

export interface RateLimit {
  /** Seconds to wait before the next request; 0 when this one may go on. */
  secondsToWait(keyId: string): Promise<number>;
}

/** A limiter that lets requests pass while Redis is away, and says so in the log and in a metric. */
export function createRateLimit(runtime: Runtime): RateLimit {
  const redis = runtime.redis as ScriptedRedis;
  if (!redis.svcRateLimit) redis.defineCommand('svcRateLimit', { numberOfKeys: 1, lua: SCRIPT });
  const prefix = `${runtime.env.redisPrefix}svc:rate:`;
  const uncounted = new Counter({
    name: 'svc_gateway_uncounted_requests_total',
    help: 'Requests with an access key that were not counted because Redis did not answer',
    registers: [runtime.metrics],
  });
  let counting = true;
  return {
    async secondsToWait(keyId) {
      try {
        const wait = await redis.svcRateLimit(prefix + keyId, REQUESTS_IN_A_ROW, RESTART_MS);
        if (!counting) runtime.log.info('requests are counted again');
        counting = true;
        return Math.ceil(wait / 1000);
      } catch (err) {
        uncounted.inc();
        if (counting) runtime.log.warn({ err }, 'requests are not counted while redis is away');
        counting = false;
        return 0;
      }
    },
  };
}
