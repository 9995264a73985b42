// knex describes no client of its own; this is what runtime/limited-client.ts needs of the one for PostgreSQL.
declare module 'knex/lib/dialects/postgres/index.js' {
  export default class PgClient {
    _driver(): object;
    _query(connection: unknown, query: { sql?: string }): Promise<unknown>;
    transaction(container: unknown, options?: object, outer?: unknown): unknown;
  }
}
