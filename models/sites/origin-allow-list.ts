import type { Knex } from 'knex';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Key of the group in `setting`. */
export const ORIGIN_ALLOW_LIST = 'origin_allow_list';

/** Canonical CIDRs, sorted. */
export async function readOriginAllowList(sql: Knex): Promise<string[]> {
  return (await readSetting<{ cidrs: string[] }>(sql, ORIGIN_ALLOW_LIST))?.cidrs ?? [];
}

export async function writeOriginAllowList(sql: Knex, cidrs: readonly string[], now: Date): Promise<void> {
  await writeSetting(sql, ORIGIN_ALLOW_LIST, { cidrs }, now);
}
