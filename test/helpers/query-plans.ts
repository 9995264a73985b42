// What PostgreSQL reads for a list: the statements that a request makes, run once more and explained.
import pg from 'pg';
import type { TestConsole } from './console.ts';
import type { Api } from './resources.ts';

interface Plan {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Relation Name'?: string;
  Plans?: Plan[];
}

/** Rows of tables that requests look at, by statement. */
export class QueryPlans {
  readonly #api: Api;
  readonly #database: pg.Client;

  constructor(api: Api, { databaseUrl }: TestConsole) {
    this.#api = api;
    this.#database = new pg.Client({ connectionString: databaseUrl });
  }

  connect(): Promise<unknown> {
    return this.#database.connect();
  }

  end(): Promise<void> {
    return this.#database.end();
  }

  /**
   * Rows that each of the statements in question reads while the path, or what the function does, is asked for. Nobody else
   * may ask meanwhile.
   */
  async rowsRead(asked: string | (() => Promise<unknown>), inQuestion: (sql: string) => boolean): Promise<number[]> {
    const statements: { sql: string; bindings: unknown[] }[] = [];
    const note = ({ sql, bindings }: { sql: string; bindings: unknown[] }) => statements.push({ sql, bindings });
    this.#api.sql.on('query', note);
    await (typeof asked === 'string' ? this.#api.ok('GET', asked) : asked());
    this.#api.sql.removeListener('query', note);
    const read: number[] = [];
    for (const { sql, bindings } of statements) {
      if (!inQuestion(sql)) continue;
      const { rows } = await this.#database.query(`explain (analyze, format json) ${sql}`, bindings);
      read.push(rowsOf(rows[0]['QUERY PLAN'][0].Plan));
    }
    return read;
  }
}

function rowsOf(plan: Plan): number {
  const own = plan['Relation Name']
    ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
    : 0;
  return own + (plan.Plans ?? []).reduce((sum, part) => sum + rowsOf(part), 0);
}
