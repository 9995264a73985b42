// Takes parts of the gateway out of the console of this process and puts them back. What a part does for a request is
// then done as plainly as can be.
import type { Redis } from 'ioredis';
import type { ServiceBroker } from 'moleculer';
import { CredentialNotices } from '../../services/api-gateway/credential-notices.ts';
import { FailedLookups } from '../../services/api-gateway/failed-lookups.ts';
import { LastUsed } from '../../services/api-gateway/last-used.ts';
import { REQUESTS_IN_A_ROW, RESTART_MS } from '../../services/api-gateway/rate-limit.ts';
import { SharedCounts } from '../../services/api-gateway/shared-counts.ts';

export type Part = 'memory' | 'sharedCounts' | 'lastUsed' | 'failedLookups';

// As the limit counts, for one request.
const COUNT = `
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
if before >= tonumber(ARGV[1]) then return redis.call('PTTL', KEYS[1]) end
redis.call('SET', KEYS[1], before + 1, 'PX', ARGV[2])
return 0`;

interface CountingRedis extends Redis {
  benchCount(key: string, limit: number, restartMs: number): Promise<number>;
}

/** Answers a function that leaves exactly the given parts out. */
export function gatewaySwitches(broker: ServiceBroker, redis: Redis): (out: readonly Part[]) => void {
  redis.defineCommand('benchCount', { lua: COUNT, numberOfKeys: 1 });
  const count = (key: string) => (redis as CountingRedis).benchCount(`bench:${key}`, REQUESTS_IN_A_ROW, RESTART_MS);
  const plain: Record<Part, object> = {
    memory: { hears: () => false },
    sharedCounts: { take: count },
    lastUsed: {
      touch: (id: string) => {
        const keys = [{ id, at: new Date().toISOString() }];
        void broker.call('accessKeys.touch', { keys });
      },
    },
    failedLookups: { ask: <T>(_address: string, _code: string, question: () => Promise<T>) => question() },
  };
  const prototypes: Record<Part, object> = {
    memory: CredentialNotices.prototype,
    sharedCounts: SharedCounts.prototype,
    lastUsed: LastUsed.prototype,
    failedLookups: FailedLookups.prototype,
  };
  const parts = Object.keys(plain) as Part[];
  const whole = new Map(parts.map((part) => [part, pick(prototypes[part], Object.keys(plain[part]))]));
  return (out) => {
    for (const part of parts) Object.assign(prototypes[part], out.includes(part) ? plain[part] : whole.get(part));
  };
}

function pick(from: object, names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, (from as Record<string, unknown>)[name]]));
}
