import type { Knex } from 'knex';
import { DEFAULT_BAN_SETTINGS } from '../../contract/resources/bans.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Key of the group in `setting`. */
export const BANS = 'bans';

export interface BanSettings {
  maxTotal: number;
  shareAutoBans: boolean;
}

export async function readBanSettings(sql: Knex): Promise<BanSettings> {
  return { ...DEFAULT_BAN_SETTINGS, ...(await readSetting<Partial<BanSettings>>(sql, BANS)) };
}

export async function writeBanSettings(sql: Knex, settings: BanSettings, now: Date): Promise<void> {
  await writeSetting(sql, BANS, settings, now);
}
