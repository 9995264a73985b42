// Requests of clusters by minute, which are shown of a day. Those of sites are in the view site_minute.
import type { Knex } from 'knex';
import type { Pool } from 'pg';

export const KEPT_DAYS = 7;
/** Deletes what is older than {@link KEPT_DAYS}, a bounded number of rows at a time; answers how many. */
export async function deleteOldSiteMinutes(pool: Pick<Pool, 'query'>, limit = 10_000): Promise<number> {
  let deleted = 0;
  for (const table of ['site_request_minute', 'cluster_request_minute']) {
    const { rowCount } = await pool.query(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where minute < now() - interval '${KEPT_DAYS} days' limit $1))`,
      [limit],
    );
    deleted += rowCount ?? 0;
  }
  return deleted;
}

export interface TrafficMinute {
  /** Milliseconds of the start of the minute. */
  at: number;
  requests: number;
}

/** The latest minute that every node has had the time to report: each does once a minute. */
export const LATEST_MINUTE = `date_trunc('minute', now() - interval '2 minutes')`;

/**
 * Requests of one cluster, or of all with null, in the last hours, up to the latest minute that counts, which is there whenever there are any;
 * other minutes without requests are left out.
 */
export async function trafficMinutes(sql: Knex, hours: number, clusterId: string | null): Promise<TrafficMinute[]> {
  const { rows } = await sql.raw<{ rows: TrafficMinute[] }>(
    `with counted as (
       select minute, sum(requests)::float8 as requests from cluster_request_minute
        where minute > ${LATEST_MINUTE} - make_interval(hours => ?) and minute <= ${LATEST_MINUTE}
          and (?::text is null or cluster_id = ?) group by minute)
     select (extract(epoch from minute) * 1000)::float8 as at, sum(requests) as requests
       from (select * from counted
         union all select ${LATEST_MINUTE}, 0 where exists (select from counted)) m
      group by minute order by minute`,
    [hours, clusterId, clusterId] as never,
  );
  return rows;
}

/** The latest minute that counts, of one cluster or of all; null without a request within the days that are kept. */
export async function latestTraffic(sql: Knex, clusterId: string | null): Promise<TrafficMinute | null> {
  const mine = '(:clusterId::text is null or cluster_id = :clusterId)';
  const { rows } = await sql.raw<{ rows: TrafficMinute[] }>(
    `select (extract(epoch from ${LATEST_MINUTE}) * 1000)::float8 as at, coalesce((
         select sum(requests) from cluster_request_minute where minute = ${LATEST_MINUTE} and ${mine}), 0)::float8 as requests
      where exists (select from cluster_request_minute where ${mine})`,
    { clusterId } as never,
  );
  return rows[0] ?? null;
}
