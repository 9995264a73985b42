import type { Knex } from 'knex';
import { DEFAULT_LOG_SETTINGS, type LogSettings } from '../../contract/resources/log-settings.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Key of the group in `setting`. */
export const LOGS = 'logs';

export async function readLogSettings(sql: Knex): Promise<LogSettings> {
  return { ...DEFAULT_LOG_SETTINGS, ...(await readSetting<Partial<LogSettings>>(sql, LOGS)) };
}

export async function writeLogSettings(sql: Knex, settings: LogSettings, now: Date): Promise<void> {
  await writeSetting(sql, LOGS, settings, now);
}
