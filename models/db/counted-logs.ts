// Logs of which every day is counted once it is over, so that the length of a list costs its newest day and not the whole
// log. Triggers keep a counted day true when something is written into it late, or deleted from it; so a list adds up
// what is stored and counts the rest, and both together are exact at any moment.
import type { Knex } from 'knex';

const DAY_MS = 86_400_000;
/** Writers of a log wait while one of its days is counted: rather later than long. */
const LOCK_TIMEOUT = '2s';

interface CountedLog {
  table: string;
  /** Stores the numbers of a day's rows, which are those from `:day` to `:next`. */
  count: string;
}

const LOGS = {
  audit_entry: {
    table: 'audit_entry',
    count: `insert into audit_day (day, action, target_type, actor_type, entries)
      select (:day::timestamptz at time zone 'UTC')::date, action, coalesce(target_type, ''), actor_type, count(*)
        from audit_entry where occurred_at >= :day and occurred_at < :next group by 2, 3, 4`,
  },
  security_event: {
    table: 'security_event',
    count: `insert into security_event_day (day, site_id, kind, events)
      select (:day::timestamptz at time zone 'UTC')::date, site_id, kind, count(*)
        from security_event where occurred_at >= :day and occurred_at < :next group by 2, 3`,
  },
} satisfies Record<string, CountedLog>;

export type Log = keyof typeof LOGS;
export const COUNTED_LOGS = Object.keys(LOGS) as Log[];

/** Midnight, UTC, at or before the time. */
export function dayOf(time: Date): Date {
  return new Date(Math.floor(time.getTime() / DAY_MS) * DAY_MS);
}

/** Up to when the log is counted by day; null while nothing is. It only moves on: an older answer stays right. */
export async function countedUntil(sql: Knex, log: Log): Promise<Date | null> {
  return (await sql('counted_log').where({ log }).first('until'))?.until ?? null;
}

/** Counts the oldest day that is over, not counted yet and not empty; answers whether there was one. */
export async function countDay(sql: Knex, log: Log, now: Date): Promise<boolean> {
  const { table, count } = LOGS[log];
  return sql.transaction(async (trx) => {
    await trx.raw(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    // Whoever is writing is waited for, and whoever comes later finds the day counted.
    await trx.raw('lock table ?? in share mode', [table]);
    const today = dayOf(now);
    const until = await countedUntil(trx, log);
    if (until !== null && until >= today) return false;
    const query = trx(table).orderBy('occurred_at');
    if (until !== null) query.where('occurred_at', '>=', until);
    const oldest = await query.first<{ occurred_at: Date } | undefined>('occurred_at');
    const day = oldest ? dayOf(oldest.occurred_at) : today;
    const over = day < today;
    const next = over ? new Date(day.getTime() + DAY_MS) : today;
    if (over) await trx.raw(count, { day, next } as never);
    await trx('counted_log').insert({ log, until: next }).onConflict('log').merge();
    return over;
  });
}
