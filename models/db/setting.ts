// Settings of the console, one row a group. A missing row means the group's defaults.
import type { Knex } from 'knex';
import { type AuditTarget, SETTING_TARGET } from '../audit/audit-entry.ts';

/** The group as the target of audit entries: who changed it is found by it. */
export function settingTarget(key: string): AuditTarget {
  return { type: SETTING_TARGET, id: key, name: null };
}

export async function readSetting<T>(sql: Knex, key: string): Promise<T | undefined> {
  const row = await sql('setting').where({ key }).first('value');
  return row?.value as T | undefined;
}

export async function writeSetting(sql: Knex, key: string, value: unknown, now: Date): Promise<void> {
  await sql('setting')
    .insert({ key, value: JSON.stringify(value), updated_at: now })
    .onConflict('key')
    .merge(['value', 'updated_at']);
}

/** Makes writers of one group wait for each other; the row need not exist. */
export async function lockSetting(sql: Knex, key: string): Promise<void> {
  await sql.raw('select pg_advisory_xact_lock(1398162181, hashtext(?))', [key]);
}

/** Keeps writers of the group away until the end of the transaction; holders do not wait for each other. */
export async function shareSetting(sql: Knex, key: string): Promise<void> {
  await sql.raw('select pg_advisory_xact_lock_shared(1398162181, hashtext(?))', [key]);
}
