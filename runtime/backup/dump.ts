// The database as records, all of one moment: one snapshot of a REPEATABLE READ transaction that only reads. DEFERRABLE
// would wait for a moment without serialization anomalies; the console has no serializable transactions that could have any.
import type { Client } from 'pg';
import { BackupError } from './backup-error.ts';
import { estimatedRows, migrationNames, partitions, quoted, sequences, tableContents, tableNames } from './catalog.ts';
import { copyOut } from './copy-stream.ts';
import { dataRecords, record, type TableContent, type TableTotals, Tally } from './records.ts';

const TRIES = 3;

/** What is known when the snapshot is taken. */
export interface Snapshot {
  /** ISO 8601. */
  createdAt: string;
  migrations: string[];
  masterKey: string | null;
  tables: TableContent[];
  /** About. */
  rows: number;
}

export interface DumpProgress {
  table: string;
  rows: number;
  /** Of all tables, about. */
  totalRows: number;
}

/**
 * Takes the snapshot. Every table is locked against being altered or dropped before: a partition that is dropped in
 * between would be missing although the snapshot has its rows.
 */
export async function takeSnapshot(client: Client, without: readonly string[]): Promise<Snapshot> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await snapshot(client, without);
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      // A table was dropped after it was listed, or a migration holds one.
      const code = (error as { code?: string }).code;
      if (attempt === TRIES || (code !== '42P01' && code !== '55P03')) throw error;
    }
  }
}

async function snapshot(client: Client, without: readonly string[]): Promise<Snapshot> {
  const { rows: found } = await client.query<{ there: boolean; unfinished: boolean }>(
    `select to_regclass('console_state') is not null as there, to_regclass('restore_unfinished') is not null as unfinished`,
  );
  if (found[0]!.unfinished)
    throw new BackupError('database', 'This database is an unfinished restore. Run npm run restore again.');
  if (!found[0]!.there)
    throw new BackupError('database', 'This is not a database of a console: it has no table console_state.');
  const listed = await tableNames(client);
  await client.query('begin isolation level repeatable read read only');
  await client.query(`lock table ${quoted(listed)} in access share mode`);
  const { rows } = await client.query<{ at: Date; master_key: string | null }>(
    'select clock_timestamp() as at, (select master_key_fingerprint from console_state) as master_key',
  );
  const names = (await tableNames(client)).filter((name) => !without.includes(name));
  return {
    createdAt: rows[0]!.at.toISOString(),
    masterKey: rows[0]!.master_key,
    migrations: await migrationNames(client),
    tables: await tableContents(client, names),
    rows: await estimatedRows(client, names),
  };
}

/** All records of the snapshot; ends its transaction. */
export async function* dumpRecords(
  client: Client,
  { tables, rows: totalRows }: Snapshot,
  onTable: (content: TableContent, totals: TableTotals) => void,
  onProgress: (progress: DumpProgress) => void,
): AsyncGenerator<Buffer> {
  const names = tables.map(({ table }) => table);
  yield record('P', await partitions(client, names));
  let rows = 0;
  for (const content of tables) {
    yield record('T', content);
    const tally = new Tally();
    yield* dataRecords(copyOut(client, copyOutStatement(content)), tally);
    const totals = tally.totals();
    yield record('E', totals);
    rows += totals.rows;
    onTable(content, totals);
    onProgress({ table: content.table, rows, totalRows });
  }
  yield record('S', await sequences(client));
  yield record('Z', { tables: tables.length });
  await client.query('commit');
}

/** A query rather than the table alone: COPY of a partitioned table names its partitions one by one. */
export function copyOutStatement({ table, columns }: TableContent): string {
  return `copy (select ${quoted(columns)} from ${quoted([table])}) to stdout`;
}
