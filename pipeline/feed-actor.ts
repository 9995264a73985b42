// The owner of partitions of one feed: turns what PostgreSQL holds into batches, encoded once per cluster, appended to
// the cluster's fan-out stream. It keeps no state of its own: where a stream ends is where it goes on.
//
// A cluster is looked at when a wake-up names it, when its partition is gained, and every 2 s by a comparison of all
// targets with the ends of their streams, which also finds what a lost Redis forgot.

import { FanoutWriter } from '../runtime/fanout-stream.ts';
import type { Feed, FeedSource, FeedTarget } from '../runtime/feeds.ts';
import { pipelineMetrics } from '../runtime/pipeline-metrics.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { fanoutStream, partitionOf, workStream } from '../runtime/stream-names.ts';
import { Wakeable } from '../runtime/wakeable.ts';
import { WorkReader } from '../runtime/work-stream.ts';
import { checkHistory } from './history.ts';
import { ALL_CLUSTERS } from './outbox.ts';
import { Partitions } from './partitions.ts';

const COMPARE_MS = 2_000;
/** Clusters worked on at the same time; below the size of the database pool. */
const PARALLEL = 4;

/** Where a cluster's feed should be, and where its stream ended. */
interface Look {
  target: FeedTarget;
  last: bigint | null;
}

export class FeedActor {
  readonly #runtime: Runtime;
  readonly #feed: Feed;
  readonly #source: FeedSource;
  readonly #writer: FanoutWriter;
  readonly #partitions: Partitions;
  readonly #reader: WorkReader;
  readonly #wakeable = new Wakeable();
  /** Clusters being worked on; true: look again afterwards. */
  readonly #busy = new Map<string, { again: boolean; done: Promise<void> }>();
  #comparing: { again: boolean; done: Promise<void> } | null = null;
  readonly #queue: (() => void)[] = [];
  #active = 0;
  #stopped = false;
  #ticking: Promise<void> | null = null;

