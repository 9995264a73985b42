// Who works which partition of a feed: a worker owns a partition while its session holds the partition's advisory lock.
// Rendezvous hashing over the workers that are connected decides who tries, so that a worker more or less moves few.
// Correctness never depends on a single owner: two of them emit the same batches, and Redis refuses the second.
//
// | Seen at a check, twice a second                                | then                         |
// | free, and this worker is its first choice                      | try to lock it               |
// | free for 3 s, first choice elsewhere (it hangs or cannot lock)  | try to lock it               |
// | owned here, first choice is another connected worker           | let it go                    |
// | the check fails or takes more than 2 s                         | own nothing, connect again   |
import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Feed } from '../runtime/feeds.ts';
import { closeLockSession, openLockSession, PoolerError } from '../runtime/lock-session.ts';
import { pipelineMetrics } from '../runtime/pipeline-metrics.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { PARTITION_COUNT } from '../runtime/stream-names.ts';
import { Wakeable } from '../runtime/wakeable.ts';

const CHECK_MS = 500;
const ORPHAN_MS = 3_000;
const LONGEST_PAUSE_MS = 5_000;

/** What is owned by partitions of clusters: a feed, or anything else that one process at a time does for a cluster. */
export type Owned = Pick<Feed, 'name' | 'ownerLock'>;

export interface PartitionHooks {
  /** Each time a session with the database is made, the first included; a throw closes it again. */
  onSession?(): Promise<void>;
  onGained(partitions: readonly number[]): void;
  onLost(partitions: readonly number[]): void;
}

export class Partitions {
  readonly #runtime: Runtime;
  readonly #feed: Owned;
  readonly #hooks: PartitionHooks;
  readonly #worker = randomUUID().slice(0, 13);
  readonly #owned = new Set<number>();
  readonly #freeSince = new Map<number, number>();
  readonly #wakeable = new Wakeable();
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(runtime: Runtime, feed: Owned, hooks: PartitionHooks) {
    this.#runtime = runtime;
    this.#feed = feed;
    this.#hooks = hooks;
  }

  get owned(): ReadonlySet<number> {
    return this.#owned;
  }

  /** Begins to own partitions. Throws {@link PoolerError}; a database that is away is waited for. */
  async start(): Promise<void> {
    const first = await this.#open().catch((error: unknown) => {
      if (error instanceof PoolerError) throw error;
      this.#runtime.log.warn({ err: error, feed: this.#feed.name }, 'partitions wait for the database');
      return null;
    });
    this.#running = this.#loop(first);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wakeable.end();
    await this.#running;
  }

  async #open(): Promise<pg.Client> {
    const client = await openLockSession(this.#runtime, this.#nameOf(this.#worker));
    try {
      await this.#hooks.onSession?.();
      return client;
    } catch (error) {
      await closeLockSession(client);
      throw error;
    }
  }

  #nameOf(worker: string): string {
    return `svc-${this.#feed.name}-owner-${worker}`;
  }

  async #loop(first: pg.Client | null): Promise<void> {
    let client = first;
    let pause = CHECK_MS;
    while (!this.#stopped) {
      try {
        client ??= await this.#open();
        client.once('end', () => this.#wakeable.wake());
        while (!this.#stopped) {
          await this.#check(client);
          pause = CHECK_MS;
          await this.#wakeable.sleep(CHECK_MS);
        }
      } catch (err) {
        this.#runtime.log.warn({ err, feed: this.#feed.name }, 'partition lock lost, reconnecting');
      }
      this.#lose([...this.#owned]);
      this.#freeSince.clear();
      if (client) await closeLockSession(client);
      client = null;
      await this.#wakeable.sleep(pause, false);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  async #check(client: pg.Client): Promise<void> {
    const { held, workers } = await this.#look(client);
    const lost = [...this.#owned].filter((partition) => held.get(partition) !== true);
    if (lost.length > 0) this.#lose(lost);
    const now = performance.now();
    const wanted: number[] = [];
    const unwanted: number[] = [];
    for (let partition = 0; partition < PARTITION_COUNT; partition++) {
      const mine = firstChoice(partition, workers) === this.#worker;
      if (held.has(partition)) this.#freeSince.delete(partition);
      else if (!this.#freeSince.has(partition)) this.#freeSince.set(partition, now);
      if (this.#owned.has(partition)) {
        if (!mine) unwanted.push(partition);
      } else if (!held.has(partition) && (mine || now - this.#freeSince.get(partition)! >= ORPHAN_MS)) {
        wanted.push(partition);
      }
    }
    if (unwanted.length > 0) {
      this.#lose(unwanted);
      await client.query('select pg_advisory_unlock($1, p) from unnest($2::int[]) as p', [this.#class, unwanted]);
    }
    if (wanted.length > 0) await this.#take(client, wanted);
  }

  get #class(): number {
    return this.#feed.ownerLock;
  }

  async #take(client: pg.Client, wanted: readonly number[]): Promise<void> {
    const { rows } = await client.query<{ p: number; locked: boolean }>(
      'select p, pg_try_advisory_lock($1, p) as locked from unnest($2::int[]) as p',
      [this.#class, wanted],
    );
    const gained = rows.filter(({ locked }) => locked).map(({ p }) => p);
    if (gained.length === 0) return;
    for (const partition of gained) this.#owned.add(partition);
    this.#measure();
    this.#runtime.log.info(
      { feed: this.#feed.name, gained: gained.length, owned: this.#owned.size },
      'partitions gained',
    );
    this.#hooks.onGained(gained);
  }

  #lose(partitions: readonly number[]): void {
    if (partitions.length === 0) return;
    for (const partition of partitions) this.#owned.delete(partition);
    this.#measure();
    this.#runtime.log.info(
      { feed: this.#feed.name, lost: partitions.length, owned: this.#owned.size },
      'partitions lost',
    );
    this.#hooks.onLost(partitions);
  }

  #measure(): void {
    pipelineMetrics(this.#runtime.metrics).partitions.set({ feed: this.#feed.name }, this.#owned.size);
  }

  /** Held partitions (true: by this session) and the workers that are connected. */
  async #look(client: pg.Client): Promise<{ held: Map<number, boolean>; workers: string[] }> {
    const { rows } = await client.query<{ locks: { p: number; mine: boolean }[] | null; workers: string[] | null }>(
      `select
        (select json_agg(json_build_object('p', l.objid::int, 'mine', l.pid = pg_backend_pid()))
          from pg_locks l where l.locktype = 'advisory' and l.classid = $1::int::oid and l.objsubid = 2 and l.granted
            and l.database = (select oid from pg_database where datname = current_database())) as locks,
        (select array_agg(a.application_name) from pg_stat_activity a
          where a.datname = current_database() and starts_with(a.application_name, $2)) as workers`,
      [this.#class, this.#nameOf('')],
    );
    const { locks, workers } = rows[0]!;
    return {
      held: new Map((locks ?? []).map(({ p, mine }) => [p, mine])),
      workers: (workers ?? []).map((name) => name.slice(this.#nameOf('').length)),
    };
  }
}

/** The worker that a partition prefers among those connected. */
export function firstChoice(partition: number, workers: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestScore = '';
  for (const worker of workers) {
    const score = createHash('sha256').update(`${partition} ${worker}`).digest('hex');
    if (best === undefined || score > bestScore) [best, bestScore] = [worker, score];
  }
  return best;
}
