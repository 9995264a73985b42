// At most 600 requests in a row with one access key; the count restarts when more than 60 s pass without a request that
// counted. Counted in Redis, so that it holds over several gateways; refused requests neither count nor move the clock.
import { Counter } from 'prom-client';
import type { Runtime } from '../../runtime/runtime.ts';
import { LocalCounts } from './local-counts.ts';
import { SharedCounts } from './shared-counts.ts';

export const REQUESTS_IN_A_ROW = 600;
export const RESTART_MS = 60_000;
/** While Redis is away one request in this time asks it: a Redis that hangs costs each question its full time. */
const ASK_AGAIN_MS = 1_000;

export interface RateLimit {
  /** Seconds to wait before the next request; 0 when this one may go on. */
  secondsToWait(keyId: string): Promise<number>;
}

/** A limiter that counts in this process alone while Redis is away, and says so in the log and in a metric. */
export function createRateLimit(runtime: Runtime): RateLimit {
  const prefix = `${runtime.env.redisPrefix}svc:rate:`;
  const shared = new SharedCounts(runtime.redis, prefix, REQUESTS_IN_A_ROW, RESTART_MS);
  const countedAlone = new Counter({
    name: 'svc_gateway_requests_counted_alone_total',
    help: 'Requests with an access key that were counted without Redis',
    registers: [runtime.metrics],
  });
  /** Set while Redis is away: what this process let pass since then. */
  let alone: LocalCounts | null = null;
  let askAgainAt = 0;
  const countAlone = (keyId: string): number => {
    countedAlone.inc();
    alone ??= new LocalCounts(REQUESTS_IN_A_ROW, RESTART_MS);
    return seconds(alone.take(keyId, performance.now()));
  };
  const secondsToWait = async (keyId: string): Promise<number> => {
    if (alone !== null) {
      if (performance.now() < askAgainAt) return countAlone(keyId);
      askAgainAt = performance.now() + ASK_AGAIN_MS;
    }
    try {
      const wait = await shared.take(keyId);
      if (alone !== null) runtime.log.info('gateways share request counts again');
      alone = null;
      return seconds(wait);
    } catch (err) {
      if (alone === null) runtime.log.warn({ err }, 'redis is unavailable, each gateway counts requests alone');
      askAgainAt = performance.now() + ASK_AGAIN_MS;
      return countAlone(keyId);
    }
  };
  return { secondsToWait };
}

const seconds = (ms: number) => Math.ceil(ms / 1000);
