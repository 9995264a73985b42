// When alerts begin: one setting, and its defaults without one.
import type { Knex } from 'knex';
import type { AlertPolicy } from '../../contract/resources/alerts.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

export const ALERT_POLICY = 'alert_policy';

export type AlertLimits = Omit<AlertPolicy, 'updatedAt'>;

export const DEFAULT_ALERT_POLICY: Readonly<AlertLimits> = {
  nodeOfflineSeconds: 90,
  certificateHours: 72,
  errorRatio: 0.2,
  minimumRequests: 100,
  windowMinutes: 5,
};

export async function readAlertPolicy(sql: Knex): Promise<AlertPolicy> {
  const stored = await readSetting<Partial<AlertPolicy>>(sql, ALERT_POLICY);
  return { ...DEFAULT_ALERT_POLICY, updatedAt: null, ...stored };
}

export async function writeAlertPolicy(sql: Knex, policy: AlertPolicy, now: Date): Promise<void> {
  await writeSetting(sql, ALERT_POLICY, policy, now);
}
