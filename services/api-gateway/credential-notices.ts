// How a gateway hears of keys and sessions that end, wherever and by whomever they are ended: the database tells it on a
// connection of its own. The connection is checked every second. A gateway that has not had an answer to a check of the
// last 3 s takes nothing from memory; whoever ends something waits for all gateways as long, so that no answer that says
// it has ended comes before it has ended everywhere.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { CREDENTIALS_CHANNEL, ENDED } from '../../runtime/ended-credentials.ts';
import { KeyedQueue } from '../../runtime/keyed-queue.ts';
import { closeLockSession, openLockSession, PoolerError } from '../../runtime/lock-session.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Wakeable } from '../../runtime/wakeable.ts';

const CHECK_MS = 1_000;
/** What was heard holds for so long after the check that showed it was asked. */
const TRUSTED_MS = 3_000;
const LONGEST_PAUSE_MS = 2_000;

/** Name of the sessions that listen, by which others find them. */
const NAME = 'svc-credentials';
/** `ask <id>`: whoever has read this far is to say `read <id>`. */
const ASK = 'ask';
const READ = 'read';

const NOTIFY = 'select pg_notify($1, $2)';
const LISTENERS = `
  select pid from pg_stat_activity where datname = current_database() and application_name = '${NAME}'`;

export interface CredentialNoticesOptions {
  /** The hexadecimal SHA-256 of a secret that ended or changed. */
  onEnded(hash: string): void;
  /** Notices may be missing before this moment. */
  onGap(): void;
}

export class CredentialNotices {
  readonly #runtime: Runtime;
  readonly #options: CredentialNoticesOptions;
  readonly #wakeable = new Wakeable();
  readonly #queries = new KeyedQueue();
  /** Told which session has read a question, by the question's id. */
  readonly #waiting = new Map<string, (pid: number) => void>();
  #client: pg.Client | null = null;
  #trustedUntil = 0;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(runtime: Runtime, options: CredentialNoticesOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  /** Throws {@link PoolerError}; a database that is away is waited for. */
  async start(): Promise<void> {
    await this.#connect().catch((error: unknown) => {
      if (error instanceof PoolerError) throw error;
      this.#runtime.log.warn(
        { err: error },
        'gateway receives no notices of ended keys and sessions, verifying each request',
      );
    });
    this.#running = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wakeable.end();
    await this.#running;
  }

  /** Whether everything that has ended is known here, but for what is on its way. `now`: performance.now(). */
  hears(now: number): boolean {
    return now < this.#trustedUntil;
  }

  /** Waits until every gateway knows what had ended before; at most as long as one that hears nothing trusts its memory. */
  async heardEverywhere(): Promise<void> {
    const client = this.#client;
    const id = randomUUID();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, TRUSTED_MS);
    });
    try {
      await Promise.race([patience, client ? this.#allRead(client, id) : patience]);
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  async #allRead(client: pg.Client, id: string): Promise<void> {
    const done = Promise.withResolvers<void>();
    try {
      const { rows } = await this.#query<{ pid: number }>(client, LISTENERS);
      const missing = new Set(rows.map(({ pid }) => pid));
      this.#waiting.set(id, (pid) => {
        missing.delete(pid);
        if (missing.size === 0) done.resolve();
      });
      await this.#query(client, NOTIFY, [CREDENTIALS_CHANNEL, `${ASK} ${id}`]);
    } catch {
      // Nothing is known of the others now: their time runs.
    }
    return done.promise;
  }

  async #loop(): Promise<void> {
    let pause = CHECK_MS / 10;
    while (!this.#stopped) {
      try {
        if (this.#client === null) {
          await this.#connect();
          this.#runtime.log.info('gateway receives notices of ended keys and sessions');
        }
        pause = CHECK_MS / 10;
        await this.#wakeable.sleep(CHECK_MS);
        if (!this.#stopped && this.#client !== null) await this.#check(this.#client);
      } catch (err) {
        this.#runtime.log.warn(
          { err },
          'gateway receives no notices of ended keys and sessions, verifying each request',
        );
        await this.#disconnect();
        await this.#wakeable.sleep(pause, false);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
    await this.#disconnect();
  }

  async #connect(): Promise<void> {
    const client = await openLockSession(this.#runtime, `${NAME}-new`);
    try {
      client.on('notification', (notice) => this.#heard(client, notice));
      client.once('end', () => {
        if (this.#client !== client) return;
        this.#trustedUntil = 0;
        this.#wakeable.wake();
      });
      // Others wait for it only once it listens.
      await client.query(`listen ${CREDENTIALS_CHANNEL}; set application_name = '${NAME}'`);
      this.#options.onGap();
      this.#client = client;
      await this.#check(client);
    } catch (error) {
      this.#client = null;
      await closeLockSession(client);
      throw error;
    }
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#trustedUntil = 0;
    if (client) await closeLockSession(client);
  }

  /** What the server sent before its answer was read before it. */
  async #check(client: pg.Client): Promise<void> {
    const asked = performance.now();
    await this.#query(client, 'select 1');
    this.#trustedUntil = asked + TRUSTED_MS;
  }

  /** One after the other: the driver takes no second query while one runs. */
  #query<T extends pg.QueryResultRow>(client: pg.Client, text: string, values: string[] = []) {
    return this.#queries.run('', () => client.query<T>(text, values));
  }

  #heard(client: pg.Client, { payload = '', processId }: pg.Notification): void {
    const space = payload.indexOf(' ');
    const [word, text] = [payload.slice(0, space), payload.slice(space + 1)];
    if (word === ENDED) this.#options.onEnded(text);
    else if (word === READ) this.#waiting.get(text)?.(processId);
    else if (word === ASK) {
      // A connection that does not take it is found out by the next check.
      this.#query(client, NOTIFY, [CREDENTIALS_CHANNEL, `${READ} ${text}`]).catch(() => undefined);
    }
  }
}
