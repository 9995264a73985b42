// Requests of a few sites by hour: for a list of sites, which has no room for more.
import type { Knex } from 'knex';

export interface SparkRow {
  id: string;
  /** Milliseconds of the start of the hour. */
  start: number;
  requests: number;
  failed: number;
}

/** Beyond it something is broken, and a list must not read a day of minutes. */
const LONGEST_TAIL = `interval '1 hour'`;
const HOUR = (column: string) => `date_part('epoch', date_trunc('hour', ${column}, 'UTC')) * 1000`;

/** Hours with requests since a time in milliseconds, with minutes that are in no sum yet. In no order, and an hour in parts. */
export async function sparkRows(sql: Knex, siteIds: readonly string[], from: number): Promise<SparkRow[]> {
  const { rows } = await sql.raw<{ rows: SparkRow[] }>(
    `select id, ${HOUR('starts_at')} as start, requests::float8, s5::float8 as failed from traffic_hour
      where kind = 'site' and id = any(:siteIds) and starts_at >= :from
     union all
     select site_id, ${HOUR('minute')}, requests::float8,
         (select coalesce(sum(value::numeric), 0) from jsonb_each_text(statuses) where key like '5%')::float8
       from usage_minute where site_id = any(:siteIds)
        and minute >= greatest(:from, (select greatest(summed_until, now() - ${LONGEST_TAIL}) from traffic_state))`,
    { siteIds, from: new Date(from) } as never,
  );
  return rows;
}
