// Long jobs: work that takes minutes and ends in a file.
//
// | State            | Trigger                              | Next                                     |
// | waiting, running | a process leases it                  | running, with a new lease                |
// | running          | a piece is stored under the lease    | running; done after the last piece       |
// | running          | a third failure, or a file too large | failed, without its file                 |
// | waiting, running | cancel                               | cancelled, without its file              |
// | done             | 24 hours                             | done, without its file                   |
//
// The lease fences: a process that lost it stores nothing, and the next one continues at the last stored piece.
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { Actor } from '../../runtime/call.ts';
import { hint, LIVE, leaveHints } from '../db/live-hint.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';

/** Open jobs of one user, and jobs that are open or have a file. */
export const MAX_OPEN_OF_USER = 20;
export const MAX_KEPT = 200;
/** Compressed bytes of all files: no job starts beyond it. */
const MAX_ALL_BYTES = 2 * 1024 * 1024 * 1024;
/** Compressed bytes of a file, at most. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;
const LEASE = `interval '1 minute'`;
const FILE_KEPT = `interval '24 hours'`;
const MAX_FAILURES = 3;

/** Leaves a hint of each job of the expression. */
const told = (jobs: string) => `insert into outbox (topic, key) select '${LIVE}', 'jobs ' || id from ${jobs}`;

export interface LongJobRow {
  id: string;
  kind: string;
  input: unknown;
  actor_id: string | null;
  actor_name: string;
  state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';
  progress: number;
  parts: number;
  problem: 'failed' | 'too_large' | null;
  file_name: string | null;
  created_at: Date;
  finished_at: Date | null;
  /** Of the file; null while there is none. */
  expires_at: Date | null;
}

const COLUMNS = `id, kind, input, actor_id, actor_name, state, progress, parts, problem, file_name, created_at, finished_at,
  case when expires_at > now() then expires_at end as expires_at`;

/** Returns the job; null where a limit is reached. */
export async function addLongJob(
  sql: Knex,
  { type, id, name }: Actor,
  kind: string,
  input: object,
): Promise<LongJobRow | null> {
  // Two at once would both see room for one.
  await sql.raw(`select pg_advisory_xact_lock(hashtext('long_job'))`);
  const { rows } = await sql.raw<{ rows: LongJobRow[] }>(
    `insert into long_job (id, kind, input, actor_type, actor_id, actor_name)
     select :jobId, :kind, :input::jsonb, :type, :id, :name
      where (select count(*) from long_job where finished_at is null or expires_at > now()) < ${MAX_KEPT}
        and (select coalesce(sum(bytes), 0) from long_job where finished_at is null or expires_at > now()) < ${MAX_ALL_BYTES}
        and (select count(*) from long_job
              where finished_at is null and actor_type = :type and actor_id is not distinct from :id) < ${MAX_OPEN_OF_USER}
     returning ${COLUMNS}`,
    { jobId: randomUUID(), kind, input: JSON.stringify(input), type, id: id as string, name },
  );
  const row = rows[0];
  if (row) await leaveHints(sql, [hint('jobs', row.id)]);
  return row ?? null;
}

/** Jobs, newest first. */
export async function longJobPage(sql: Knex, limit: number, offset: number): Promise<LongJobRow[]> {
  const { rows } = await sql.raw<{ rows: LongJobRow[] }>(
    `select ${COLUMNS} from long_job order by created_at desc, id desc limit ? offset ?`,
    [limit, offset],
  );
  return rows;
}

export async function longJobCount(sql: Knex): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>('select count(*)::int as total from long_job');
  return rows[0]!.total;
}

export async function longJobById(sql: Knex, id: string): Promise<LongJobRow | undefined> {
  const { rows } = await sql.raw<{ rows: LongJobRow[] }>(`select ${COLUMNS} from long_job where id = ?`, [id]);
  return rows[0];
}

/** Cancels an open job and deletes its parts; undefined for one that is not open. */
export async function cancelLongJob(sql: Knex, id: string): Promise<LongJobRow | undefined> {
  return end(sql, id, 'cancelled', null);
}

async function end(
  sql: Knex,
  id: string,
  state: 'failed' | 'cancelled',
  problem: string | null,
  lease?: string,
): Promise<LongJobRow | undefined> {
  const { rows } = await sql.raw<{ rows: LongJobRow[] }>(
    `with ended as (
       update long_job set state = :state, problem = :problem, finished_at = now(), lease = null
        where id = :id and finished_at is null and (:lease::text is null or lease = :lease) returning *),
     gone as (delete from long_job_part where job_id in (select id from ended)),
     told as (${told('ended')})
     select ${COLUMNS} from ended`,
    { id, state, problem: problem as string, lease: (lease ?? null) as string },
  );
  return rows[0];
}

