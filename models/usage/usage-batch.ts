// What nodes counted, stored together with how far their batches are stored.
import type { PoolClient } from 'pg';
import { copyIn, minuteTexts } from '../db/copy-in.ts';
import type { IsOfCluster } from '../sites/sites-of-clusters.ts';

export interface SummedMinute {
  clusterId: string;
  siteId: string;
  /** Milliseconds of the start of the minute. */
  minute: number;
  requests: number;
  /** Decimal. */
  bytesSent: string;
  bytesReceived: string;
  cacheHits: number;
  cacheMisses: number;
  /** Decimal. */
  cacheHitBytes: string;
  /** Responses with status 5xx. */
  failed: number;
  /** JSON objects of counts; null: none. */
  statuses: string | null;
  counts: string | null;
  /** An array as PostgreSQL writes one. */
  latency: string | null;
  /** The same counts once more, before they were written. */
  of: Counts;
}

export interface Counts {
  statuses: ReadonlyMap<number, number>;
  counts: ReadonlyMap<string, number>;
  latency: readonly number[];
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

const COLUMNS = [
  'cluster_id',
  'site_id',
  'minute',
  'requests',
  'bytes_sent',
  'bytes_received',
  'statuses',
  'counts',
  'latency',
  'cache_hits',
  'cache_misses',
  'cache_hit_bytes',
  'failed',
];

/**
 * Appends sums and marks their minutes for the roll-ups. Those of sites that are not of the cluster, and were not before
 * they were deleted, are left out; answers those that are in. '' is traffic of no site.
 */
export async function appendMinutes(
  client: PoolClient,
  sums: readonly SummedMinute[],
  isOfCluster: IsOfCluster,
): Promise<SummedMinute[]> {
  const kept = sums.filter(isOfCluster);
  if (kept.length === 0) return kept;
  const minuteOf = minuteTexts();
  const rows = kept.map((sum) => [
    sum.clusterId,
    sum.siteId,
    minuteOf(sum.minute),
    sum.requests,
    sum.bytesSent,
    sum.bytesReceived,
    sum.statuses,
    sum.counts,
    sum.latency,
    sum.cacheHits,
    sum.cacheMisses,
    sum.cacheHitBytes,
    sum.failed,
  ]);
  await copyIn(client, 'usage_minute', COLUMNS, rows);
  await markMinutes(client, kept);
  return kept;
}

async function markMinutes(client: PoolClient, sums: readonly SummedMinute[]): Promise<void> {
  const marks = new Map<string, { clusterId: string; minute: number; requests: number }>();
  for (const { clusterId, siteId, minute, requests } of sums) {
    if (siteId === '') continue;
    const key = `${clusterId} ${minute}`;
    const mark = marks.get(key);
    if (mark) mark.requests += requests;
    else marks.set(key, { clusterId, minute, requests });
  }
  if (marks.size === 0) return;
  const rows = [...marks.values()];
  await client.query({
    name: 'usage-mark',
    text: `insert into usage_mark (cluster_id, minute, requests)
      select cluster_id, to_timestamp(minute / 1000), requests
        from unnest($1::text[], $2::float8[], $3::bigint[]) as v(cluster_id, minute, requests)`,
    values: [
      rows.map(({ clusterId }) => clusterId),
      rows.map(({ minute }) => minute),
      rows.map(({ requests }) => requests),
    ],
  });
}
