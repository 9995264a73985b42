// The limit of active manual bans, kept without counting them at each create. Every create takes a number from the
// feed's sequence, so "counted once + numbers taken since" (`most`, from ban_check) is never below the truth, but for creates under way, which
// the margin allows for. Only near the limit are bans counted, by one creator at a time.
import type { Knex } from 'knex';

/** More creates than can be under way at once: a database has fewer connections. */
const MARGIN = 256;
const LIMIT_LOCK = 'select pg_advisory_xact_lock(1398162181, 2)';

/** Whether one more manual ban stays within the limit; others that ask near it wait until this transaction ends. */
export async function hasRoomForBan(
  sql: Knex,
  { most, limit }: { most: number | null; limit: number },
  now: Date,
): Promise<boolean> {
  if (most !== null && most + MARGIN < limit) return true;
  await sql.raw(LIMIT_LOCK);
  return (await countManualBans(sql, now)) < limit;
}

/** Counts active manual bans and remembers the count. */
async function countManualBans(sql: Knex, now: Date): Promise<number> {
  const { rows } = await sql.raw<{ rows: { counted: string }[] }>(
    `update ban_count set at_seq = (select last_value from ban_seq), counted = (
       select count(*) from ban where source = 'manual' and lifted_at is null and expires_at > ?)
     returning counted`,
    [now],
  );
  return Number(rows[0]!.counted);
}
