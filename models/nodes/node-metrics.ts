// What nodes said of their machines: the first heartbeat of each minute that carried metrics, for a day.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { SWEEP_BATCH } from '../db/sweeps.ts';
import type { BeatRow } from './node-state.ts';

export const HISTORY_HOURS = 24;
/** Seconds that one point of the history stands for. */
export const POINT_SECONDS = 300;

/** Averages of the minutes of one point. */
export interface MetricsPoint {
  cpuPercent: number;
  load1: number;
  memoryUsedBytes: number;
  memoryTotalBytes: number;
  egressBps: number;
  activeConnections: number;
}

/** Keeps what heartbeats say, once a minute and node; nodes that are gone are skipped. */
export async function keepMetrics(pool: Pick<Pool, 'query'>, beats: readonly BeatRow[]): Promise<void> {
  const rows = beats.flatMap(({ nodeId, lastSeenAt, metrics }) =>
    metrics ? [{ ...metrics, nodeId, lastSeenAt }] : [],
  );
  if (rows.length === 0) return;
  await pool.query({
    name: 'keep-metrics',
    text: `insert into node_metrics_minute
      select n.id, date_trunc('minute', v."lastSeenAt"), v."cpuPercent", v.load1, v."memoryUsedBytes", v."memoryTotalBytes",
             v."egressBps", v."activeConnections"
        from jsonb_to_recordset($1::jsonb) as v("nodeId" text, "lastSeenAt" timestamptz, "cpuPercent" float8, load1 float8,
          "memoryUsedBytes" bigint, "memoryTotalBytes" bigint, "egressBps" bigint, "activeConnections" bigint)
        join node n on n.id = v."nodeId"
      on conflict do nothing`,
    values: [JSON.stringify(rows)],
  });
}

/** The points of a node's history with something in them, by the milliseconds at which they begin, from `from` on. */
export async function metricsHistory(sql: Knex, nodeId: string, from: Date): Promise<Map<number, MetricsPoint>> {
  const { rows } = await sql.raw<{ rows: (MetricsPoint & { at: number })[] }>(
    `select (floor(extract(epoch from minute) / :step) * :step * 1000)::float8 as at, avg(cpu_percent)::float8 as "cpuPercent",
            avg(load1)::float8 as load1, round(avg(memory_used_bytes))::float8 as "memoryUsedBytes",
            round(avg(memory_total_bytes))::float8 as "memoryTotalBytes", round(avg(egress_bps))::float8 as "egressBps",
            round(avg(active_connections))::float8 as "activeConnections"
       from node_metrics_minute where node_id = :nodeId and minute >= :from group by 1`,
    { nodeId, from, step: POINT_SECONDS } as never,
  );
  return new Map(rows.map(({ at, ...point }) => [at, point]));
}

/** Deletes a batch of what is older than the history; answers how many rows. */
export async function purgeMetrics(sql: Knex): Promise<number> {
  const answer = await sql.raw<{ rowCount: number }>(
    `delete from node_metrics_minute where ctid = any(array(
       select ctid from node_metrics_minute where minute < now() - make_interval(hours => ?) limit ?))`,
    [HISTORY_HOURS + 1, SWEEP_BATCH],
  );
  return answer.rowCount;
}