export interface LeasedJob {
  id: string;
  kind: string;
  input: unknown;
  lease: string;
  position: string | null;
  parts: number;
  bytes: string;
}

/** Leases the open job of one of these kinds that nobody works on and that waited longest; null: there is none. */
export async function leaseLongJob(sql: Knex, kinds: readonly string[]): Promise<LeasedJob | null> {
  const { rows } = await sql.raw<{ rows: LeasedJob[] }>(
    `with leased as (
       update long_job set state = 'running', lease = ?, leased_until = now() + ${LEASE}, worked_at = clock_timestamp()
        where id = (
          select id from long_job
           where finished_at is null and kind = any(?::text[]) and (leased_until is null or leased_until < now())
           order by coalesce(worked_at, created_at) limit 1 for update skip locked)
       returning id, kind, input, lease, position, parts, bytes),
     told as (${told('leased')})
     select * from leased`,
    [randomUUID(), kinds as never],
  );
  return rows[0] ?? null;
}

export interface NewPart {
  body: Buffer;
  /** Null: it is the last one. */
  next: string | null;
  progress: number;
  fileName: string | undefined;
}

/** Stores the next part and moves the job on. False where the lease is another's, or the job was cancelled. */
export async function storeLongJobPart(
  sql: Knex,
  { id, lease }: Pick<LeasedJob, 'id' | 'lease'>,
  part: NewPart,
): Promise<boolean> {
  const { body, next, progress, fileName } = part;
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `with held as (
       update long_job set position = :next, progress = :progress, parts = parts + 1, bytes = bytes + length(:body::bytea),
              file_name = coalesce(file_name, :fileName), leased_until = now() + ${LEASE}, failures = 0,
              state = case when :last then 'done' else state end,
              finished_at = case when :last then now() end, expires_at = case when :last then now() + ${FILE_KEPT} end
        where id = :id and lease = :lease and finished_at is null
       returning id, parts),
     told as (${told('held')})
     insert into long_job_part (job_id, number, body) select id, parts - 1, :body::bytea from held`,
    {
      id,
      lease,
      body,
      next: next as string,
      last: next === null,
      progress: next === null ? 100 : progress,
      fileName: (fileName ?? null) as string,
    },
  );
  return rowCount === 1;
}

/** Lets others work on the job. */
export async function releaseLongJob(sql: Knex, { id, lease }: Pick<LeasedJob, 'id' | 'lease'>): Promise<void> {
  await sql.raw('update long_job set lease = null, leased_until = null where id = ? and lease = ?', [id, lease]);
}

/** Notes a failure: the job is tried again after 10 s, and fails with the third in a row. */
export async function noteLongJobFailure(sql: Knex, { id, lease }: Pick<LeasedJob, 'id' | 'lease'>): Promise<void> {
  const { rows } = await sql.raw<{ rows: { failures: number }[] }>(
    `update long_job set failures = failures + 1, leased_until = now() + interval '10 seconds'
      where id = ? and lease = ? and finished_at is null returning failures`,
    [id, lease],
  );
  if ((rows[0]?.failures ?? 0) >= MAX_FAILURES) await end(sql, id, 'failed', 'failed', lease);
}

/** Ends a job whose file would be larger than {@link MAX_FILE_BYTES}. */
export async function endTooLarge(sql: Knex, { id, lease }: Pick<LeasedJob, 'id' | 'lease'>): Promise<void> {
  await end(sql, id, 'failed', 'too_large', lease);
}

/** A part of the file of a job that is done; undefined where the file has expired. */
export async function longJobPart(sql: Knex, id: string, number: number): Promise<Buffer | undefined> {
  const { rows } = await sql.raw<{ rows: { body: Buffer }[] }>(
    `select p.body from long_job_part p join long_job j on j.id = p.job_id
      where p.job_id = ? and p.number = ? and j.state = 'done' and j.expires_at > now()`,
    [id, number],
  );
  return rows[0]?.body;
}

/** Parts of files that expired, and jobs that ended 7 days ago. */
export async function purgeLongJobs(sql: Knex): Promise<number> {
  await sql.raw(`delete from long_job where finished_at < now() - interval '7 days'`);
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from long_job_part where ctid = any(array(
       select p.ctid from long_job j join long_job_part p on p.job_id = j.id
        where j.expires_at < now() or j.state in ('failed', 'cancelled') limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}