  constructor(runtime: Runtime, feed: Feed) {
    this.#runtime = runtime;
    this.#feed = feed;
    this.#source = feed.source(runtime);
    this.#writer = new FanoutWriter(runtime);
    this.#partitions = new Partitions(runtime, feed, {
      onSession: () => checkHistory(runtime),
      onGained: () => this.#wakeable.wake(),
      onLost: () => this.#writer.forget(),
    });
    this.#reader = new WorkReader(runtime, {
      group: 'owner',
      consumer: 'owner',
      streams: () =>
        [...this.#partitions.owned].map((partition) => workStream(runtime.env.redisPrefix, feed.name, partition)),
      handle: ({ fields }) => this.#lookAgain(fields.k ?? ALL_CLUSTERS),
    });
  }

  async start(): Promise<void> {
    await this.#partitions.start();
    this.#reader.start();
    this.#ticking = this.#tick();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wakeable.end();
    await this.#reader.stop();
    await this.#partitions.stop();
    await this.#ticking;
    await Promise.allSettled([...this.#busy.values()].map(({ done }) => done));
  }

  async #lookAgain(key: string): Promise<void> {
    if (key === ALL_CLUSTERS) await this.compare();
    else if (this.#owns(key)) await this.emit(key);
  }

  #owns(clusterId: string): boolean {
    return this.#partitions.owned.has(partitionOf(clusterId));
  }

  async #tick(): Promise<void> {
    let failing = false;
    while (!this.#stopped) {
      try {
        await this.compare();
        failing = false;
      } catch (err) {
        if (!failing) this.#runtime.log.warn({ err, feed: this.#feed.name }, 'comparison of feeds failed, retrying');
        failing = true;
      }
      await this.#wakeable.sleep(COMPARE_MS);
    }
  }

  /** Compares the targets of all owned clusters with the ends of their streams and emits what is missing. */
  compare(): Promise<void> {
    if (this.#comparing) {
      this.#comparing.again = true;
      return this.#comparing.done;
    }
    const run = { again: false, done: Promise.resolve() };
    this.#comparing = run;
    run.done = (async () => {
      try {
        do {
          run.again = false;
          await this.#compareOnce();
        } while (run.again && !this.#stopped);
      } finally {
        this.#comparing = null;
      }
    })();
    return run.done;
  }

  async #compareOnce(): Promise<void> {
    if (this.#partitions.owned.size === 0) return;
    const targets = [...(await this.#source.targets())].filter(([id, { position }]) => position > 0n && this.#owns(id));
    const ends = await this.#writer.lasts(targets.map(([id, { epoch }]) => this.#streamOf(id, epoch)));
    const looked = targets.map(([id, target], index) => ({ id, look: { target, last: ends[index]! } }));
    const behind = looked.filter(({ look: { target, last } }) => last !== target.position);
    const results = await Promise.allSettled(behind.map(({ id, look }) => this.emit(id, look)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** Brings the cluster's stream to its target, as seen in `look`; calls that come meanwhile share one more look. */
  emit(clusterId: string, look?: Look): Promise<void> {
    const busy = this.#busy.get(clusterId);
    if (busy) {
      busy.again = true;
      return busy.done;
    }
    const run = { again: false, done: Promise.resolve() };
    this.#busy.set(clusterId, run);
    run.done = (async () => {
      const entered = this.#enter();
      // What was seen before a wait may be old.
      let seen = entered ? undefined : look;
      await entered;
      try {
        do {
          run.again = false;
          await this.#emitOnce(clusterId, seen);
          seen = undefined;
        } while (run.again && !this.#stopped);
      } finally {
        this.#busy.delete(clusterId);
        this.#leave();
      }
    })();
    return run.done;
  }

  async #emitOnce(clusterId: string, look?: Look): Promise<void> {
    for (let seen = look; ; seen = undefined) {
      const target = seen?.target ?? (await this.#target(clusterId));
      if (!target || target.position === 0n || this.#stopped) return;
      const stream = this.#streamOf(clusterId, target.epoch);
      const last = seen ? seen.last : await this.#writer.last(stream);
      if (last === null) return this.#begin(stream, target);
      if (last > target.position) return this.#rebuild(clusterId, target.epoch, last);
      if (last === target.position) return;
      const batch = await this.#source.read(clusterId, last, target);
      if (!batch) return;
      if (await this.#writer.append(stream, batch)) this.#count(batch.bytes.length);
      if (batch.to >= target.position) return;
    }
  }

  /** A stream starts with a mark of where the database is. */
  async #begin(stream: string, target: FeedTarget): Promise<void> {
    const { position } = target;
    await this.#writer.append(stream, { from: position, to: position, bytes: this.#source.mark(target) });
  }

  /**
   * A stream beyond the database: another owner was faster, or the database lost what it had committed. What the
   * database had is for nodes to prove, by their marks, and not for Redis. The stream begins again where the database is.
   */
  async #rebuild(clusterId: string, epoch: bigint, last: bigint): Promise<void> {
    const target = await this.#target(clusterId);
    if (!target || target.epoch !== epoch || target.position >= last || this.#stopped) return;
    const stream = this.#streamOf(clusterId, epoch);
    const places = { last: String(last), position: String(target.position) };
    this.#runtime.log.warn({ stream, ...places }, 'fan-out stream was ahead of the database, stream restarts');
    await this.#writer.remove(stream);
    await this.#begin(stream, target);
  }

  async #target(clusterId: string): Promise<FeedTarget | undefined> {
    return (await this.#source.targets([clusterId])).get(clusterId);
  }

  #count(bytes: number): void {
    const { batches, batchBytes } = pipelineMetrics(this.#runtime.metrics);
    const feed = this.#feed.name;
    batches.inc({ feed });
    batchBytes.inc({ feed }, bytes);
  }

  #streamOf(clusterId: string, epoch: bigint): string {
    return fanoutStream(this.#runtime.env.redisPrefix, clusterId, this.#feed.name, epoch);
  }

  /** Undefined where there is no wait. */
  #enter(): Promise<void> | undefined {
    if (this.#active >= PARALLEL) return new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#active++;
    return undefined;
  }

  #leave(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#active--;
  }
}
