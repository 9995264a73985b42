// Error pages of all clusters: for hosts of no site, and for disabled sites.
import type { Knex } from 'knex';
import { DEFAULT_PLATFORM_PAGES, type PlatformPages } from '../../contract/resources/error-pages.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Key of the group in `setting`. */
export const ERROR_PAGES = 'error_pages';

export async function readPlatformPages(sql: Knex): Promise<PlatformPages> {
  return { ...DEFAULT_PLATFORM_PAGES, ...(await readSetting<Partial<PlatformPages>>(sql, ERROR_PAGES)) };
}

export async function writePlatformPages(sql: Knex, pages: PlatformPages, now: Date): Promise<void> {
  await writeSetting(sql, ERROR_PAGES, pages, now);
}
