// The stream of hints for the Web UI: written by relays, read by every gateway. Redis numbers its entries, so relays
// need not agree on an order, and a cursor means the same in every process.
//
// The first entry of a stream says that it is the first: who meets it has lost whatever came before. A Redis that lost
// its data has no stream; whoever notices first begins a new one.
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { readUntilStopped } from './read-loop.ts';
import type { Runtime } from './runtime.ts';
import { liveStream } from './stream-names.ts';
import { withTimeout } from './work-stream.ts';

/** About a minute of the heaviest traffic, hours of the usual one. */
const KEEP_ENTRIES = 3_000;
const BLOCK_MS = 1_000;
const READ_TIMEOUT_MS = 5_000;
const READ_COUNT = 256;
const PAUSE_MS = 250;
const HINT = 'h';
const BEGIN = 'begin';

export interface LiveEntry {
  /** `<ms>-<number>`, as Redis gives it. */
  id: string;
  /** `<topic> <id>` or `<topic>`. */
  hints: string[];
}

type RawEntry = [id: string, fields: string[]];

/** Which of two entries is the earlier one: negative for the first. */
export function compareIds(a: string, b: string): number {
  const [aMs, aSeq] = a.split('-').map(Number) as [number, number];
  const [bMs, bSeq] = b.split('-').map(Number) as [number, number];
  return aMs - bMs || aSeq - bSeq;
}

/** Appends the hints as one entry, to a new stream when there is none. */
export async function appendHints(redis: Redis, prefix: string, hints: readonly string[]): Promise<void> {
  const fields = hints.flatMap((hint) => [HINT, hint]);
  const stream = liveStream(prefix);
  const added = await redis.xadd(stream, 'NOMKSTREAM', 'MAXLEN', '~', KEEP_ENTRIES, '*', ...fields);
  if (added !== null) return;
  await redis.xadd(stream, '*', BEGIN, '1');
  await redis.xadd(stream, '*', ...fields);
}

export interface LiveReaderOptions {
  /** Entries from now on follow on this one. `kept`: earlier ones that are still known, oldest first. */
  onPlace(head: string, kept: readonly LiveEntry[]): void;
  onEntries(entries: readonly LiveEntry[]): void;
  /** The connection is gone: nothing comes until the next place. */
  onLost(): void;
}

/** Follows the stream on one connection. After a connection is lost it takes its place anew, because what was told meanwhile may be gone. */
export class LiveReader {
  readonly #runtime: Runtime;
  readonly #options: LiveReaderOptions;
  readonly #redis: Redis;
  readonly #stream: string;
  /** Id of the last entry that was read; null: no place in the stream yet. */
  #head: string | null = null;
  #placedBefore = false;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(runtime: Runtime, options: LiveReaderOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#stream = liveStream(runtime.env.redisPrefix);
    this.#redis = runtime.newRedis();
    this.#redis.on('close', () => {
      const had = this.#head !== null;
      this.#head = null;
      if (had && !this.#stopped) options.onLost();
    });
  }

  start(): void {
    this.#running ??= this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#redis.disconnect();
    await this.#running;
  }

  #loop(): Promise<void> {
    return readUntilStopped({
      stopped: () => this.#stopped,
      step: () => {
        if (this.#redis.status !== 'ready') return delay(PAUSE_MS / 5);
        return this.#head === null ? this.#takePlace() : this.#read(this.#head);
      },
      failed: (err, first) => {
        if (first) this.#runtime.log.warn({ err }, 'live updates failed, retrying');
        this.#head = null;
      },
      pauseMs: PAUSE_MS,
    });
  }

  async #takePlace(): Promise<void> {
    const raw = await this.#timed(this.#redis.xrevrange(this.#stream, '+', '-', 'COUNT', KEEP_ENTRIES));
    const entries = (raw as RawEntry[]).reverse();
    const head = entries.at(-1)?.[0] ?? (await this.#begin());
    // Only a process that has just begun can trust what it finds.
    const kept = this.#placedBefore ? [] : entries.slice(entries.findLastIndex(isBegin) + 1).map(toEntry);
    const beginning = entries.findLast(isBegin);
    if (!this.#placedBefore && beginning) kept.unshift({ id: beginning[0], hints: [] });
    this.#placedBefore = true;
    this.#head = head;
    this.#options.onPlace(head, kept);
  }

  async #read(head: string): Promise<void> {
    const read = this.#redis.xread('COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', this.#stream, head);
    const reply = (await this.#timed(read)) as [string, RawEntry[]][] | null;
    // Lost its connection meanwhile.
    if (this.#head !== head) return;
    const entries = reply?.[0]?.[1] ?? [];
    if (entries.some(isBegin) || (entries.length === 0 && !(await this.#leadsTo(head)))) {
      this.#head = null;
      return;
    }
    if (entries.length === 0) return;
    // So far behind that what followed on its place may have been dropped.
    if (entries.length === READ_COUNT && !(await this.#holds(head))) {
      this.#head = null;
      return;
    }
    this.#head = entries.at(-1)![0];
    this.#options.onEntries(entries.map(toEntry));
  }

  /** Whether the stream is there and ends at this entry or behind it. */
  async #leadsTo(head: string): Promise<boolean> {
    const [last] = (await this.#timed(this.#redis.xrevrange(this.#stream, '+', '-', 'COUNT', 1))) as RawEntry[];
    return last !== undefined && compareIds(last[0], head) >= 0;
  }

  async #holds(id: string): Promise<boolean> {
    return (await this.#timed(this.#redis.xrange(this.#stream, id, id))).length > 0;
  }

  async #begin(): Promise<string> {
    return (await this.#timed(this.#redis.xadd(this.#stream, '*', BEGIN, '1'))) as string;
  }

  #timed<T>(command: Promise<T>): Promise<T> {
    return withTimeout(command, READ_TIMEOUT_MS, () => this.#redis.disconnect(true));
  }
}

function isBegin([, fields]: RawEntry): boolean {
  return fields[0] === BEGIN;
}

function toEntry([id, fields]: RawEntry): LiveEntry {
  return { id, hints: fields.filter((_, index) => index % 2 === 1) };
}
