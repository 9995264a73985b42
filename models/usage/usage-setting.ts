import type { Knex } from 'knex';
import { DEFAULT_USAGE_SETTINGS, type UsageSettings } from '../../contract/resources/usage.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Key of the group in `setting`. */
export const USAGE = 'usage';

export async function readUsageSettings(sql: Knex): Promise<UsageSettings> {
  return { ...DEFAULT_USAGE_SETTINGS, ...(await readSetting<Partial<UsageSettings>>(sql, USAGE)) };
}

export async function writeUsageSettings(sql: Knex, settings: UsageSettings, now: Date): Promise<void> {
  await writeSetting(sql, USAGE, settings, now);
}
