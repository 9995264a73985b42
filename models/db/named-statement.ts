// Hot statements by name: parsed and planned once per connection, and without a query builder. Out of the pool that
// everything else uses, so that the number of connections stays what it is.
import type { Knex } from 'knex';
import type { ClientBase } from 'pg';

/** The part of knex that lends connections. */
interface Lender {
  acquireConnection(): Promise<ClientBase>;
  releaseConnection(connection: ClientBase): Promise<void>;
}

/** Runs a statement with numbered parameters; the name belongs to its text. Not for use inside a transaction. */
export async function named<T>(sql: Knex, name: string, text: string, values: readonly unknown[]): Promise<T[]> {
  const lender = sql.client as Lender;
  const connection = await lender.acquireConnection();
  try {
    const { rows } = await connection.query({ name, text, values: values as unknown[] });
    return rows as T[];
  } finally {
    await lender.releaseConnection(connection);
  }
}

/** A statement whose parameters are question marks. */
export interface Statement {
  text: string;
  bindings: readonly unknown[];
}

/** As {@link named}, with question marks for parameters, for use inside a transaction, too. */
export async function prepared<T>(sql: Knex, name: string, { text, bindings }: Statement): Promise<T[]> {
  const { rows } = await sql.raw<{ rows: T[] }>(text, bindings as never).options({ name });
  return rows;
}

/** Runs a statement with numbered parameters where a query builder or a transaction is at hand. */
export async function numbered<T>(sql: Knex, text: string, values: readonly unknown[]): Promise<T[]> {
  const used: unknown[] = [];
  const marked = text.replace(/\$([0-9]+)/g, (_all, number: string) => {
    used.push(values[Number(number) - 1]);
    return '?';
  });
  const { rows } = await sql.raw<{ rows: T[] }>(marked, used as never);
  return rows;
}
