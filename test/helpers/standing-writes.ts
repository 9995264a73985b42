// Writes of other processes that stand where a test wants them to: a trigger asks for a lock that the test holds, and the
// test lets them go on, or has them come to nothing.
import pg from 'pg';
import { eventually } from './eventually.ts';

const LOCK = 4712;

/** Statement of a trigger's function: stands while the key, an expression, is held. */
export const stand = (key: string): string => `
  perform set_config('lock_timeout', '0', true), set_config('transaction_timeout', '0', true);
  perform pg_advisory_xact_lock_shared(${LOCK}, hashtext(${key}));`;

export class StandingWrites {
  readonly #database: pg.Pool;
  readonly #holder: pg.Client;

  private constructor(database: pg.Pool, holder: pg.Client) {
    this.#database = database;
    this.#holder = holder;
  }

  static async open(databaseUrl: string): Promise<StandingWrites> {
    const holder = new pg.Client({ connectionString: databaseUrl });
    await holder.connect();
    return new StandingWrites(new pg.Pool({ connectionString: databaseUrl, max: 2 }), holder);
  }

  /** From now on writes of the key stand. */
  async hold(key: string): Promise<void> {
    await this.#holder.query('select pg_advisory_lock($1, hashtext($2))', [LOCK, key]);
  }

  /** Waits until a write of each of the keys stands. */
  async all(keys: readonly string[]): Promise<void> {
    const wait = { everyMs: 100, timeoutMs: 180_000, what: `writes of ${keys.join(', ')} standing` };
    await eventually(async () => (await this.#standing(keys)).size === keys.length, wait);
  }

  /** Ends the writes of some of the keys, which come to nothing, and lets the others go on. */
  async decide(keys: readonly string[], lost: readonly string[]): Promise<void> {
    const stand = await this.#standing(keys);
    const pids = lost.map((key) => stand.get(key));
    const { rowCount } = await this.#database.query('select pg_terminate_backend(pid) from unnest($1::int[]) as pid', [
      pids,
    ]);
    if (rowCount !== lost.length) throw new Error('not each of the writes stood');
    await eventually(async () => [...(await this.#standing(keys)).keys()].every((key) => !lost.includes(key)));
    await this.#holder.query('select pg_advisory_unlock_all()');
  }

  async close(): Promise<void> {
    await this.#holder.end();
    await this.#database.end();
  }

  /** Backends that stand, by their key. */
  async #standing(keys: readonly string[]): Promise<Map<string, number>> {
    const { rows } = await this.#database.query<{ key: string; pid: number }>(
      `select key, pid from unnest($1::text[]) as key
         join pg_locks on locktype = 'advisory' and classid = ${LOCK} and not granted
          and objid::bigint = hashtext(key)::bigint & 4294967295`,
      [keys],
    );
    return new Map(rows.map(({ key, pid }) => [key, pid]));
  }
}
