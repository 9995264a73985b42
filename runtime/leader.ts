// Jobs that one process of all does: each while it holds the job's advisory lock, for as long as its session lasts.
// Processes share the jobs: each session announces its jobs with shared locks, and rendezvous hashing over those that
// announce a job chooses which of them takes its lock.
// A job must be harmless when two processes run it at the same time, because a dead link is noticed late.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { closeLockSession, LOCK_CLASS, openLockSession, PoolerError } from './lock-session.ts';
import type { Runtime } from './runtime.ts';
import { Wakeable } from './wakeable.ts';

const CHECK_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;
/** Jobs that run less often are in no hurry. They have a database pool of their own, so that no request waits for them. */
const BULK_EVERY_MS = 60_000;
const PROMPT_DEADLINE_MS = 60_000;
const BULK_DEADLINE_MS = 10 * 60_000;
/** From the signal until a job that goes on is given up. */
const GRACE_MS = 10_000;

export interface LeaderJob {
  name: string;
  everyMs: number;
  /** After it the signal is given; by default 10 minutes, 1 minute for jobs that run more often than once a minute. */
  deadlineMs?: number;
  /** Which processes may do it; by default all. */
  where?(env: Runtime['env']): boolean;
  /** Bounded work; `signal` asks it to end early. A throw is logged and the job runs again when it is next due. */
  run(runtime: Runtime, signal: AbortSignal): Promise<void>;
}

interface JobState {
  job: LeaderJob;
  key: number;
  held: boolean;
  dueAt: number;
  running: Promise<void> | null;
}

export class Leader {
  readonly #runtime: Runtime;
  readonly #jobs: JobState[];
  readonly #wakeable = new Wakeable();
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;

  readonly #graceMs: number;

  constructor(runtime: Runtime, jobs: readonly LeaderJob[], graceMs = GRACE_MS) {
    this.#runtime = runtime;
    this.#graceMs = graceMs;
    const own = jobs.filter(({ where }) => where?.(runtime.env) ?? true);
    this.#jobs = own.map((job) => ({ job, key: keyOf(job.name), held: false, dueAt: 0, running: null }));
  }

  /** Throws {@link PoolerError}; a database that is away is waited for. */
  async start(): Promise<void> {
    const first = await this.#open().catch((error: unknown) => {
      if (error instanceof PoolerError) throw error;
      this.#runtime.log.warn({ err: error }, 'jobs wait for the database');
      return null;
    });
    this.#running = this.#loop(first);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeable.end();
    await this.#running;
    await Promise.all(this.#jobs.map(({ running }) => running));
  }

  async #open(): Promise<pg.Client> {
    const client = await openLockSession(this.#runtime, 'svc-leader');
    try {
      await client.query('select pg_advisory_lock_shared($1, key) from unnest($2::int[]) as key', [
        LOCK_CLASS.candidate,
        this.#jobs.map(({ key }) => key),
      ]);
      return client;
    } catch (error) {
      await closeLockSession(client);
      throw error;
    }
  }

  async #loop(first: pg.Client | null): Promise<void> {
    let client = first;
    let pause = CHECK_MS;
    while (!this.#stopping.signal.aborted) {
      try {
        client ??= await this.#open();
        while (!this.#stopping.signal.aborted) {
          await this.#check(client);
          pause = CHECK_MS;
          await this.#wakeable.sleep(CHECK_MS);
        }
      } catch (err) {
        this.#runtime.log.warn({ err }, 'leadership lost, reconnecting');
      }
      for (const state of this.#jobs) state.held = false;
      if (client) await closeLockSession(client);
      client = null;
      await this.#wakeable.sleep(pause, false);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Takes and lets go locks (each query also proves that the session lives), and starts what is due. */
  async #check(client: pg.Client): Promise<void> {
    const chosen = await this.#chosen(client);
    const lost = this.#jobs.filter(({ held, running, key }) => held && !running && !chosen.has(key));
    if (lost.length > 0) {
      for (const state of lost) state.held = false;
      const keys = lost.map(({ key }) => key);
      await client.query('select pg_advisory_unlock($1, key) from unnest($2::int[]) as key', [LOCK_CLASS.job, keys]);
    }
    const wanted = this.#jobs.filter(({ held, key }) => !held && chosen.has(key)).map(({ key }) => key);
    if (wanted.length > 0) {
      const { rows } = await client.query<{ key: number; locked: boolean }>(
        'select key, pg_try_advisory_lock($1, key) as locked from unnest($2::int[]) as key',
        [LOCK_CLASS.job, wanted],
      );
      const gained = new Set(rows.filter(({ locked }) => locked).map(({ key }) => key));
      for (const state of this.#jobs) state.held ||= gained.has(state.key);
    }
    const now = performance.now();
    for (const state of this.#jobs) {
      if (!state.held || state.running || now < state.dueAt) continue;
      state.dueAt = now + state.job.everyMs;
      state.running = this.#run(state.job).finally(() => {
        state.running = null;
      });
    }
  }

  /** Keys of the jobs that this session is the first choice for, of all sessions that announce them. */
  async #chosen(client: pg.Client): Promise<Set<number>> {
    const { rows } = await client.query<{ key: number }>(
      `select key from (
         select distinct on (l.objid) l.objid::int as key, l.pid from pg_locks l
          where l.locktype = 'advisory' and l.classid = $1::int::oid and l.objsubid = 2 and l.granted
            and l.database = (select oid from pg_database where datname = current_database())
          order by l.objid, md5(l.objid::text || ' ' || l.pid::text)) c
        where pid = pg_backend_pid()`,
      [LOCK_CLASS.candidate],
    );
    return new Set(rows.map(({ key }) => key));
  }

  /** Ends with the job, or without it where it goes on after its signal: then it runs again when it is next due. */
  async #run(job: LeaderJob): Promise<void> {
    const { name, everyMs } = job;
    const bulk = everyMs >= BULK_EVERY_MS;
    const { pools } = this.#runtime;
    const runtime = bulk ? { ...this.#runtime, pools: { ...pools, api: pools.jobs } } : this.#runtime;
    const deadline = new AbortController();
    const deadlineMs = job.deadlineMs ?? (bulk ? BULK_DEADLINE_MS : PROMPT_DEADLINE_MS);
    const deadlineTimer = setTimeout(() => deadline.abort(), deadlineMs);
    const signal = AbortSignal.any([this.#stopping.signal, deadline.signal]);
    const givenUp = Promise.withResolvers<never>();
    let graceTimer: NodeJS.Timeout | undefined;
    const wait = () => {
      graceTimer = setTimeout(() => givenUp.reject(new Error('the job went on after its deadline')), this.#graceMs);
    };
    if (signal.aborted) wait();
    else signal.addEventListener('abort', wait, { once: true });
    try {
      await Promise.race([job.run(runtime, signal), givenUp.promise]);
    } catch (err) {
      if (!this.#stopping.signal.aborted) this.#runtime.log.error({ err, job: name }, 'job failed');
    } finally {
      clearTimeout(deadlineTimer);
      clearTimeout(graceTimer);
      // Else each run is kept until the process stops, and starts a timer then.
      signal.removeEventListener('abort', wait);
    }
  }
}

function keyOf(name: string): number {
  return createHash('sha256').update(name).digest().readInt32BE(0);
}
