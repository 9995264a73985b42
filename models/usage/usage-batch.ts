// What nodes counted, stored together with how far their batches are stored.
import type { PoolClient } from 'pg';

export interface SummedMinute {
  clusterId: string;
  siteId: string;
  /** Milliseconds of the start of the minute. */
  minute: number;
  requests: number;
  /** Decimal. */
  bytesSent: string;
  bytesReceived: string;
  /** JSON objects of counts; null: none. */
  statuses: string | null;
  counts: string | null;
  /** An array as PostgreSQL writes one. */
  latency: string | null;
}

export interface CursorRow {
  nodeId: string;
  sequence: bigint;
  /** Milliseconds. */
  watermark: number | null;
  storedAt: number | null;
}

export interface GapRow {
  nodeId: string;
  from: number;
  to: number;
  reason: 'told' | 'skipped';
}

/** The cursors of these nodes, made where there is none, and locked in one order until the end of the transaction. */
export async function lockCursors(client: PoolClient, nodeIds: readonly string[]): Promise<Map<string, CursorRow>> {
  const sorted = [...new Set(nodeIds)].sort();
  const { rows } = await client.query<{ nodeId: string; sequence: string; watermark: number; storedAt: number }>({
    name: 'usage-cursors-lock',
    text: `select node_id as "nodeId", sequence, extract(epoch from watermark)::float8 * 1000 as watermark,
        extract(epoch from stored_at)::float8 * 1000 as "storedAt"
      from usage_cursor where node_id = any($1) order by node_id for update`,
    values: [sorted],
  });
  const found = new Map(rows.map((row) => [row.nodeId, { ...row, sequence: BigInt(row.sequence) }]));
  const missing = sorted.filter((nodeId) => !found.has(nodeId));
  if (missing.length === 0) return found;
  await client.query('insert into usage_cursor (node_id) select unnest($1::text[]) order by 1 on conflict do nothing', [
    missing,
  ]);
  // Whoever made one meanwhile holds it: all are taken once more, in the order of all.
  return lockCursors(client, sorted);
}

/** Stores how far the nodes are now, and what is missing for good. */
export async function moveCursors(
  client: PoolClient,
  cursors: readonly CursorRow[],
  gaps: readonly GapRow[],
  now: Date,
): Promise<void> {
  await client.query({
    name: 'usage-cursors-move',
    text: `update usage_cursor c set sequence = v.sequence, watermark = to_timestamp(v.watermark / 1000), stored_at = $4
      from unnest($1::text[], $2::bigint[], $3::float8[]) as v(node_id, sequence, watermark) where c.node_id = v.node_id`,
    values: [
      cursors.map(({ nodeId }) => nodeId),
      cursors.map(({ sequence }) => sequence.toString()),
      cursors.map(({ watermark }) => watermark),
      now,
    ],
  });
  if (gaps.length === 0) return;
  await client.query(
    `insert into usage_gap (node_id, starts_at, ends_at, reason)
      select node_id, to_timestamp(starts / 1000), to_timestamp(ends / 1000), reason
        from unnest($1::text[], $2::float8[], $3::float8[], $4::text[]) as v(node_id, starts, ends, reason)`,
    [
      gaps.map(({ nodeId }) => nodeId),
      gaps.map(({ from }) => from),
      gaps.map(({ to }) => to),
      gaps.map(({ reason }) => reason),
    ],
  );
}

/**
 * Appends sums and marks their minutes for the roll-ups. Those of sites that are not of the cluster, and were not before
 * they were deleted, are left out; answers how many are in. '' is traffic of no site.
 */
export async function appendMinutes(client: PoolClient, sums: readonly SummedMinute[]): Promise<number> {
  if (sums.length === 0) return 0;
  const { rows } = await client.query<{ stored: number }>({
    name: 'usage-append',
    text: `with told as (
        select cluster_id, site_id, to_timestamp(minute / 1000) as minute, requests, bytes_sent, bytes_received,
            statuses, counts, latency::bigint[] as latency
          from unnest($1::text[], $2::text[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[], $7::jsonb[], $8::jsonb[],
            $9::text[]) as v(cluster_id, site_id, minute, requests, bytes_sent, bytes_received, statuses, counts, latency)
      ), own as (
        select id as site_id, cluster_id from site where id = any($2)
        union all select site_id, cluster_id from deleted_site where site_id = any($2)
        union all select '', cluster_id from (select distinct unnest($1::text[]) as cluster_id) c
      ), kept as materialized (
        select t.* from told t join own using (site_id, cluster_id)
      ), stored as (
        insert into usage_minute
            (cluster_id, site_id, minute, requests, bytes_sent, bytes_received, statuses, counts, latency)
          select cluster_id, site_id, minute, requests, bytes_sent, bytes_received, statuses, counts, latency from kept
      ), marked as (
        insert into usage_mark (cluster_id, minute, requests)
          select cluster_id, minute, sum(requests) from kept where site_id <> '' group by 1, 2
      )
      select count(*)::int as stored from kept`,
    values: [
      sums.map(({ clusterId }) => clusterId),
      sums.map(({ siteId }) => siteId),
      sums.map(({ minute }) => minute),
      sums.map(({ requests }) => requests),
      sums.map(({ bytesSent }) => bytesSent),
      sums.map(({ bytesReceived }) => bytesReceived),
      sums.map(({ statuses }) => statuses),
      sums.map(({ counts }) => counts),
      sums.map(({ latency }) => latency),
    ],
  });
  return rows[0]!.stored;
}
