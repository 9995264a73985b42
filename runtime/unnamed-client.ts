// Behind a pooler in transaction mode a statement that was prepared by name is on another connection the next time, so
// every statement goes unnamed there. PgBouncer knows names from 1.21 on, where its operator turns that on; unnamed
// statements work with each of them.
import pg from 'pg';

type Query = (...given: unknown[]) => unknown;

export class UnnamedClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const query = this.query.bind(this) as Query;
    this.query = ((statement: unknown, ...rest: unknown[]) => query(unnamed(statement), ...rest)) as typeof this.query;
  }
}

function unnamed(statement: unknown): unknown {
  if (typeof statement !== 'object' || statement === null || !('name' in statement) || !statement.name)
    return statement;
  const { name: _, ...rest } = statement;
  return rest;
}
