// Reads what a node lacks of its cluster's configuration: the difference between two revisions, a snapshot in pages, or
// the entries of buckets that drifted. Costs depend on what is read, never on the number of entries in the cluster.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { BUCKET_COUNT, HASH_BYTES } from '../proto/entry-hash.ts';
import { type Entry, EntryKeySchema, EntrySchema } from '../proto/gen/svc/config/v1/entry_pb.js';
import {
  type ConfigDelta,
  ConfigDeltaSchema,
  type ConfigPage,
  ConfigPageSchema,
  type ConfigPosition,
  ConfigPositionSchema,
  type ConfigRepair,
  ConfigRepairSchema,
  Track,
} from '../proto/gen/svc/node/v1/config_pb.js';
import { type ConfigHead, EMPTY_SET_HASH, readConfigHead, type TrackColumn } from './config-history.ts';

/** Bytes of bodies in a pushed difference; a larger one travels as numbers only. */
export const PUSHED_DELTA_BYTES = 256 * 1024;
/** Bytes of bodies in one answer of GetConfig. */
export const PULLED_BYTES = 4 * 1024 * 1024;
/** Entries in one page. */
const PAGE_ENTRIES = 2000;
/** Revisions that one difference spans at most, so that finding its end stays cheap. */
const DELTA_REVISIONS = 5000n;
/** What an entry costs on the wire beside its body, roughly. */
const ENTRY_OVERHEAD_BYTES = 160;

interface EntryRow {
  kind: string;
  resource_id: string;
  features: string[] | null;
  body: Buffer | null;
}

const CHANGED_KEYS = `
  select kind, resource_id from config_entry
    where cluster_id = $1 and track = $2 and from_revision > $3 and from_revision <= $4
  union
  select kind, resource_id from config_entry
    where cluster_id = $1 and track = $2 and to_revision > $3 and to_revision <= $4`;

// The one row of a key that is live at revision $4.
const LIVE_AT = `
  select e.blob_hash, e.features from config_entry e
    where e.cluster_id = $1 and e.track = $2 and e.kind = k.kind and e.resource_id = k.resource_id
      and e.from_revision <= $4 and (e.to_revision is null or e.to_revision > $4)
    order by e.from_revision desc limit 1`;

/**
 * The final state of the entries changed in (base, to]; `truncated` and empty when their bodies exceed `maxBytes`.
 * The caller has checked that the base is valid. Throws when the history has no revision `to`.
 */
export async function readConfigDelta(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  track: TrackColumn,
  epoch: bigint,
  base: bigint,
  to: bigint,
  maxBytes: number = PUSHED_DELTA_BYTES,
): Promise<ConfigDelta> {
  const range = [clusterId, track, base.toString(), to.toString()];
  const revision = await readRevision(pool, clusterId, epoch, to);
  const delta = create(ConfigDeltaSchema, {
    epoch,
    track: Track.STABLE,
    base,
    revision: to,
    setHash: revision.setHash,
    publishedAtUs: revision.publishedAtUs,
  });
  const { rows: sizes } = await pool.query<{ bytes: string }>({
    name: 'config-delta-size',
    text: `select coalesce(sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}), 0) as bytes
      from (${CHANGED_KEYS}) k left join lateral (${LIVE_AT}) l on true left join config_blob b on b.hash = l.blob_hash`,
    values: range,
  });
  if (Number(sizes[0]!.bytes) > maxBytes) {
    delta.truncated = true;
    return delta;
  }
  const { rows } = await pool.query<EntryRow>({
    name: 'config-delta',
    text: `select k.kind, k.resource_id, l.features, b.body
      from (${CHANGED_KEYS}) k left join lateral (${LIVE_AT}) l on true left join config_blob b on b.hash = l.blob_hash
      order by k.kind, k.resource_id`,
    values: range,
  });
  for (const row of rows) {
    if (row.body) delta.upserts.push(toEntry(row));
    else delta.deletes.push(create(EntryKeySchema, { kind: row.kind, id: row.resource_id }));
  }
  return delta;
}

/**
 * Up to which revision a difference from `base` can go in one answer of {@link PULLED_BYTES}: the head, an earlier one,
 * or null when the next revision alone is larger (then a snapshot is due).
 */
