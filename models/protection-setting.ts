// Protection settings of all sites, and the template of CC policies.
import type { Knex } from 'knex';
import { DEFAULT_CC_TEMPLATE } from '../contract/resources/cc-template.ts';
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../contract/resources/protection-settings.ts';
import type { CcThresholds } from '../contract/scalars/cc-thresholds.ts';
import { readSetting, writeSetting } from './setting.ts';

/** Keys of the groups in `setting`. */
export const PROTECTION = 'protection';
export const CC_TEMPLATE = 'cc_template';

export async function readProtectionSettings(sql: Knex): Promise<ProtectionSettings> {
  return { ...DEFAULT_PROTECTION_SETTINGS, ...(await readSetting<Partial<ProtectionSettings>>(sql, PROTECTION)) };
}

export async function writeProtectionSettings(sql: Knex, settings: ProtectionSettings, now: Date): Promise<void> {
  await writeSetting(sql, PROTECTION, settings, now);
}

export async function readCcTemplate(sql: Knex): Promise<CcThresholds> {
  return { ...DEFAULT_CC_TEMPLATE, ...(await readSetting<Partial<CcThresholds>>(sql, CC_TEMPLATE)) };
}

export async function writeCcTemplate(sql: Knex, template: CcThresholds, now: Date): Promise<void> {
  await writeSetting(sql, CC_TEMPLATE, template, now);
}
