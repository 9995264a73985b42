// Fan-out streams: the encoded batches of one cluster's feed, written by the owner of its partition, read by every
// node-channel process with a cursor of its own.
//
// The id of an entry is `<to>-0`, so a second owner's double is refused by Redis, and the last id is the position
// reached. Nothing here is the truth: whoever misses something reads PostgreSQL.
//
// Entries are sealed, because nodes believe them: a stream with one that this console did not write is deleted, and begins
// again where the database is.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { pipelineMetrics } from './pipeline-metrics.ts';
import { readUntilStopped } from './read-loop.ts';
import type { Runtime } from './runtime.ts';
import { batchKey } from './stream-names.ts';
import { withTimeout } from './work-stream.ts';

/** Larger batches lie beside the stream under a key of their own: readers that lag would carry them many times. */
export const INLINE_BYTES = 16 * 1024;
const KEEP_MS = 10 * 60_000;
const KEEP_BYTES = 4 * 1024 * 1024;
const KEEP_ENTRIES = 4096;
/** A stream without changes for about a day goes; its owner marks its place again. */
const EXPIRE_SECONDS = 86_400;
/** Between two times that a writer tells so: a stream may go by so much earlier. */
const EXPIRE_EVERY_MS = 60 * 60_000;
const TRIM_EVERY_MS = 1_000;
const AGE_EVERY_MS = 60_000;
const BLOCK_MS = 250;
const READ_TIMEOUT_MS = 5_000;
const READ_COUNT = 128;
const PAUSE_MS = 500;

export interface FanoutBatch {
  /** The position the batch starts at; equal to `to` in a mark, which carries nothing but the position. */
  from: bigint;
  to: bigint;
  /** Encoded ConfigDelta or BanBatch. */
  bytes: Uint8Array;
}

/** A batch as read; `bytes` is null when Redis has lost it: read PostgreSQL from `from`. */
export interface ReadBatch extends Omit<FanoutBatch, 'bytes'> {
  bytes: Uint8Array | null;
}

/** An entry whose seal is right; the bytes are here, or at the key, or lost. */
interface Entry {
  from: bigint;
  to: bigint;
  bytes: Buffer | null;
  pointer: string | null;
  digest: Buffer;
}

interface Appended {
  to: bigint;
  bytes: number;
  at: number;
}

