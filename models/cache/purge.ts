// The feed of purges. Numbers are a cluster's own and in the order of commits: a purge holds its cluster's head until it is
// committed. A purge that is older than a week is folded: everything of its sites that was stored before it is purged then.
import { create, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Capability } from '../../contract/capabilities.ts';
import {
  PurgeBatchSchema,
  PurgeSchema,
  type PurgeScope,
  PurgeTargetSchema,
} from '../../proto/gen/svc/node/v1/purges_pb.js';
import type { FeedTarget } from '../../runtime/feeds.ts';
import type { Tx } from '../../runtime/write.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';

/** Name of the feed, and topic of its rows in the outbox. */
export const PURGE_FEED = 'purges';
export const PURGE_TOPIC = 'purges';
/** What a node needs to follow it. */
export const PURGE_CAPABILITY: Capability = 'purge-tag-v1';

/** Days after which purges are folded, and how many of a cluster are kept one by one at most. */
export const PURGE_DAYS = 7;
const MAX_KEPT = 50_000;
/** Of one purge; a body of the feed has 256 KiB at most. */
const MAX_PURGE_BYTES = 192 * 1024;
const MAX_BODY_BYTES = 224 * 1024;
/** Rows read for a body. A purge has 100 sites at most, so more than those that one number may have. */
const MAX_ROWS = 1000;

export interface PurgeTarget {
  scope: PurgeScope;
  siteId: string;
  host: string;
  path: string;
  query: string;
}

/** What is purged in one cluster. */
export interface Purge {
  /** Without tags all of these sites; else what has one of the tags. */
  siteIds: readonly string[];
  tags: readonly string[];
  targets: readonly PurgeTarget[];
}

/** A place in the feed of a cluster. */
export interface PurgePlace {
  epoch: bigint;
  sequence: bigint;
}

/**
 * Purges in a cluster; returns the place that has it. Last of a transaction, because other purges of the cluster wait for its
 * end. Throws a foreign key violation where the cluster is gone.
 */
export async function addPurge(tx: Tx, clusterId: string, purge: Purge): Promise<PurgePlace> {
  const parts = partsOf(purge);
  const { rows } = await tx.sql.raw<{ rows: { epoch: string; seq: string }[] }>(
    `insert into purge_head as h (cluster_id, seq) values (?, ?)
     on conflict (cluster_id) do update set seq = h.seq + excluded.seq
     returning seq, (select epoch from console_state) as epoch`,
    [clusterId, parts.length],
  );
  const last = BigInt(rows[0]!.seq);
  const epoch = BigInt(rows[0]!.epoch);
  for (const [index, part] of parts.entries()) {
    const sequence = last - BigInt(parts.length - 1 - index);
    const message = create(PurgeSchema, {
      epoch,
      sequence,
      siteIds: [...part.siteIds],
      tags: [...part.tags],
      targets: part.targets.map((target) => create(PurgeTargetSchema, target)),
    });
    const siteIds = [...new Set([...part.siteIds, ...part.targets.map(({ siteId }) => siteId)])];
    await tx.sql.raw(
      'insert into purge (cluster_id, seq, epoch, site_ids, body, created_at) values (?, ?, ?, ?, ?, ?)',
      [
        clusterId,
        String(sequence),
        String(epoch),
        siteIds as never,
        Buffer.from(toBinary(PurgeSchema, message)),
        tx.now,
      ],
    );
  }
  await tx.sql.raw('insert into outbox (topic, key) values (?, ?)', [PURGE_TOPIC, clusterId]);
  tx.wake = true;
  return { epoch, sequence: last };
}

/** The purge in pieces that fit into a body. Sites and tags of a task always do. */
function partsOf({ siteIds, tags, targets }: Purge): Purge[] {
  const parts: { siteIds: readonly string[]; tags: readonly string[]; targets: PurgeTarget[] }[] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const target of targets) {
    const size = 128 + Buffer.byteLength(target.host + target.path + target.query);
    if (bytes + size > MAX_PURGE_BYTES) {
      parts.push({ siteIds: [], tags: [], targets: [] });
      bytes = 0;
    }
    parts.at(-1)!.targets.push(target);
    bytes += size;
  }
  return siteIds.length > 0 || parts.length === 0 ? [{ siteIds, tags, targets: [] }, ...parts] : parts;
}

