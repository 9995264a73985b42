// Reads what a node holds differently, by comparing the sums of its buckets with those of the cluster.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { BUCKET_COUNT, HASH_BYTES } from '../proto/entry-hash.ts';
import { type ConfigRepair, ConfigRepairSchema } from '../proto/gen/svc/node/v1/config_pb.js';
import { ENTRY_OVERHEAD_BYTES, type EntryRow, PULLED_BYTES, position, toEntry } from './config-entry.ts';
import { EMPTY_SET_HASH, readConfigHead } from './config-history.ts';

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
