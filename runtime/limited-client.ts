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
  trxClient: { query(connection: unknown, sql: string): Promise<unknown> };
}

interface TransactionOptions {
  limits?: TransactionLimits;
  /** Statements of its beginning. */
  first?: string;
}

/** What ends a transaction is never refused or canceled: the connection would keep it. */
const ENDS_TRANSACTION = /^\s*(commit|rollback)\b/i;

/** Understands `limits` and `first` among the options of a transaction that is not inside another. */
export class LimitedClient extends PgClient {
  override transaction(container: unknown, options: TransactionOptions = {}, outer?: unknown): Transaction {
    const transaction = super.transaction(container, options, outer) as Transaction;
    const { limits, first } = options;
    if (limits) transaction.begin = (connection) => begin(transaction, connection, limits, first);
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

/**
 * Options of `knex.transaction` for a pool of {@link LimitedClient}. `first`: statements without parameters and without a
 * result that is needed, sent with the beginning.
 */
export function within(limits: TransactionLimits, first?: string): Knex.TransactionConfig {
  return { limits, first } as Knex.TransactionConfig;
}

/** Where one of the statements fails the connection goes back to its pool without the transaction. */
async function begin(
  { trxClient }: Transaction,
  connection: unknown,
  limits: TransactionLimits,
  first: string | undefined,
): Promise<unknown> {
  try {
    return await trxClient.query(connection, ['begin', setLimits(limits), ...(first ? [first] : [])].join('; '));
  } catch (error) {
    await trxClient.query(connection, 'rollback').catch(() => undefined);
    throw error;
  }
}

/** Statements that limit the transaction from here on. */
export function setLimits({ lockMs, wholeMs }: TransactionLimits): string {
  return `set local lock_timeout = ${lockMs}; set local transaction_timeout = ${wholeMs}`;
}
