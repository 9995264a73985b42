// Jobs that one process of all does: each while it holds the job's advisory lock, for as long as its session lasts.
// A job must be harmless when two processes run it at the same time, because a dead link is noticed late.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { closeLockSession, LOCK_CLASS, openLockSession, PoolerError } from './lock-session.ts';
import type { Runtime } from './runtime.ts';
import { Wakeable } from './wakeable.ts';

const CHECK_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

export interface LeaderJob {
  name: string;
  everyMs: number;
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

  constructor(runtime: Runtime, jobs: readonly LeaderJob[]) {
    this.#runtime = runtime;
    this.#jobs = jobs.map((job) => ({ job, key: keyOf(job.name), held: false, dueAt: 0, running: null }));
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

  #open(): Promise<pg.Client> {
    return openLockSession(this.#runtime, 'svc-leader');
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

  /** Asks for the locks not held (which also proves that the session lives) and starts what is due. */
  async #check(client: pg.Client): Promise<void> {
    const missing = this.#jobs.filter(({ held }) => !held).map(({ key }) => key);
    const { rows } = await client.query<{ key: number; locked: boolean }>(
      'select key, pg_try_advisory_lock($1, key) as locked from unnest($2::int[]) as key',
      [LOCK_CLASS.job, missing],
    );
    const gained = new Set(rows.filter(({ locked }) => locked).map(({ key }) => key));
    const now = performance.now();
    for (const state of this.#jobs) {
      if (gained.has(state.key)) state.held = true;
      if (!state.held || state.running || now < state.dueAt) continue;
      state.dueAt = now + state.job.everyMs;
      state.running = this.#run(state.job).finally(() => {
        state.running = null;
      });
    }
  }

  async #run({ name, run }: LeaderJob): Promise<void> {
    try {
      await run(this.#runtime, this.#stopping.signal);
    } catch (err) {
      if (!this.#stopping.signal.aborted) this.#runtime.log.error({ err, job: name }, 'job failed');
    }
  }
}

function keyOf(name: string): number {
  return createHash('sha256').update(name).digest().readInt32BE(0);
}