export class FanoutWriter {
  readonly #runtime: Runtime;
  readonly #redis: Redis;
  /** What it appended in the last 10 minutes, by stream. */
  readonly #appended = new Map<string, { entries: Appended[]; bytes: number; trimmedAt: number }>();
  /** When it told Redis how long streams stay. */
  readonly #expiring = new Map<string, number>();
  #agedAt = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#redis = runtime.redis;
  }

  /** Position of the stream's last entry; null for a missing stream, and for one with an entry that nobody here wrote. */
  async last(stream: string): Promise<bigint | null> {
    const [last] = await this.lasts([stream]);
    return last!;
  }

  /** The same for many streams in one round trip. */
  async lasts(streams: readonly string[]): Promise<(bigint | null)[]> {
    const pipeline = this.#redis.pipeline();
    for (const stream of streams) pipeline.xrevrangeBuffer(stream, '+', '-', 'COUNT', 1);
    const replies = (await pipeline.exec()) ?? [];
    return Promise.all(
      replies.map(async ([error, reply], index) => {
        if (error) throw error;
        const [last] = reply as RawEntry[];
        if (!last) return null;
        const stream = streams[index]!;
        const entry = readEntry(this.#runtime, stream, last);
        if (!entry) await refuse(this.#runtime, stream);
        return entry?.to ?? null;
      }),
    );
  }

  /** Appends unless the stream already reached the batch's end; answers whether it did append. */
  async append(stream: string, batch: FanoutBatch, now = Date.now()): Promise<boolean> {
    if (await this.#append(stream, batch, now)) return true;
    const last = await this.last(stream);
    if (last !== null && last >= batch.to) return false;
    // Its last entry was taken away, and with it what the stream says of itself.
    if (last !== null) await this.remove(stream);
    return this.#append(stream, batch, now);
  }

  async #append(stream: string, { from, to, bytes }: FanoutBatch, now: number): Promise<boolean> {
    const large = bytes.length > INLINE_BYTES;
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const pipeline = this.#redis.pipeline();
    if (large) pipeline.set(batchKey(stream, to), body, 'PX', KEEP_MS + 60_000);
    const digest = digestOf(body);
    const seal = this.#runtime.seals.fanout.seal(sealedParts(stream, from, to, digest));
    const fields = ['f', String(from), 't', String(now), 'd', digest, 's', seal];
    const payload = large ? ['p', batchKey(stream, to)] : ['b', body];
    pipeline.xadd(stream, 'MAXLEN', '~', KEEP_ENTRIES, `${to}-0`, ...fields, ...payload);
    // A mark may begin the stream.
    const expires = from === to || now - (this.#expiring.get(stream) ?? 0) >= EXPIRE_EVERY_MS;
    if (expires) pipeline.expire(stream, EXPIRE_SECONDS);
    const replies = (await pipeline.exec()) ?? [];
    const [error] = replies[large ? 1 : 0]!;
    if (error && /equal or smaller/.test(error.message)) return false;
    for (const [failure] of replies) if (failure) throw failure;
    if (expires) this.#expiring.set(stream, now);
    this.#age(now);
    await this.#trim(stream, { to, bytes: large ? 0 : bytes.length, at: now }, now);
    return true;
  }

  /** Deletes a stream, and what it knows of it. */
  async remove(stream: string): Promise<void> {
    this.#appended.delete(stream);
    this.#expiring.delete(stream);
    await this.#redis.del(stream);
  }

  /** Entries it remembers, of all streams. */
  get remembered(): number {
    return [...this.#appended.values()].reduce((sum, { entries }) => sum + entries.length, 0);
  }

  /** Forgets what trimming by age drops from streams, and streams of clusters and histories that are over. */
  #age(now: number): void {
    if (now - this.#agedAt < AGE_EVERY_MS) return;
    this.#agedAt = now;
    for (const [stream, at] of this.#expiring) if (now - at >= EXPIRE_EVERY_MS) this.#expiring.delete(stream);
    for (const [stream, known] of this.#appended) {
      const young = known.entries.findIndex(({ at }) => now - at < KEEP_MS);
      if (young === -1) this.#appended.delete(stream);
      else for (const { bytes } of known.entries.splice(0, young)) known.bytes -= bytes;
    }
  }

  /** Drops what is older than 10 minutes and what exceeds 4 MiB. */
  async #trim(stream: string, added: Appended, now: number): Promise<void> {
    const known = this.#appended.get(stream) ?? { entries: [], bytes: 0, trimmedAt: 0 };
    this.#appended.set(stream, known);
    known.entries.push(added);
    known.bytes += added.bytes;
    const surplus = known.bytes > KEEP_BYTES || known.entries.length > KEEP_ENTRIES;
    if (!surplus && now - known.trimmedAt < TRIM_EVERY_MS) return;
    known.trimmedAt = now;
    while (known.bytes > KEEP_BYTES || known.entries.length > KEEP_ENTRIES) known.bytes -= known.entries.shift()!.bytes;
    const oldest = await this.#redis.xrange(stream, '-', '+', 'COUNT', 100);
    const young = oldest.find(([, fields]) => now - Number(fields[fields.indexOf('t') + 1]) < KEEP_MS);
    const byAge = young ? idOf(young[0]) : (oldest.at(-1) && idOf(oldest.at(-1)![0])) || 0n;
    const byBytes = surplus ? known.entries[0]!.to : 0n;
    const from = byAge > byBytes ? byAge : byBytes;
    if (oldest[0] && from > idOf(oldest[0][0])) await this.#redis.xtrim(stream, 'MINID', `${from}-0`);
  }

  /** Forgets what it appended; called when partitions go, since others write their streams then. */
  forget(): void {
    this.#appended.clear();
    this.#expiring.clear();
  }
}

export interface FanoutReaderOptions {
  /** Batches of one stream, in order. They may repeat or leave gaps: compare `from` with your position. */
  onBatches(stream: string, batches: ReadBatch[]): void;
}

/** Reads any number of fan-out streams on one connection. */
export class FanoutReader {
  readonly #runtime: Runtime;
  readonly #options: FanoutReaderOptions;
  readonly #redis: Redis;
  readonly #cursors = new Map<string, bigint>();
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(runtime: Runtime, options: FanoutReaderOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#redis = runtime.newRedis();
  }

  start(): void {
    this.#running ??= this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#redis.disconnect();
    await this.#running;
  }

  /** Delivers what comes after `position`, within a quarter of a second from now. */
  follow(stream: string, position: bigint): void {
    this.#cursors.set(stream, position);
  }

  unfollow(stream: string): void {
    this.#cursors.delete(stream);
  }

  #loop(): Promise<void> {
    return readUntilStopped({
      stopped: () => this.#stopped,
      // A command that waits in the queue of a connection that is down would block the next ones once it is back.
      step: () => (this.#cursors.size === 0 || this.#redis.status !== 'ready' ? delay(BLOCK_MS / 5) : this.#read()),
      failed: (err, first) => {
        if (first) this.#runtime.log.warn({ err }, 'fan-out stream failed, retrying');
      },
      pauseMs: PAUSE_MS,
    });
  }

  async #read(): Promise<void> {
    const streams = [...this.#cursors.keys()];
    const ids = streams.map((stream) => `${this.#cursors.get(stream)}-0`);
    // As buffers: decoding as text corrupts the batches.
    const read = this.#redis.callBuffer('XREAD', [
      'COUNT',
      READ_COUNT,
      'BLOCK',
      BLOCK_MS,
      'STREAMS',
      ...streams,
      ...ids,
    ]);
    const reply = (await withTimeout(read, READ_TIMEOUT_MS, () => this.#redis.disconnect(true))) as
      | [Buffer, [Buffer, Buffer[]][]][]
      | null;
    for (const [name, entries] of reply ?? []) {
      const stream = name.toString();
      const asked = this.#cursors.get(stream);
      // Unfollowed, or followed again elsewhere, while the read was under way.
      if (asked === undefined || ids[streams.indexOf(stream)] !== `${asked}-0`) continue;
      const known = entries.map((entry) => readEntry(this.#runtime, stream, entry));
      const refused = known.indexOf(null);
      const good = (refused === -1 ? known : known.slice(0, refused)) as Entry[];
      const batches = await Promise.all(good.map((entry) => this.#toBatch(entry)));
      if (refused !== -1) await refuse(this.#runtime, stream);
      if (this.#cursors.get(stream) !== asked || batches.length === 0) continue;
      this.#cursors.set(stream, batches.at(-1)!.to);
      this.#options.onBatches(stream, batches);
    }
  }

  async #toBatch({ from, to, bytes, pointer, digest }: Entry): Promise<ReadBatch> {
    if (pointer === null) return { from, to, bytes };
    const found = await this.#runtime.redis.getBuffer(pointer);
    return { from, to, bytes: found && digestOf(found).equals(digest) ? found : null };
  }
}

/** An entry as Redis answers it: id, then names and values of fields. */
type RawEntry = [Buffer, Buffer[]];

/** Null for an entry that no process of this console wrote into this stream. */
function readEntry({ seals }: Runtime, stream: string, [id, fields]: RawEntry): Entry | null {
  const field = new Map<string, Buffer>();
  for (let index = 0; index + 1 < fields.length; index += 2) field.set(fields[index]!.toString(), fields[index + 1]!);
  const [seal, digest, from] = [field.get('s'), field.get('d'), field.get('f')?.toString() ?? ''];
  const to = idOf(id.toString());
  if (!seal || !digest || !/^[0-9]{1,20}$/.test(from)) return null;
  if (!seals.fanout.proves(seal, sealedParts(stream, BigInt(from), to, digest))) return null;
  const bytes = field.get('b') ?? null;
  if (bytes && !digestOf(bytes).equals(digest)) return null;
  const pointer = bytes ? null : batchKey(stream, to);
  return { from: BigInt(from), to, bytes, pointer, digest };
}

/** Takes the stream away: its owner begins it again within two seconds, and readers that miss something read PostgreSQL. */
async function refuse({ redis, metrics, log }: Runtime, stream: string): Promise<void> {
  pipelineMetrics(metrics).refused.inc({ of: 'fanout' });
  log.warn({ stream }, 'fan-out stream contained a foreign entry, stream deleted');
  await redis.del(stream);
}

function sealedParts(stream: string, from: bigint, to: bigint, digest: Buffer): (string | Buffer)[] {
  return [stream, String(from), String(to), digest];
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function idOf(id: string): bigint {
  return BigInt(id.slice(0, id.indexOf('-')));
}
