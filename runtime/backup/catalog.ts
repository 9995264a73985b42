// What of a database a backup contains: every table of its schema whose rows outlive a crash, in one moment.
import type { Client } from 'pg';
import type { PartitionOf, SequenceValue, TableContent } from './records.ts';

/** Made by the migrations themselves, or by a restore under way. */
const NOT_COPIED = ['migration', 'function_version', 'restore_unfinished'];

const OF_EXTENSION = `exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`;

/** Names of the tables; a partitioned table stands for its partitions. */
export async function tableNames(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relpersistence = 'p' and c.relname <> all($1) and not ${OF_EXTENSION} order by 1`,
    [NOT_COPIED],
  );
  return rows.map(({ name }) => name);
}

/** Columns that are stored as given, in their order. */
export async function tableContents(client: Client, tables: readonly string[]): Promise<TableContent[]> {
  const { rows } = await client.query<TableContent>(
    `select c.relname as table, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      where c.relnamespace = current_schema()::regnamespace and c.relname = any($1) group by c.relname order by 1`,
    [tables],
  );
  return rows;
}

export async function partitions(client: Client, tables: readonly string[]): Promise<PartitionOf[]> {
  const { rows } = await client.query<PartitionOf>(
    `select p.relname as table, c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
       from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
      where p.relnamespace = current_schema()::regnamespace and p.relkind = 'p' and p.relname = any($1) order by 1, 2`,
    [tables],
  );
  return rows;
}

/**
 * The last numbers given. They are later than the snapshot or as it was, never earlier: no number of a row of the backup
 * is given again.
 */
export async function sequences(client: Client): Promise<SequenceValue[]> {
  const { rows } = await client.query<SequenceValue>(
    `select sequencename as name, last_value::text as value from pg_sequences
      where schemaname = current_schema() and last_value is not null order by 1`,
  );
  return rows;
}

/** Names of the migrations that the database has, in order. */
export async function migrationNames(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration order by name');
  return rows.map(({ name }) => name);
}

/** How many rows the tables have, about. */
export async function estimatedRows(client: Client, tables: readonly string[]): Promise<number> {
  const { rows } = await client.query<{ rows: number }>(
    `select coalesce(sum(greatest(reltuples, 0)), 0)::float8 as rows from pg_class
      where relnamespace = current_schema()::regnamespace and relkind = 'r'
        and (relname = any($1) or oid in (select inhrelid from pg_inherits i join pg_class p on p.oid = i.inhparent
              where p.relname = any($1)))`,
    [tables],
  );
  return rows[0]!.rows;
}

/** Quotes names of tables and columns. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ');
}