export async function reachableRevision(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  base: bigint,
  head: ConfigHead,
): Promise<bigint | null> {
  const to = head.revision - base > DELTA_REVISIONS ? base + DELTA_REVISIONS : head.revision;
  const { rows } = await pool.query<{ total: string | null; reachable: string | null }>({
    name: 'config-delta-reach',
    text: `
      with change as (
        select e.from_revision as revision, octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES} as bytes
          from config_entry e left join config_blob b on b.hash = e.blob_hash
          where e.cluster_id = $1 and e.track = 'S' and e.from_revision > $2 and e.from_revision <= $3
        union all
        select to_revision, ${ENTRY_OVERHEAD_BYTES} from config_entry
          where cluster_id = $1 and track = 'S' and to_revision > $2 and to_revision <= $3
      ), running as (
        select revision, sum(bytes) over (order by revision) as bytes from change
      )
      select max(bytes) as total, max(revision) filter (where bytes <= $4) as reachable from running`,
    values: [clusterId, base.toString(), to.toString(), PULLED_BYTES],
  });
  const { total, reachable } = rows[0]!;
  if (Number(total ?? 0) <= PULLED_BYTES) return to;
  return reachable === null ? null : BigInt(reachable);
}

/**
 * One page of a snapshot. The first names the head as its checkpoint; a token continues below the same checkpoint as
 * long as the history reaches back to it, else the answer starts a new snapshot (its checkpoint is another).
 * Null when there is no such cluster.
 */
export async function readConfigPage(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  pageToken: string,
): Promise<ConfigPage | null> {
  const head = await readConfigHead(pool, clusterId);
  if (!head) return null;
  const token = parseToken(pageToken);
  const resumes = token !== null && token.epoch === head.epoch && token.revision <= head.revision;
  const { after, revision } =
    resumes && token.revision >= head.deltaFloor ? token : { after: null, revision: head.revision };
  const setHash =
    revision === head.revision ? head.setHash : (await readRevision(pool, clusterId, head.epoch, revision)).setHash;
  const { rows } = await pool.query<EntryRow>({
    name: 'config-page',
    text: `
      select kind, resource_id, features, body from (
        select e.kind, e.resource_id, e.features, b.body,
          sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}) over page as running,
          row_number() over page as position
        from (
          select kind, resource_id, features, blob_hash from config_entry
            where cluster_id = $1 and track = 'S' and from_revision <= $2
              and (to_revision is null or to_revision > $2) and (kind, resource_id) > ($3, $4)
            order by kind, resource_id limit $5
        ) e join config_blob b on b.hash = e.blob_hash
        window page as (order by e.kind, e.resource_id)
      ) sized where running <= $6 or position = 1 order by kind, resource_id`,
    values: [clusterId, revision.toString(), after?.kind ?? '', after?.id ?? '', PAGE_ENTRIES, PULLED_BYTES / 4],
  });
  const page = create(ConfigPageSchema, {
    checkpoint: position(head.epoch, revision, setHash),
    entries: rows.map(toEntry),
  });
  const end = rows.at(-1);
  if (end && (await hasMore(pool, clusterId, revision, end))) {
    page.nextPageToken = formatToken(head.epoch, revision, { kind: end.kind, id: end.resource_id });
  }
  return page;
}

/**
 * The live entries of the buckets whose sums differ from the node's; null when they exceed {@link PULLED_BYTES} or the
 * sums are not {@link BUCKET_COUNT} × 32 bytes: then a snapshot is due.
 */
export async function readRepair(pool: Pool, clusterId: string, bucketSums: Uint8Array): Promise<ConfigRepair | null> {
  if (bucketSums.length !== BUCKET_COUNT * HASH_BYTES) return null;
  const client = await pool.connect();
  let broken = true;
  try {
    // Head, sums and entries of one moment.
    await client.query('begin isolation level repeatable read read only');
    const repair = await repairWithin(client as Pick<Pool, 'query'>, clusterId, bucketSums);
    await client.query('commit');
    broken = false;
    return repair;
  } finally {
    client.release(broken);
  }
}

