import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { Backup, BackupStatus, backups } from '../../contract/resources/backups.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { addWaitingBackup, type BackupRow, backupCount, backupFacts, backupPage } from '../../models/backups/backup.ts';
import { readBackupSettings } from '../../models/backups/backup-settings.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { backupTimes } from './due.ts';
import { refuseFolder } from './settings.ts';

export async function listBackups(
  { pools }: Runtime,
  { page = 1, pageSize = 50 }: Input<typeof backups.list>,
): Promise<Output<typeof backups.list>> {
  const [rows, total] = await Promise.all([
    backupPage(pools.api, pageSize, (page - 1) * pageSize),
    backupCount(pools.api),
  ]);
  return { items: rows.map(presentBackup), total };
}

export async function backupStatus({ pools, env }: Runtime): Promise<BackupStatus> {
  const [settings, facts] = await Promise.all([readBackupSettings(pools.api), backupFacts(pools.api)]);
  const times = backupTimes(settings, facts);
  return {
    lastGoodAt: facts.lastGoodAt?.toISOString() ?? null,
    nextAt: times?.nextAt.toISOString() ?? null,
    lateAt: times?.lateAt.toISOString() ?? null,
    folders: env.backupDirs,
  };
}

/** Throws BACKUP_NOT_SET, BACKUP_FOLDER_REFUSED and BACKUP_RUNNING. */
export async function createBackup(runtime: Runtime, call: Call): Promise<Backup> {
  const { folder, publicKey } = await readBackupSettings(runtime.pools.api);
  if (folder === '' || publicKey === '') fail('BACKUP_NOT_SET');
  await refuseFolder(runtime.env, folder);
  return write(runtime, call, { status: 201 }, async (tx) => {
    const row = (await addWaitingBackup(tx.sql, folder)) ?? fail('BACKUP_RUNNING');
    await recordAudit(tx, 'backup.run', { type: 'backup', id: row.id, name: null }, { folder });
    return presentBackup(row);
  });
}

function presentBackup(row: BackupRow): Backup {
  return {
    id: row.id,
    cause: row.cause,
    state: row.state,
    phase: row.phase,
    progress: row.progress,
    // A file gets its name after it was read back.
    verified: row.state === 'done',
    problem: row.problem,
    folder: row.folder,
    fileName: row.file_name,
    deletedAt: row.deleted_at?.toISOString() ?? null,
    bytes: row.bytes === null ? null : Number(row.bytes),
    rows: row.rows === null ? null : Number(row.rows),
    createdAt: row.created_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    endedAt: row.ended_at?.toISOString() ?? null,
  };
}
