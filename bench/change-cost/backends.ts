// Processor time of PostgreSQL by the pool that its backends serve.
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { familyCpuSeconds } from '../lib/machine.ts';

/** Names of sessions end with the process that has them. */
const POOL = /^svc-(?:api|bans|channel|jobs|leader|ingest)|owner/;

export class Backends {
  readonly #client: pg.Client;
  readonly #postgresPid: number;

  constructor(url: string, postgresPid: number) {
    this.#client = new pg.Client({ connectionString: url, application_name: 'bench' });
    this.#postgresPid = postgresPid;
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  async end(): Promise<void> {
    await this.#client.end();
  }

  /** Milliseconds so far, by pool; `all` with those of the server's own processes. */
  async spent(): Promise<Record<string, number>> {
    const { rows } = await this.#client.query<{ pid: number; name: string }>(
      `select pid, application_name as name from pg_stat_activity where application_name like 'svc-%'`,
    );
    const spent: Record<string, number> = { all: familyCpuSeconds(this.#postgresPid) * 1000 };
    for (const { pid, name } of rows) {
      const pool = POOL.exec(name)?.[0] ?? 'other';
      spent[pool] = (spent[pool] ?? 0) + ranMs(pid);
    }
    return spent;
  }
}

function ranMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
}
