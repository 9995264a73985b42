// A restore drill: a backup of a database is restored into a scratch database beside it, compared, and dropped.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OPTIONAL_TABLES } from '../../../models/backups/optional-tables.ts';
import { BackupError } from '../../../runtime/backup/backup-error.ts';
import { quoted, tableContents } from '../../../runtime/backup/catalog.ts';
import { copyOut } from '../../../runtime/backup/copy-stream.ts';
import { copyOutStatement } from '../../../runtime/backup/dump.ts';
import { generateBackupKeys, parseSecretKey } from '../../../runtime/backup/keys.ts';
import type { BackupContents } from '../../../runtime/backup/read-backup.ts';
import { Tally } from '../../../runtime/backup/records.ts';
import { withSession } from '../../../runtime/backup/session.ts';
import { type WrittenBackup, writeBackup } from '../../../runtime/backup/write-backup.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import { type Restored, restoreBackup } from './restore.ts';

export interface DrillOptions {
  databaseUrl: string;
  version: string;
  sealer: Sealer | null;
  signal?: AbortSignal;
  onProgress?(phase: string, detail: string): void;
}

export interface Drill {
  backup: WrittenBackup;
  restored: Restored;
  tables: number;
  /** Of the backup with its verification, and of the restore with the comparison. */
  backupMs: number;
  restoreMs: number;
}

/**
 * Backs the database up, encrypted to a key of the moment, restores it into a new database of the same server, and compares
 * every row. Throws BackupError naming the first table that differs. Neither file nor database stays.
 */
export async function drill(options: DrillOptions): Promise<Drill> {
  const { databaseUrl, version, sealer, signal, onProgress: tell = () => undefined } = options;
  const folder = await mkdtemp(join(tmpdir(), 'backup-drill-'));
  try {
    const { publicKey, secretKey } = generateBackupKeys();
    const begun = performance.now();
    const backup = await writeBackup({
      databaseUrl,
      to: folder,
      recipients: [publicKey],
      leftOut: [],
      optionalTables: OPTIONAL_TABLES,
      version,
      ...(signal && { signal }),
      onProgress: ({ phase, table, rows }) => tell(phase, `${table}, ${rows} rows`),
    });
    const written = performance.now();
    const { restored, tables } = await withScratchDatabase(databaseUrl, signal, async (scratch) => {
      let compared = 0;
      const done = await restoreBackup({
        databaseUrl: scratch,
        file: backup.file,
        secret: parseSecretKey(secretKey),
        sealer,
        ...(signal && { signal }),
        onProgress: tell,
        onLoaded: async () => {
          compared = await compare(scratch, backup, signal);
          tell('compare', `${compared} tables are the same`);
        },
      });
      return { restored: done, tables: compared };
    });
    return { backup, restored, tables, backupMs: written - begun, restoreMs: performance.now() - written };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Compares the rows of a database, in the order in which they are stored, with what a backup has counted. */
async function compare(databaseUrl: string, { tables }: BackupContents, signal?: AbortSignal): Promise<number> {
  return withSession(databaseUrl, signal, async (client) => {
    const contents = await tableContents(client, [...tables.keys()]);
    if (contents.length !== tables.size) throw new BackupError('damaged', 'The drill failed: tables are missing.');
    for (const content of contents) {
      const tally = new Tally();
      for await (const piece of copyOut(client, copyOutStatement(content))) tally.add(piece);
      if (tally.totals().sha256 !== tables.get(content.table)!.sha256) {
        throw new BackupError(
          'damaged',
          `The drill failed: restored rows of ${content.table} differ from those of the backup.`,
        );
      }
    }
    return contents.length;
  });
}

async function withScratchDatabase<T>(
  databaseUrl: string,
  signal: AbortSignal | undefined,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const name = `backup_drill_${randomBytes(6).toString('hex')}`;
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  const admin = (statement: string) => withSession(databaseUrl, undefined, (client) => client.query(statement));
  signal?.throwIfAborted();
  try {
    await admin(`create database ${quoted([name])}`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new BackupError(
      'database',
      `The scratch database cannot be created: ${message}. The drill needs a user with CREATEDB.`,
    );
  }
  try {
    return await work(url.href);
  } finally {
    await admin(`drop database if exists ${quoted([name])} with (force)`);
  }
}
