// The limit of active manual bans, kept without counting them at each create. Every create takes a number from the
// feed's sequence, so "counted once + numbers taken since" (`most`, from ban_check) is never below the truth, but for creates under way, which
// the margin allows for. Only near the limit are bans counted, by one creator at a time.
import type { Knex } from 'knex';
import { OF_NO_GONE_SITE } from './gone-site.ts';

/** More creates than can be under way at once: one a connection, of which a database has fewer, and one group. */
const MARGIN = 512;
const LIMIT_LOCK = 'select pg_advisory_xact_lock(1398162181, 2)';

/**
 * How many of the `wanted` manual bans stay within the limit; others that ask near it wait until this transaction
 * ends.
 */
export async function roomForBans(
  sql: Knex,
  { most, limit, wanted }: { most: number | null; limit: number; wanted: number },
  now: Date,
): Promise<number> {
  if (wanted === 0 || (most !== null && most + MARGIN < limit)) return wanted;
  await sql.raw(LIMIT_LOCK);
  return Math.max(0, Math.min(wanted, limit - (await countManualBans(sql, now))));
}

/** Counts active manual bans and remembers the count. */
async function countManualBans(sql: Knex, now: Date): Promise<number> {
  const { rows } = await sql.raw<{ rows: { counted: string }[] }>(
    `update ban_count set at_seq = (select last_value from ban_seq), counted = (
       select count(*) from ban b
        where source = 'manual' and lifted_at is null and expires_at > ? and ${OF_NO_GONE_SITE})
     returning counted`,
    [now],
  );
  return Number(rows[0]!.counted);
}
