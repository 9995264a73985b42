// Reads what a node holds differently, by comparing the sums of its buckets with those of the cluster.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { addSums, BUCKET_COUNT, fromSum, HASH_BYTES, toSum } from '../../proto/entry-hash.ts';
import { type ConfigRepair, ConfigRepairSchema, type Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import {
  ENTRY_OVERHEAD_BYTES,
  type EntryRow,
  LARGEST_ANSWER_BYTES,
  PULLED_BYTES,
  position,
  toEntry,
} from './config-entry.ts';
import { EMPTY_SET_HASH, headOn, readConfigHead, trackColumn } from './config-history.ts';

/**
 * The live entries of the track in the buckets whose sums differ from the node's; null when they, but for the largest one, exceed
 * {@link PULLED_BYTES}, or {@link LARGEST_ANSWER_BYTES} with it, or the sums are not {@link BUCKET_COUNT} × 32 bytes: then a snapshot is due.
 */
export async function readRepair(
  pool: Pool,
  clusterId: string,
  track: Track,
  bucketSums: Uint8Array,
): Promise<ConfigRepair | null> {
  if (bucketSums.length !== BUCKET_COUNT * HASH_BYTES) return null;
  const client = await pool.connect();
  let broken = true;
  try {
    // Head, sums and entries of one moment.
    await client.query('begin isolation level repeatable read read only');
    const repair = await repairWithin(client as Pick<Pool, 'query'>, clusterId, track, bucketSums);
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
  track: Track,
  bucketSums: Uint8Array,
): Promise<ConfigRepair | null> {
  const head = await readConfigHead(sql, clusterId);
  if (!head) return null;
  const target = headOn(head, track);
  const ours = await sumsOf(sql, clusterId, target.track);
  const buckets: number[] = [];
  for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
    const theirs = bucketSums.subarray(bucket * HASH_BYTES, (bucket + 1) * HASH_BYTES);
    if (Buffer.compare(theirs, ours.get(bucket) ?? EMPTY_SET_HASH) !== 0) buckets.push(bucket);
  }
  const column = trackColumn(target.track);
  const inBuckets = `from (${LIVE[column]}) e join config_blob b on b.hash = e.blob_hash`;
  const { rows: sizes } = await sql.query<{ bytes: string; largest: number }>({
    name: `config-repair-size-${column}`,
    text: `select coalesce(sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}), 0) as bytes,
      coalesce(max(octet_length(b.body)), 0) as largest ${inBuckets}`,
    values: [clusterId, buckets],
  });
  const { largest } = sizes[0]!;
  const bytes = Number(sizes[0]!.bytes);
  if (bytes - largest > PULLED_BYTES || bytes > LARGEST_ANSWER_BYTES) return null;
  const { rows } = await sql.query<EntryRow>({
    name: `config-repair-${column}`,
    text: `select e.kind, e.resource_id, e.features, b.body ${inBuckets} order by e.kind, e.resource_id`,
    values: [clusterId, buckets],
  });
  return create(ConfigRepairSchema, {
    checkpoint: position(target),
    buckets,
    entries: rows.map(toEntry),
  });
}

/** Sums of the buckets of what nodes of the track run; a canary's are kept as what it adds to the stable ones. */
async function sumsOf(sql: Pick<Pool, 'query'>, clusterId: string, track: Track): Promise<Map<number, Buffer>> {
  const { rows } = await sql.query<{ bucket: number; sum: Buffer }>({
    name: 'config-buckets',
    text: "select bucket, sum from config_bucket where cluster_id = $1 and (track = 'S' or $2 = 'C')",
    values: [clusterId, trackColumn(track)],
  });
  const sums = new Map<number, Buffer>();
  for (const { bucket, sum } of rows) {
    const other = sums.get(bucket);
    sums.set(bucket, other ? fromSum(addSums(toSum(other), toSum(sum))) : sum);
  }
  return sums;
}

/** Live entries of a cluster ($1) in buckets ($2), as nodes of each track run them. */
const live = (track: 'S' | 'C', more = '') => `
  select e.kind, e.resource_id, e.features, e.blob_hash from config_entry e
    where e.cluster_id = $1 and e.track = '${track}' and e.bucket = any($2::smallint[]) and e.to_revision is null ${more}`;

const LIVE = {
  S: live('S'),
  C: `${live(
    'S',
    `and not exists (select from config_entry c where c.cluster_id = $1 and c.track = 'C' and c.bucket = e.bucket
        and c.kind = e.kind and c.resource_id = e.resource_id and c.to_revision is null)`,
  )}
  union all ${live('C', 'and e.blob_hash is not null')}`,
};
