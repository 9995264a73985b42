// Requests per site and minute, and their sums per cluster.
import type { Knex } from 'knex';
import type { Pool } from 'pg';

export const KEPT_DAYS = 7;
/** Minutes further ahead than this are a wrong clock. */
const AHEAD_MINUTES = 5;

export interface SiteMinuteRow {
  siteId: string;
  /** Unix seconds of the start of the minute. */
  minute: number;
  requests: number;
}

/**
 * Adds a node's batch unless it was added before; sites that are not of the node's cluster, and minutes too old or
 * ahead, are left out. Answers the highest batch of the node that is stored. One statement, so all or nothing.
 */
export async function addSiteMinutes(
  pool: Pick<Pool, 'query'>,
  node: { nodeId: string; clusterId: string },
  sequence: bigint,
  rows: readonly SiteMinuteRow[],
): Promise<bigint> {
  const { rows: answer } = await pool.query<{ stored: string; sequence: string | null }>({
    name: 'add-site-minutes',
    text: `with batch as (
        insert into node_statistics as n (node_id, sequence) values ($1, $3)
        on conflict (node_id) do update set sequence = excluded.sequence where n.sequence < excluded.sequence
        returning sequence
      ), counted as (
        select s.id, to_timestamp(v.minute / 60 * 60) as minute, sum(v.requests) as requests
          from batch, jsonb_to_recordset($4::jsonb) as v("siteId" text, minute bigint, requests bigint)
          join site s on s.id = v."siteId" and s.cluster_id = $2
         where to_timestamp(v.minute) between now() - interval '${KEPT_DAYS} days' and now() + interval '${AHEAD_MINUTES} minutes'
         group by 1, 2
      ), added as (
        insert into site_request_minute as m (site_id, minute, requests)
        select id, minute, requests from counted order by 1, 2
        on conflict (site_id, minute) do update set requests = m.requests + excluded.requests
        returning site_id
      ), summed as (
        -- After the sites, so that batches which meet take the rows in one order.
        insert into cluster_request_minute as m (cluster_id, minute, requests)
        select $2, minute, sum(requests) from counted where (select count(*) from added) >= 0 group by 2 order by 2
        on conflict (cluster_id, minute) do update set requests = m.requests + excluded.requests
      )
      select (select sequence from batch)::text as stored,
        (select sequence from node_statistics where node_id = $1)::text as sequence`,
    values: [node.nodeId, node.clusterId, sequence.toString(), JSON.stringify(rows)],
  });
  const { stored, sequence: before } = answer[0]!;
  return BigInt(stored ?? before ?? 0);
}

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