async function repairWithin(
  sql: Pick<Pool, 'query'>,
  clusterId: string,
  bucketSums: Uint8Array,
): Promise<ConfigRepair | null> {
  const head = await readConfigHead(sql, clusterId);
  if (!head) return null;
  const { rows: stored } = await sql.query<{ bucket: number; sum: Buffer }>({
    name: 'config-buckets',
    text: "select bucket, sum from config_bucket where cluster_id = $1 and track = 'S'",
    values: [clusterId],
  });
  const ours = new Map(stored.map(({ bucket, sum }) => [bucket, sum]));
  const buckets: number[] = [];
  for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
    const theirs = bucketSums.subarray(bucket * HASH_BYTES, (bucket + 1) * HASH_BYTES);
    if (Buffer.compare(theirs, ours.get(bucket) ?? EMPTY_SET_HASH) !== 0) buckets.push(bucket);
  }
  const inBuckets = `from config_entry e join config_blob b on b.hash = e.blob_hash
    where e.cluster_id = $1 and e.track = 'S' and e.bucket = any($2::smallint[]) and e.to_revision is null`;
  const { rows: sizes } = await sql.query<{ bytes: string }>({
    name: 'config-repair-size',
    text: `select coalesce(sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}), 0) as bytes ${inBuckets}`,
    values: [clusterId, buckets],
  });
  if (Number(sizes[0]!.bytes) > PULLED_BYTES) return null;
  const { rows } = await sql.query<EntryRow>({
    name: 'config-repair',
    text: `select e.kind, e.resource_id, e.features, b.body ${inBuckets} order by e.kind, e.resource_id`,
    values: [clusterId, buckets],
  });
  return create(ConfigRepairSchema, {
    checkpoint: position(head.epoch, head.revision, head.setHash),
    buckets,
    entries: rows.map(toEntry),
  });
}

async function readRevision(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  epoch: bigint,
  revision: bigint,
): Promise<{ setHash: Uint8Array; publishedAtUs: bigint }> {
  if (revision === 0n) return { setHash: EMPTY_SET_HASH, publishedAtUs: 0n };
  const { rows } = await pool.query<{ set_hash: Buffer; published_at_us: string }>({
    name: 'config-revision',
    text: `select set_hash, (extract(epoch from created_at) * 1000000)::bigint as published_at_us
      from config_revision where cluster_id = $1 and epoch = $2 and number = $3`,
    values: [clusterId, epoch.toString(), revision.toString()],
  });
  if (!rows[0]) throw new Error(`cluster ${clusterId} has no revision ${revision} in epoch ${epoch}`);
  return { setHash: rows[0].set_hash, publishedAtUs: BigInt(rows[0].published_at_us) };
}

async function hasMore(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  revision: bigint,
  after: EntryRow,
): Promise<boolean> {
  const { rows } = await pool.query({
    name: 'config-page-more',
    text: `select 1 from config_entry where cluster_id = $1 and track = 'S' and from_revision <= $2
      and (to_revision is null or to_revision > $2) and (kind, resource_id) > ($3, $4)
      order by kind, resource_id limit 1`,
    values: [clusterId, revision.toString(), after.kind, after.resource_id],
  });
  return rows.length > 0;
}

function toEntry(row: EntryRow): Entry {
  return create(EntrySchema, {
    kind: row.kind,
    id: row.resource_id,
    body: row.body!,
    features: row.features ?? [],
  });
}

/** A position on the stable track as messages carry it. */
export function position(epoch: bigint, revision: bigint, setHash: Uint8Array): ConfigPosition {
  return create(ConfigPositionSchema, { epoch, track: Track.STABLE, revision, setHash });
}

interface PageToken {
  epoch: bigint;
  revision: bigint;
  after: { kind: string; id: string };
}

function formatToken(epoch: bigint, revision: bigint, after: PageToken['after']): string {
  return Buffer.from(JSON.stringify([String(epoch), String(revision), after.kind, after.id])).toString('base64url');
}

/** Null for what no page ever carried. */
function parseToken(token: string): PageToken | null {
  if (token === '' || token.length > 1024) return null;
  const text = Buffer.from(token, 'base64url').toString();
  const match = /^\["([0-9]{1,19})","([0-9]{1,18})",("(?:[^"\\]|\\.)*"),("(?:[^"\\]|\\.)*")\]$/.exec(text);
  if (!match) return null;
  try {
    const [kind, id] = JSON.parse(`[${match[3]},${match[4]}]`) as [string, string];
    if (kind.includes('\0') || id.includes('\0')) return null;
    return { epoch: BigInt(match[1]!), revision: BigInt(match[2]!), after: { kind, id } };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
