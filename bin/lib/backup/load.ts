// Loads the rows of a backup into the tables that its migrations have made.
import type { Client } from 'pg';
import { BackupError, damaged } from '../../../runtime/backup/backup-error.ts';
import { partitions, quoted, tableContents, tableNames } from '../../../runtime/backup/catalog.ts';
import { copyInStream } from '../../../runtime/backup/copy-stream.ts';
import type { BackupVisitor, PartitionOf, SequenceValue, TableContent } from '../../../runtime/backup/records.ts';

/** What the file says is given to the database as statements: only what PostgreSQL itself would write. */
const BOUND = /^(FOR VALUES FROM \('[0-9 :+.-]+'\) TO \('[0-9 :+.-]+'\)|DEFAULT)$/;
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

interface ForeignKey {
  table: string;
  name: string;
  definition: string;
}

/**
 * A visitor that fills the database within the transaction of the caller. Foreign keys are checked when all rows are there:
 * call `end` then. Triggers do nothing: what they would write is in the backup.
 */
export async function loader(client: Client): Promise<Omit<BackupVisitor, 'tableEnd'> & { end(): Promise<void> }> {
  const names = await tableNames(client);
  const known = new Map((await tableContents(client, names)).map(({ table, columns }) => [table, new Set(columns)]));
  const keys = await foreignKeys(client);
  for (const { table, name } of keys)
    await client.query(`alter table ${quoted([table])} drop constraint ${quoted([name])}`);
  for (const name of names) await client.query(`alter table ${quoted([name])} disable trigger user`);
  // Rows that migrations have written are in the backup as they are now.
  await client.query(`truncate table ${quoted(names)}`);
  return {
    async partitions(all) {
      const there = new Set((await partitions(client, names)).map(({ name }) => name));
      for (const each of all) if (!there.has(each.name)) await makePartition(client, each, known);
    },
    async table(content, rows) {
      checkTable(content, known);
      const { table, columns } = content;
      await copyInStream(client, `copy ${quoted([table])} (${quoted(columns)}) from stdin`, rows);
    },
    async sequences(all) {
      for (const each of all) await setSequence(client, each);
    },
    async end() {
      for (const name of names) await client.query(`alter table ${quoted([name])} enable trigger user`);
      for (const { table, name, definition } of keys) {
        await client.query(`alter table ${quoted([table])} add constraint ${quoted([name])} ${definition}`);
      }
    },
  };
}

function checkTable({ table, columns }: TableContent, known: ReadonlyMap<string, ReadonlySet<string>>): void {
  const has = known.get(table);
  if (!has || columns.some((column) => !has.has(column))) {
    throw new BackupError(
      'newer',
      `The backup has a table or column that its migrations do not make: ${table}. A development version may have written it.`,
    );
  }
}

async function makePartition(
  client: Client,
  { table, name, bound }: PartitionOf,
  known: ReadonlyMap<string, unknown>,
): Promise<void> {
  if (!known.has(table) || !NAME.test(name) || !BOUND.test(bound)) throw damaged('it names an impossible partition');
  await client.query(`create table ${quoted([name])} partition of ${quoted([table])} ${bound}`);
}

async function setSequence(client: Client, { name, value }: SequenceValue): Promise<void> {
  await client.query(
    `select setval(quote_ident(sequencename)::regclass, $2::bigint) from pg_sequences
      where schemaname = current_schema() and sequencename = $1`,
    [name, value],
  );
}

/** Those of the tables themselves; partitions follow. */
async function foreignKeys(client: Client): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(
    `select c.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
       from pg_constraint k join pg_class c on c.oid = k.conrelid
      where k.contype = 'f' and k.conparentid = 0 and c.relnamespace = current_schema()::regnamespace order by 1, 2`,
  );
  return rows;
}
