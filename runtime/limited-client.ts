// knex's client for PostgreSQL, whose transactions can begin with their limits of time in one round trip, and whose statements end
// with their request.
import type { Knex } from 'knex';
import PgClient from 'knex/lib/dialects/postgres/index.js';
import pg from 'pg';
import { type CancelableClient, cancelStatement } from './cancel-statement.ts';
import { currentScope } from './request-scope.ts';
import { UnnamedClient } from './unnamed-client.ts';

/** Bounds of a transaction, in milliseconds. */
export interface TransactionLimits {
  /** Waiting for one lock. */
  lockMs: number;
  /** All of it; 0: no limit. */
  wholeMs: number;
}

interface Transaction {
  begin(connection: unknown): Promise<unknown>;
  query(connection: unknown, sql: string): Promise<unknown>;
}

/** What ends a transaction is never refused or canceled: the connection would keep it. */
const ENDS_TRANSACTION = /^\s*(commit|rollback)\b/i;

/** Understands `limits` among the options of a transaction that is not inside another. */
export class LimitedClient extends PgClient {
  override transaction(container: unknown, options?: { limits?: TransactionLimits }, outer?: unknown): Transaction {
    const transaction = super.transaction(container, options, outer) as Transaction;
    const limits = options?.limits;
    if (limits) transaction.begin = (connection) => transaction.query(connection, beginWithin(limits));
    return transaction;
  }

  override async _query(connection: CancelableClient, query: { sql?: string }): Promise<unknown> {
    const scope = currentScope();
    if (!scope || ENDS_TRANSACTION.test(query.sql ?? '')) return super._query(connection, query);
    scope.refuseLate();
    const ended = scope.began(() => cancelStatement(connection));
    try {
      return await super._query(connection, query);
    } finally {
      ended();
    }
  }
}

/** The same behind a pooler. */
export class PooledClient extends LimitedClient {
  override _driver(): object {
    return { ...pg, Client: UnnamedClient };
  }
}

/** Options of `knex.transaction` for a pool of {@link LimitedClient}. */
export function within(limits: TransactionLimits): Knex.TransactionConfig {
  return { limits } as Knex.TransactionConfig;
}

function beginWithin(limits: TransactionLimits): string {
  return `begin; ${setLimits(limits)}`;
}

/** Statements that limit the transaction from here on. */
export function setLimits({ lockMs, wholeMs }: TransactionLimits): string {
  return `set local lock_timeout = ${lockMs}; set local transaction_timeout = ${wholeMs}`;
}
