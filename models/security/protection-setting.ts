// Protection settings of all sites, and the template of CC policies.
import type { Knex } from 'knex';
import { DEFAULT_CC_TEMPLATE } from '../../contract/resources/cc-template.ts';
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../../contract/resources/protection-settings.ts';
import type { CcThresholds } from '../../contract/scalars/cc-thresholds.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

/** Keys of the groups in `setting`. */
export const PROTECTION = 'protection';
export const CC_TEMPLATE = 'cc_template';

export async function readProtectionSettings(sql: Knex): Promise<ProtectionSettings> {
  return protectionSettingsOf(await readSetting(sql, PROTECTION));
}

/** The settings, saved as they are or not at all. */
export function protectionSettingsOf(saved: Partial<ProtectionSettings> | null | undefined): ProtectionSettings {
  return { ...DEFAULT_PROTECTION_SETTINGS, ...saved };
}

export async function writeProtectionSettings(sql: Knex, settings: ProtectionSettings, now: Date): Promise<void> {
  await writeSetting(sql, PROTECTION, settings, now);
}

export async function readCcTemplate(sql: Knex): Promise<CcThresholds> {
  return ccTemplateOf(await readSetting(sql, CC_TEMPLATE));
}

/** The template, saved as it is or not at all. */
export function ccTemplateOf(saved: Partial<CcThresholds> | null | undefined): CcThresholds {
  return { ...DEFAULT_CC_TEMPLATE, ...saved };
}

export async function writeCcTemplate(sql: Knex, template: CcThresholds, now: Date): Promise<void> {
  await writeSetting(sql, CC_TEMPLATE, template, now);
}
