import type { Knex } from 'knex';

/** Names of the nodes that there still are, by id. */
export async function nodeNames(sql: Knex, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
    'select id, name from node where id = any(?)',
    [ids as never],
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}
