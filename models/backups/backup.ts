// Backups that the console makes, one at a time.
//
// | State   | Trigger                                     | Next                        |
// | -       | a user asks for one                         | waiting                     |
// | -       | the schedule is due                         | running                     |
// | waiting | a process with the folder takes it          | running                     |
// | waiting | no process took it for 10 minutes           | failed (no_process)         |
// | running | the file was written, read back and renamed | done                        |
// | running | an error                                    | failed                      |
// | running | its process did not renew the lease         | failed (interrupted)        |
import type { Knex } from 'knex';
import type { BackupFailure, BackupState } from '../../contract/resources/backups.ts';
import { hint, LIVE, leaveHints } from '../db/live-hint.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';

const LEASE = `interval '30 seconds'`;
const LONGEST_WAIT = `interval '10 minutes'`;
const HISTORY = `interval '90 days'`;
const HINT = hint('settings', 'backup');
const told = (changed: string) => `insert into outbox (topic, key) select '${LIVE}', '${HINT}' from ${changed}`;

export interface BackupRow {
  id: string;
  cause: 'schedule' | 'request';
  state: BackupState;
  phase: 'write' | 'verify' | null;
  progress: number;
  problem: BackupFailure | null;
  folder: string;
  file_name: string | null;
  deleted_at: Date | null;
  /** Numbers as PostgreSQL writes them. */
  bytes: string | null;
  rows: string | null;
  created_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
}

/** Newest first. */
export async function backupPage(sql: Knex, limit: number, offset: number): Promise<BackupRow[]> {
  return sql<BackupRow>('backup')
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(limit)
    .offset(offset);
}

export async function backupCount(sql: Knex): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>('select count(*)::int as total from backup');
  return rows[0]!.total;
}

export interface BackupFacts {
  /** When the last good one began. */
  lastGoodAt: Date | null;
  /** When the newest one ended, if that one failed. */
  failedAt: Date | null;
}

export async function backupFacts(sql: Knex): Promise<BackupFacts> {
  const { rows } = await sql.raw<{ rows: BackupFacts[] }>(
    `select (select started_at from backup where state = 'done' order by started_at desc limit 1) as "lastGoodAt",
            (select case when state = 'failed' then ended_at end from backup order by created_at desc, id desc limit 1) as "failedAt"`,
  );
  return rows[0]!;
}

/** Null: one waits or runs already. */
export async function addWaitingBackup(sql: Knex, folder: string): Promise<BackupRow | null> {
  const { rows } = await sql.raw<{ rows: BackupRow[] }>(
    `insert into backup (cause, state, folder) values ('request', 'waiting', ?) on conflict do nothing returning *`,
    [folder],
  );
  return rows[0] ?? null;
}

export interface TakenBackup {
  id: string;
  folder: string;
}

/** Takes the one that waits; null: none does. */
export async function takeWaitingBackup(sql: Knex): Promise<TakenBackup | null> {
  const { rows } = await sql.raw<{ rows: TakenBackup[] }>(
    `with taken as (
       update backup set state = 'running', started_at = now(), leased_until = now() + ${LEASE}
        where state = 'waiting' returning id, folder),
     told as (${told('taken')})
     select * from taken`,
  );
  return rows[0] ?? null;
}

/** Begins one of the schedule; null: one waits or runs already. */
export async function beginBackup(sql: Knex, folder: string): Promise<TakenBackup | null> {
  const { rows } = await sql.raw<{ rows: TakenBackup[] }>(
    `with begun as (
       insert into backup (cause, state, folder, started_at, leased_until)
       values ('schedule', 'running', ?, now(), now() + ${LEASE}) on conflict do nothing returning id, folder),
     told as (${told('begun')})
     select * from begun`,
    [folder],
  );
  return rows[0] ?? null;
}

/** Renews the lease. False: it has ended as interrupted. */
export async function renewBackup(
  sql: Knex,
  id: string,
  { phase, progress }: { phase: 'write' | 'verify'; progress: number },
): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `with held as (
       update backup set phase = ?, progress = ?, leased_until = now() + ${LEASE}
        where id = ? and state = 'running' returning id)
     ${told('held')}`,
    [phase, progress, id],
  );
  return rowCount === 1;
}

/** The file has its name: also if another process held this one for dead meanwhile. */
export async function finishBackup(
  sql: Knex,
  id: string,
  file: { name: string; bytes: number; rows: number },
): Promise<void> {
  await sql.raw(
    `update backup set state = 'done', phase = null, progress = 100, problem = null, file_name = ?, bytes = ?, rows = ?,
       leased_until = null, ended_at = now() where id = ?`,
    [file.name, file.bytes, file.rows, id],
  );
  await leaveHints(sql, [HINT]);
}

export async function failBackup(sql: Knex, id: string, problem: BackupFailure): Promise<void> {
  await sql.raw(
    `update backup set state = 'failed', phase = null, problem = ?, leased_until = null, ended_at = now()
      where id = ? and ended_at is null`,
    [problem, id],
  );
  await leaveHints(sql, [HINT]);
}

/** Fails those whose process is gone, and those that no process took. */
export async function failAbandonedBackups(sql: Knex): Promise<void> {
  await sql.raw(
    `with failed as (
       update backup set state = 'failed', phase = null, leased_until = null, ended_at = now(),
              problem = case state when 'waiting' then 'no_process' else 'interrupted' end
        where (state = 'running' and leased_until < now()) or (state = 'waiting' and created_at < now() - ${LONGEST_WAIT})
       returning id)
     ${told('failed')}`,
  );
}

/** Files of the folder that are no longer to be kept, never the newest. */
export async function replacedBackups(
  sql: Knex,
  folder: string,
  keep: { by: 'copies' | 'days'; count: number },
): Promise<{ id: string; file_name: string }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; file_name: string }[] }>(
    `select id, file_name from (
       select id, file_name, started_at, row_number() over (order by started_at desc, id desc) as place
         from backup where state = 'done' and folder = :folder and deleted_at is null) kept
      where place > 1 and case when :by = 'copies' then place > :count else started_at < now() - :count * interval '1 day' end
      order by place desc limit 1000`,
    { folder, by: keep.by, count: keep.count },
  );
  return rows;
}

export async function noteBackupDeleted(sql: Knex, id: string): Promise<void> {
  await sql('backup').where({ id }).update({ deleted_at: sql.fn.now() });
}

/** Entries older than 90 days without a file; the newest good one stays. */
export async function purgeBackups(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from backup where id = any(array(
       select id from backup where ended_at < now() - ${HISTORY} and (state = 'failed' or deleted_at is not null)
        limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}
