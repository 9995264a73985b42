// How watched sites fare, by 5 seconds of the console's clock: sums of what nodes of a track and revision reported.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { SWEEP_BATCH } from '../db/sweeps.ts';

export const SLOT_MS = 5_000;

/** What a process has of one slot; each writes rows of its own, whole. */
export interface VitalRow {
  clusterId: string;
  /** Milliseconds. */
  slot: number;
  /** '' = all traffic of the nodes. */
  siteId: string;
  track: 'S' | 'C';
  revision: bigint;
  nodes: number;
  requests: number;
  origin5xx: number;
  edge5xx: number;
  edgeCodes: Record<string, number>;
  restarts: number;
  failed: number;
}

/** Writes the rows of a process; one that it wrote before is replaced. */
export async function writeVitals(pool: Pick<Pool, 'query'>, writer: string, rows: readonly VitalRow[]): Promise<void> {
  if (rows.length === 0) return;
  await pool.query({
    name: 'vital-write',
    text: `insert into vital (cluster_id, slot, site_id, track, revision, writer, nodes, requests, origin_5xx, edge_5xx,
        edge_codes, restarts, failed)
      select v."clusterId", to_timestamp(v.slot / 1000), v."siteId", v.track, v.revision, $1, v.nodes, v.requests,
          v."origin5xx", v."edge5xx", v."edgeCodes", v.restarts, v.failed
        from jsonb_to_recordset($2::jsonb) as v("clusterId" text, slot float8, "siteId" text, track text, revision bigint,
          nodes int, requests bigint, "origin5xx" bigint, "edge5xx" bigint, "edgeCodes" jsonb, restarts int, failed int)
      on conflict (cluster_id, slot, site_id, track, revision, writer) do update
        set nodes = excluded.nodes, requests = excluded.requests, origin_5xx = excluded.origin_5xx,
          edge_5xx = excluded.edge_5xx, edge_codes = excluded.edge_codes, restarts = excluded.restarts,
          failed = excluded.failed`,
    values: [writer, JSON.stringify(rows, (_key, value) => (typeof value === 'bigint' ? String(value) : value))],
  });
}

/** Deletes a batch of what is older than an hour; answers how many rows. */
export async function purgeVitals(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from vital where ctid = any(array(
       select ctid from vital where slot < now() - interval '1 hour' limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}
