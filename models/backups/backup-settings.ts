// When backups are made, and where to: one setting, and its defaults without one.
import type { Knex } from 'knex';
import type { BackupSettings } from '../../contract/resources/backups.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

export const BACKUP_SETTINGS = 'backups';

export const DEFAULT_BACKUP_SETTINGS: Readonly<Omit<BackupSettings, 'updatedAt'>> = {
  enabled: false,
  intervalHours: 24,
  keepBy: 'copies',
  keep: 30,
  folder: '',
  publicKey: '',
  withoutLogs: false,
  withoutStatistics: false,
};

export interface StoredBackupSettings extends BackupSettings {
  /** Since when there is a schedule, without a break. */
  enabledAt: string | null;
}

export async function readBackupSettings(sql: Knex): Promise<StoredBackupSettings> {
  const stored = await readSetting<Partial<StoredBackupSettings>>(sql, BACKUP_SETTINGS);
  return { ...DEFAULT_BACKUP_SETTINGS, updatedAt: null, enabledAt: null, ...stored };
}

export async function writeBackupSettings(sql: Knex, settings: StoredBackupSettings, now: Date): Promise<void> {
  await writeSetting(sql, BACKUP_SETTINGS, settings, now);
}
