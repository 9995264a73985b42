// Reads work streams: each message is handled at least once, by one of the readers of the group.
//
// | A message…                        | then                                                           |
// | is new                            | it is delivered, and acknowledged in batches once handled      |
// | was being handled at a crash      | the same consumer name reads it again at once, others after 30 s |
// | fails                             | it comes again after 30 s                                      |
// | failed 5 times                    | it goes to the dead-letter stream, which keeps the last 1,000  |
// | meets a Redis that lost its data  | groups are made again; messages are pointers, so none is missed |
import type { Redis } from 'ioredis';
import { pipelineMetrics } from './pipeline-metrics.ts';
import type { Runtime } from './runtime.ts';
import { deadLetterStream } from './stream-names.ts';
import { Wakeable } from './wakeable.ts';

const BLOCK_MS = 500;
/** A blocking read that takes this long has lost its Redis. */
const READ_TIMEOUT_MS = 5_000;
const BATCH = 256;
const MAX_IN_FLIGHT = 1024;
const CLAIM_IDLE_MS = 30_000;
const CLAIM_EVERY_MS = 10_000;
const MAX_TRIES = 5;
/** Kept at most; the oldest goes for a further one. */
export const DEAD_LETTERS = 1000;
const ACK_EVERY_MS = 20;
/** A handled message ends the wait. */
const LONGEST_WAIT_MS = 60_000;
const PAUSE_MS = 500;

export interface WorkMessage {
  stream: string;
  id: string;
  fields: Record<string, string>;
}

export interface WorkOptions {
  group: string;
  /** Stable across restarts, so that what a crash left is read again at once. */
  consumer: string;
  /** The streams to read now; asked before each read. */
  streams(): readonly string[];
  /** Resolves when the message needs no other try. */
  handle(message: WorkMessage): Promise<void>;
  /** For tests; the defaults are in the table above. */
  claimIdleMs?: number;
  claimEveryMs?: number;
}

type StreamReply = [stream: string, entries: [id: string, fields: string[] | null][]][];

export class WorkReader {
  readonly #runtime: Runtime;
  readonly #options: WorkOptions;
  readonly #redis: Redis;
  /** Streams whose group exists and whose own leftovers were read. */
  readonly #known = new Set<string>();
  readonly #handling = new Set<string>();
  #acknowledged: WorkMessage[] = [];
  readonly #toAcknowledge = new Wakeable();
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(runtime: Runtime, options: WorkOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#redis = runtime.newRedis();
  }

