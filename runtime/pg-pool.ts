// Pools of plain connections: named statements, and none of a query builder.
import pg from 'pg';
import { UnnamedClient } from './unnamed-client.ts';

const CONNECT_MS = 5_000;
const STATEMENT_MS = 15_000;

export interface PgPoolOptions {
  url: string;
  /** In transaction mode, which knows no names of statements. */
  behindPooler: boolean;
  /** As PostgreSQL shows its connections. */
  name: string;
  max: number;
}

export function createPgPool({ url, behindPooler, name, max }: PgPoolOptions): pg.Pool {
  const Client = behindPooler ? UnnamedClient : pg.Client;
  return new pg.Pool({ ...poolConnection(url, name, STATEMENT_MS), max, Client });
}

export function poolConnection(connectionString: string, name: string, statementMs: number): pg.PoolConfig {
  return {
    connectionString,
    application_name: name,
    connectionTimeoutMillis: CONNECT_MS,
    // Above every bound inside the database, so that it only ends what those cannot: a server that went silent.
    query_timeout: 20_000,
    statement_timeout: statementMs,
    keepAlive: true,
  };
}
