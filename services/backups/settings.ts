import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { BackupSettings, backupSettings } from '../../contract/resources/backups.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import {
  BACKUP_SETTINGS,
  DEFAULT_BACKUP_SETTINGS,
  readBackupSettings,
  type StoredBackupSettings,
  writeBackupSettings,
} from '../../models/backups/backup-settings.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { BackupError } from '../../runtime/backup/backup-error.ts';
import { parsePublicKey } from '../../runtime/backup/keys.ts';
import type { Call } from '../../runtime/call.ts';
import type { ConsoleEnv } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { folderProblem } from './folder.ts';

export async function getBackupSettings({ pools }: Runtime): Promise<BackupSettings> {
  return present(await readBackupSettings(pools.api));
}

/** Throws BACKUP_NOT_SET, BACKUP_KEY_INVALID, BACKUP_FOLDER_REFUSED and UPDATED_AT_MISMATCH. */
export async function setBackupSettings(
  runtime: Runtime,
  { expectedUpdatedAt, ...input }: Input<typeof backupSettings.set>,
  call: Call,
): Promise<BackupSettings> {
  const wanted = { ...DEFAULT_BACKUP_SETTINGS, ...input };
  wanted.folder = wanted.folder.replace(/(?<=.)\/+$/, '');
  if (wanted.publicKey !== '') refuseKey(wanted.publicKey);
  if (wanted.folder !== '') await refuseFolder(runtime.env, wanted.folder);
  if (wanted.enabled && (wanted.folder === '' || wanted.publicKey === '')) fail('BACKUP_NOT_SET');
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, BACKUP_SETTINGS);
    const before = await readBackupSettings(tx.sql);
    assertUpdatedAt(expectedUpdatedAt, before.updatedAt === null ? null : new Date(before.updatedAt));
    const updatedAt = nextUpdatedAt(new Date(before.updatedAt ?? 0), tx.now).toISOString();
    const enabledAt = wanted.enabled ? (before.enabledAt ?? updatedAt) : null;
    const settings = { ...wanted, updatedAt, enabledAt };
    await writeBackupSettings(tx.sql, settings, tx.now);
    await recordAudit(tx, 'backup.settings_update', settingTarget(BACKUP_SETTINGS), wanted);
    return present(settings);
  });
}

/** Throws BACKUP_FOLDER_REFUSED. */
export async function refuseFolder(env: ConsoleEnv, folder: string): Promise<void> {
  const elsewhere = env.role !== 'all' || env.services !== null;
  const reason = await folderProblem(env, folder, elsewhere);
  if (reason !== null) fail('BACKUP_FOLDER_REFUSED', { reason });
}

function refuseKey(key: string): void {
  try {
    parsePublicKey(key);
  } catch (error) {
    if (error instanceof BackupError) fail('BACKUP_KEY_INVALID');
    throw error;
  }
}

function present({ enabledAt: _, ...settings }: StoredBackupSettings): BackupSettings {
  return settings;
}
