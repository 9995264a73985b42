// Days of request logs: dropped when they are old, or when all take too much space.
import type { Knex } from 'knex';
import { DAY_MS, dayOf, dropPartitions, makePartitions, partitionsOf } from '../db/partitions.ts';
import { readLogSettings } from './log-setting.ts';
import { hashOf } from './postgres-log-writer.ts';

const TABLE = { table: 'request_log', days: 1, maker: 'log_day' } as const;
const AT_ONCE = 5_000;
const MOST_TURNS = 2_000;
const HOUR_MS = 3_600_000;
const GIB = 2 ** 30;

export interface SweptLogs {
  /** Names of days that were dropped. */
  days: string[];
  /** Rows of the oldest hours of today that were deleted. */
  rows: number;
}

/** Makes today and tomorrow, and deletes what is too old or too much. */
export async function sweepLogs(sql: Knex, now: Date): Promise<SweptLogs> {
  const { retentionDays, maxGigabytes } = await readLogSettings(sql);
  const today = dayOf(now.getTime());
  await makePartitions(sql, TABLE, today, today + DAY_MS);
  const keepFrom = today - (retentionDays - 1) * DAY_MS;
  const days = await dropPartitions(sql, TABLE, keepFrom);
  const { days: more, rows } = await holdBound(sql, today, maxGigabytes * GIB);
  await sql('request_log_missing').where('hour', '<', new Date(keepFrom)).delete();
  await sql('request_log_loss')
    .where('updated_at', '<', new Date(keepFrom - DAY_MS))
    .delete();
  return { days: [...days, ...more], rows };
}

/** The oldest days go first. Today takes new rows, so the space of its oldest hours is used again once they are deleted. */
export async function holdBound(sql: Knex, today: number, mostBytes: number): Promise<SweptLogs> {
  const sizes = await sizesOf(sql);
  let bytes = sizes.reduce((sum, each) => sum + each.bytes, 0);
  const days: string[] = [];
  for (const { start, bytes: size } of sizes) {
    if (bytes <= mostBytes || start >= today) break;
    days.push(...(await dropPartitions(sql, TABLE, start + DAY_MS)));
    bytes -= size;
  }
  let rows = 0;
  for (let hour = today; bytes > mostBytes && hour < today + DAY_MS; hour += HOUR_MS) {
    const gone = await deleteHour(sql, hour);
    rows += gone.rows;
    bytes -= gone.bytes;
  }
  return { days, rows };
}

/** Live bytes of each day, the oldest first: what deleted rows took is there for new ones. */
async function sizesOf(sql: Knex): Promise<{ start: number; bytes: number }[]> {
  const sizes = [];
  for (const { name, start } of await partitionsOf(sql, TABLE)) {
    const { rows } = await sql.raw<{ rows: { bytes: number }[] }>(
      `select coalesce(sum(pg_total_relation_size(c.relid)::float8 * case
           when coalesce(s.n_live_tup, 0) + coalesce(s.n_dead_tup, 0) = 0 then 1
           else s.n_live_tup::float8 / (s.n_live_tup + s.n_dead_tup) end), 0) as bytes
         from pg_partition_tree(?::regclass) c left join pg_stat_user_tables s on s.relid = c.relid where c.isleaf`,
      [name],
    );
    sizes.push({ start, bytes: rows[0]?.bytes ?? 0 });
  }
  return sizes;
}

/** Estimates the bytes by what a row takes on average. */
async function deleteHour(sql: Knex, hour: number): Promise<{ rows: number; bytes: number }> {
  const span = [new Date(hour), new Date(hour + HOUR_MS)];
  let rows = 0;
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const { rowCount } = await sql.raw<{ rowCount: number }>(
      `delete from request_log where at >= ? and at < ? and (tableoid, ctid) in (
         select tableoid, ctid from request_log where at >= ? and at < ? limit ${AT_ONCE})`,
      [...span, ...span],
    );
    rows += rowCount;
    if (rowCount < AT_ONCE) break;
  }
  return { rows, bytes: rows * ROW_BYTES };
}

/** What a row takes with its indexes, as an estimate: the next sweep measures the space again. */
const ROW_BYTES = 600;

/** Deletes rows of sites that are gone; queries hide them from the first moment. Returns how many rows that were. */
export async function sweepGoneSites(sql: Knex): Promise<number> {
  const { rows: gone } = await sql.raw<{ rows: { id: string }[] }>(
    `select distinct d.site_id as id from deleted_site d
      where exists (select from request_log r where r.site_hash = crc32(d.site_id::bytea)::bit(32)::int and r.site_id = d.site_id) limit 20`,
  );
  let total = 0;
  for (const { id } of gone) {
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const { rowCount } = await sql.raw<{ rowCount: number }>(
        `delete from request_log where site_hash = ? and site_id = ? and (at, id) in (
           select at, id from request_log where site_hash = ? and site_id = ? limit ${AT_ONCE})`,
        [hashOf(id), id, hashOf(id), id],
      );
      total += rowCount;
      if (rowCount < AT_ONCE) break;
    }
  }
  return total;
}
