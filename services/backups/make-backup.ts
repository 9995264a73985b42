// Makes the backup that is due or was asked for, in a process that may write to its folder.
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { BackupFailure } from '../../contract/resources/backups.ts';
import {
  backupFacts,
  beginBackup,
  failBackup,
  finishBackup,
  noteBackupDeleted,
  renewBackup,
  replacedBackups,
  type TakenBackup,
  takeWaitingBackup,
} from '../../models/backups/backup.ts';
import { readBackupSettings, type StoredBackupSettings } from '../../models/backups/backup-settings.ts';
import { OPTIONAL_TABLES } from '../../models/backups/optional-tables.ts';
import { BackupError, type BackupProblem } from '../../runtime/backup/backup-error.ts';
import { type BackupProgress, writeBackupInThread } from '../../runtime/backup/backup-thread.ts';
import { BACKUP_SUFFIX } from '../../runtime/backup/write-backup.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backupTimes } from './due.ts';
import { folderProblem } from './folder.ts';

/** Half of a lease and less: one that is late loses nothing. */
const RENEW_EVERY_MS = 2_000;

type Made = Pick<Runtime, 'env' | 'log' | 'pools'>;

/** Does nothing while none is due. */
export async function makeBackup(runtime: Made, signal: AbortSignal): Promise<void> {
  const sql = runtime.pools.api;
  const settings = await readBackupSettings(sql);
  const taken = (await takeWaitingBackup(sql)) ?? (await beginDue(runtime, settings));
  if (!taken) return;
  try {
    await write(runtime, settings, taken, signal);
  } catch (err) {
    runtime.log.error({ err, backupId: taken.id }, 'backup failed');
    await failBackup(sql, taken.id, signal.aborted ? 'stopped' : failureOf(err));
    return;
  }
  await deleteReplaced(runtime, settings);
}

async function beginDue({ pools }: Made, settings: StoredBackupSettings): Promise<TakenBackup | null> {
  const times = backupTimes(settings, await backupFacts(pools.api));
  if (times === null || Date.now() < times.nextAt.getTime()) return null;
  return beginBackup(pools.api, settings.folder);
}

async function write(
  { env, pools }: Made,
  { publicKey, withoutLogs, withoutStatistics }: StoredBackupSettings,
  { id, folder }: TakenBackup,
  signal: AbortSignal,
): Promise<void> {
  const sql = pools.api;
  if ((await folderProblem(env, folder, false)) !== null)
    throw new BackupError('file_unreadable', `Backups cannot be written to ${folder}.`);
  const lost = new AbortController();
  let now: { phase: BackupProgress['phase']; progress: number } = { phase: 'write', progress: 0 };
  const timer = setInterval(() => {
    renewBackup(sql, id, now).then(
      (held) => held || lost.abort(),
      // The database is away: the backup itself says so.
      () => undefined,
    );
  }, RENEW_EVERY_MS);
  try {
    const written = await writeBackupInThread(
      {
        databaseUrl: env.databaseDirectUrl,
        to: folder,
        recipients: [publicKey],
        leftOut: [...(withoutLogs ? (['logs'] as const) : []), ...(withoutStatistics ? (['statistics'] as const) : [])],
        optionalTables: OPTIONAL_TABLES,
        version: env.version,
      },
      AbortSignal.any([signal, lost.signal]),
      ({ phase, rows, totalRows }) => {
        now = { phase, progress: Math.min(99, Math.floor((100 * rows) / Math.max(totalRows, rows, 1))) };
      },
    );
    await finishBackup(sql, id, { name: basename(written.file), bytes: written.bytes, rows: written.rows });
  } finally {
    clearInterval(timer);
  }
}

/** Deletes files that this console has written to the folder, and no other. */
async function deleteReplaced({ pools, log }: Made, { folder, keep, keepBy }: StoredBackupSettings): Promise<void> {
  for (const { id, file_name } of await replacedBackups(pools.api, folder, { by: keepBy, count: keep })) {
    if (basename(file_name) !== file_name || !file_name.endsWith(BACKUP_SUFFIX)) continue;
    try {
      await rm(join(folder, file_name), { force: true });
      await noteBackupDeleted(pools.api, id);
    } catch (err) {
      log.warn({ err, backupId: id }, 'an old backup cannot be deleted');
    }
  }
}

const FAILURES: Partial<Record<BackupProblem, BackupFailure>> = {
  file_unreadable: 'folder',
  file_exists: 'folder',
  disk_full: 'disk_full',
  damaged: 'damaged',
  database: 'database',
};

function failureOf(error: unknown): BackupFailure {
  if (error instanceof BackupError) return FAILURES[error.code] ?? 'failed';
  // PostgreSQL's own.
  return /^[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code)) ? 'database' : 'failed';
}
