// Requests in a row, counted in Redis over all gateways. One question is under way at a time and asks for everything that
// came in meanwhile: the busier the console, the less a request costs; alone, a request waits for nobody. A round trip
// costs the process a third of what answering a read costs it, so busy questions are a moment apart.
import type { Redis } from 'ioredis';

// A key of Redis lives as long as its count: its expiry is the restart. Of each key, in turn: how many of its requests
// count, and the milliseconds that the others have to wait.
const SCRIPT = `
local limit = tonumber(ARGV[1])
local answers = {}
for i, key in ipairs(KEYS) do
  local before = tonumber(redis.call('GET', key) or '0')
  local wanted = tonumber(ARGV[i + 2])
  local counted = math.max(0, math.min(wanted, limit - before))
  if counted > 0 then redis.call('SET', key, before + counted, 'PX', ARGV[2]) end
  answers[2 * i - 1] = counted
  answers[2 * i] = counted < wanted and math.max(1, redis.call('PTTL', key)) or 0
end
return answers
`;

/** A question about so many requests is followed by the next after a moment at the earliest. */
const BUSY = 3;
const MOMENT_MS = 1;

interface ScriptedRedis extends Redis {
  svcCountRequests(keys: number, ...keysLimitRestartWanted: (string | number)[]): Promise<number[]>;
}

interface Waiting {
  resolve(ms: number): void;
  reject(error: unknown): void;
}

/** Those who wait, by key, in the order in which they came. */
type Question = Map<string, Waiting[]>;

export class SharedCounts {
  readonly #redis: ScriptedRedis;
  readonly #prefix: string;
  readonly #limit: number;
  readonly #restartMs: number;
  #next: Question = new Map();
  #asking = false;

  constructor(redis: Redis, prefix: string, limit: number, restartMs: number) {
    this.#redis = redis as ScriptedRedis;
    this.#prefix = prefix;
    this.#limit = limit;
    this.#restartMs = restartMs;
    if (!this.#redis.svcCountRequests) this.#redis.defineCommand('svcCountRequests', { lua: SCRIPT });
  }

  /** Counts a request; answers 0, or the milliseconds to wait for a request that is refused and does not count. */
  take(key: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const waiting = this.#next.get(key);
      if (waiting) waiting.push({ resolve, reject });
      else this.#next.set(key, [{ resolve, reject }]);
      if (this.#asking) return;
      this.#asking = true;
      // What arrived in the same turn of the loop goes along.
      setImmediate(() => this.#ask());
    });
  }

  async #ask(): Promise<void> {
    const question = this.#next;
    const asked = performance.now();
    let requests = 0;
    this.#next = new Map();
    try {
      const keys = [...question.keys()].map((key) => this.#prefix + key);
      const wanted = [...question.values()].map(({ length }) => length);
      const answers = await this.#redis.svcCountRequests(keys.length, ...keys, this.#limit, this.#restartMs, ...wanted);
      let at = 0;
      for (const waiting of question.values()) {
        requests += waiting.length;
        const [counted, wait] = [answers[at++]!, answers[at++]!];
        for (const [index, { resolve }] of waiting.entries()) resolve(index < counted ? 0 : wait);
      }
    } catch (error) {
      // Whoever came meanwhile would wait as long for as little.
      for (const each of [question, this.#next]) for (const { reject } of [...each.values()].flat()) reject(error);
      this.#next = new Map();
    }
    if (requests >= BUSY && performance.now() < asked + MOMENT_MS) setTimeout(() => this.#goOn(), MOMENT_MS);
    else this.#goOn();
  }

  #goOn(): void {
    if (this.#next.size > 0) setImmediate(() => this.#ask());
    else this.#asking = false;
  }
}