  start(): void {
    this.#running ??= Promise.all([
      this.#repeat(() => this.#read()),
      this.#repeat(() => this.#acknowledgeNext()),
      this.#repeat(() => this.#claim(), this.#options.claimEveryMs ?? CLAIM_EVERY_MS),
    ]).then(() => undefined);
  }

  /** Ends reading; messages under way are not waited for, they come again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#redis.disconnect();
    for (const wake of this.#sleeping) wake();
    this.#toAcknowledge.end();
    await this.#running;
  }

  readonly #sleeping = new Set<() => void>();

  async #sleep(ms: number): Promise<void> {
    if (this.#stopped) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#sleeping.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#sleeping.add(done);
    });
  }

  async #repeat(step: () => Promise<void>, everyMs = 0): Promise<void> {
    let failing = false;
    while (!this.#stopped) {
      try {
        await step();
        failing = false;
        if (everyMs > 0) await this.#sleep(everyMs);
      } catch (err) {
        if (this.#stopped) return;
        if (isGroupGone(err)) {
          this.#known.clear();
          continue;
        }
        const { message } = err as Error;
        if (!failing) this.#runtime.log.warn({ reason: message }, 'work stream failed, retrying');
        failing = true;
        await this.#sleep(PAUSE_MS);
      }
    }
  }

  async #read(): Promise<void> {
    // A command that waits in the queue of a connection that is down would block the next ones once it is back.
    if (this.#redis.status !== 'ready') return this.#sleep(50);
    const streams = this.#options.streams();
    if (streams.length === 0 || this.#handling.size >= MAX_IN_FLIGHT)
      return this.#sleep(streams.length === 0 ? 100 : 5);
    for (const stream of this.#known) if (!streams.includes(stream)) this.#known.delete(stream);
    const fresh = streams.filter((stream) => !this.#known.has(stream));
    if (fresh.length > 0) await this.#join(fresh);
    const reply = await this.#readGroup(streams, '>', BLOCK_MS);
    this.#dispatch(reply);
  }

  /** Makes the groups and reads what this consumer had taken before and not acknowledged. */
  async #join(streams: readonly string[]): Promise<void> {
    for (const stream of streams) {
      await this.#redis.xgroup('CREATE', stream, this.#options.group, '0', 'MKSTREAM').catch((error: Error) => {
        if (!error.message.startsWith('BUSYGROUP')) throw error;
      });
    }
    this.#dispatch(await this.#readGroup(streams, '0', null));
    for (const stream of streams) this.#known.add(stream);
  }

  async #readGroup(streams: readonly string[], id: string, blockMs: number | null): Promise<StreamReply> {
    const { group, consumer } = this.#options;
    const block = blockMs === null ? [] : ['BLOCK', blockMs];
    const ids = streams.map(() => id);
    const args = ['GROUP', group, consumer, 'COUNT', BATCH, ...block, 'STREAMS', ...streams, ...ids];
    const read = this.#redis.call('XREADGROUP', args) as Promise<StreamReply | null>;
    return (await withTimeout(read, READ_TIMEOUT_MS, () => this.#redis.disconnect(true))) ?? [];
  }

  #dispatch(reply: StreamReply): void {
    for (const [stream, entries] of reply) {
      for (const [id, fields] of entries) this.#handle({ stream, id, fields: toRecord(fields ?? []) });
    }
  }

  #handle(message: WorkMessage): void {
    const key = `${message.stream} ${message.id}`;
    if (this.#handling.has(key)) return;
    this.#handling.add(key);
    this.#options
      .handle(message)
      .then(
        () => {
          this.#acknowledged.push(message);
          this.#toAcknowledge.wake();
        },
        (err) => this.#runtime.log.warn({ err, stream: message.stream, id: message.id }, 'message failed'),
      )
      .finally(() => this.#handling.delete(key));
  }

  /** Waits for a handled message and for those that follow on it: a timer for each 20 ms would cost an idle console more. */
  async #acknowledgeNext(): Promise<void> {
    if (this.#acknowledged.length === 0) await this.#toAcknowledge.sleep(LONGEST_WAIT_MS);
    await this.#sleep(ACK_EVERY_MS);
    await this.#acknowledge();
  }

  async #acknowledge(): Promise<void> {
    if (this.#acknowledged.length === 0) return;
    const batch = this.#acknowledged;
    this.#acknowledged = [];
    const byStream = Map.groupBy(batch, ({ stream }) => stream);
    const pipeline = this.#runtime.redis.pipeline();
    for (const [stream, messages] of byStream) {
      const ids = messages.map(({ id }) => id);
      pipeline.xack(stream, this.#options.group, ...ids);
      pipeline.xdel(stream, ...ids);
    }
    try {
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
    } catch (error) {
      this.#acknowledged.push(...batch.slice(0, MAX_IN_FLIGHT));
      throw error;
    }
  }

  /** Takes over what was delivered 30 s ago and not acknowledged; what failed too often is set aside. */
  async #claim(): Promise<void> {
    const { group, consumer } = this.#options;
    const redis = this.#runtime.redis;
    const idle = this.#options.claimIdleMs ?? CLAIM_IDLE_MS;
    const streams = this.#options.streams().filter((stream) => this.#known.has(stream));
    const looks = redis.pipeline();
    for (const stream of streams) looks.xpending(stream, group, 'IDLE', idle, '-', '+', BATCH);
    const replies = streams.length > 0 ? ((await looks.exec()) ?? []) : [];
    for (const [index, [error, reply]] of replies.entries()) {
      if (error) throw error;
      const pending = reply as [string, string, number, number][];
      if (pending.length === 0) continue;
      const stream = streams[index]!;
      const exhausted = pending.filter(([, , , tries]) => tries >= MAX_TRIES).map(([id]) => id);
      for (const id of exhausted) await this.#bury(stream, id);
      const [, entries] = (await redis.xautoclaim(stream, group, consumer, idle, '0', 'COUNT', BATCH)) as [
        string,
        [string, string[]][],
      ];
      this.#dispatch([[stream, entries]]);
    }
  }

  async #bury(stream: string, id: string): Promise<void> {
    const { redis, env, log } = this.#runtime;
    const [entry] = await redis.xrange(stream, id, id);
    log.error({ stream, id, fields: entry && toRecord(entry[1]) }, 'message failed too often, set aside');
    const pipeline = redis.multi();
    pipeline.xadd(
      deadLetterStream(env.redisPrefix),
      'MAXLEN',
      DEAD_LETTERS,
      '*',
      's',
      stream,
      'i',
      id,
      ...(entry?.[1] ?? []),
    );
    pipeline.xack(stream, this.#options.group, id);
    pipeline.xdel(stream, id);
    await pipeline.exec();
    pipelineMetrics(this.#runtime.metrics).deadLetters.inc();
  }
}

function toRecord(fields: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let index = 0; index + 1 < fields.length; index += 2) record[fields[index]!] = fields[index + 1]!;
  return record;
}

/** What Redis answers when it lost the stream, before or during a blocking read. */
function isGroupGone(error: unknown): boolean {
  return error instanceof Error && /^(NOGROUP|UNBLOCKED)/.test(error.message);
}

/** Rejects after `ms`, having called `onTimeout`. */
export async function withTimeout<T>(promise: Promise<T>, ms: number, onTimeout: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      onTimeout();
      reject(new Error(`no response from redis within ${ms} ms`));
    }, ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}