/** Where the clusters (all without ids) are. */
export async function readPurgeTargets(
  pool: Pick<Pool, 'query'>,
  clusterIds?: readonly string[],
): Promise<Map<string, FeedTarget>> {
  const { rows } = await pool.query<{ id: string; epoch: string; seq: string }>({
    name: 'purge-targets',
    text: `select c.id, s.epoch, coalesce(h.seq, 0) as seq from cluster c cross join console_state s
       left join purge_head h on h.cluster_id = c.id where $1::text[] is null or c.id = any($1::text[])`,
    values: [clusterIds ?? null],
  });
  return new Map(rows.map(({ id, epoch, seq }) => [id, { epoch: BigInt(epoch), position: BigInt(seq) }]));
}

interface Row {
  seq: string;
  epoch: string;
  /** Null: all of the site. */
  body: Buffer | null;
  site_id: string | null;
}

/**
 * What was purged in (from, upTo], as a body of the feed, `to` as far as one reaches. What was folded comes at the number of
 * the last purge of its site, so a reader that goes on from `to` misses nothing.
 */
export async function readPurges(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  from: bigint,
  upTo: bigint,
): Promise<{ to: bigint; body: Uint8Array }> {
  const { rows } = await pool.query<Row>({
    name: 'purge-changes',
    text: `select seq, epoch, body, null as site_id from purge where cluster_id = $1 and seq > $2 and seq <= $3
      union all
      select seq, epoch, null, site_id from purge_floor where cluster_id = $1 and seq > $2 and seq <= $3
      order by seq limit ${MAX_ROWS}`,
    values: [clusterId, String(from), String(upTo)],
  });
  const taken = wholeNumbers(rows);
  const to = taken.length < rows.length || rows.length === MAX_ROWS ? BigInt(taken.at(-1)!.seq) : upTo;
  const purges = taken.map(({ seq, epoch, body, site_id }) =>
    body
      ? body
      : toBinary(
          PurgeSchema,
          create(PurgeSchema, { epoch: BigInt(epoch), sequence: BigInt(seq), siteIds: [site_id as string] }),
        ),
  );
  // A body says where it leads even if its purges are of sites that are gone.
  const nothing = toBinary(PurgeSchema, create(PurgeSchema, { sequence: to }));
  return { to, body: batchOf(purges.length > 0 ? purges : [nothing]) };
}

/** The first rows that fit into a body; of a number all or none. */
function wholeNumbers(rows: readonly Row[]): Row[] {
  const taken: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += (row.body?.length ?? 64) + 8;
    if (bytes > MAX_BODY_BYTES && taken.length > 0 && row.seq !== taken.at(-1)!.seq) return taken;
    taken.push(row);
  }
  const cut = taken.at(-1)?.seq;
  const whole = taken.filter(({ seq }) => seq !== cut);
  return rows.length === MAX_ROWS && whole.length > 0 ? whole : taken;
}

/** A PurgeBatch of encoded purges: its one field is repeated. */
function batchOf(purges: readonly Uint8Array[]): Uint8Array {
  const [field] = PurgeBatchSchema.fields;
  const pieces = purges.flatMap((purge) => [lengthDelimited(field!.number, purge.length), purge]);
  return Buffer.concat(pieces);
}

function lengthDelimited(field: number, length: number): Uint8Array {
  const bytes = [(field << 3) | 2];
  for (let rest = length; ; rest >>>= 7) {
    if (rest < 0x80) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Folds purges that are older than a week, and of each cluster all but the newest. */
export async function foldPurges(sql: Knex): Promise<number> {
  const { rows } = await sql.raw<{ rows: { count: number }[] }>(
    `with old as (
       select p.cluster_id, p.seq from purge p where p.created_at < now() - interval '${PURGE_DAYS} days'
       union
       select p.cluster_id, p.seq from purge_head h join purge p on p.cluster_id = h.cluster_id and p.seq <= h.seq - ${MAX_KEPT}
       limit ${SWEEP_BATCH}
     ), gone as (
       delete from purge p using old o where p.cluster_id = o.cluster_id and p.seq = o.seq
       returning p.cluster_id, p.seq, p.epoch, p.site_ids
     ), folded as (
       insert into purge_floor as f (cluster_id, site_id, seq, epoch)
       select distinct on (g.cluster_id, s.id) g.cluster_id, s.id, g.seq, g.epoch
         from gone g cross join lateral unnest(g.site_ids) u(id) join site s on s.id = u.id
        order by g.cluster_id, s.id, g.seq desc
       on conflict (cluster_id, site_id) do update set seq = excluded.seq, epoch = excluded.epoch
         where f.seq < excluded.seq
     )
     select count(*)::int as count from gone`,
  );
  return rows[0]!.count;
}
