import type { Knex } from 'knex';

/** Keeps the sites from being deleted until the end of the transaction; returns whether all of them are there. */
export async function holdSites(sql: Knex, ids: readonly string[]): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    'select from site where id = any(?) order by id for key share',
    [ids as never],
  );
  return rowCount === ids.length;
}
