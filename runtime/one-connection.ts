import knexFactory, { type Knex } from 'knex';

const CONNECT_MS = 10_000;

/** Runs `work` with one connection of its own, for programs that are no console. */
export async function withOneConnection<T>(databaseUrl: string, work: (sql: Knex) => Promise<T>): Promise<T> {
  const connection = { connectionString: databaseUrl, connectionTimeoutMillis: CONNECT_MS } as Knex.PgConnectionConfig;
  const knex = knexFactory({
    client: 'pg',
    connection,
    pool: { min: 0, max: 1 },
    acquireConnectionTimeout: CONNECT_MS,
  });
  try {
    return await work(knex);
  } finally {
    await knex.destroy();
  }
}
