// Places in the history of a cluster's configuration: where its head is, and whether a node's base belongs to it.
import type { Pool } from 'pg';
import { HASH_BYTES } from '../proto/entry-hash.ts';

/** Tracks as columns hold them; only 'S' (stable) is in use. */
export type TrackColumn = 'S' | 'C';

/** A position; numbers are 64-bit. */
export interface ConfigPlace {
  epoch: bigint;
  revision: bigint;
  /** 32 bytes. */
  setHash: Uint8Array;
}

export interface ConfigHead extends ConfigPlace {
  /** Differences and snapshots reach back to this revision. */
  deltaFloor: bigint;
  entryCount: number;
  /** Null before the first revision. */
  publishedAt: Date | null;
}

/** Changes of a batch `b` of the feed with their times and those of the changes before them (runtime/feeds.ts). */
export const CONFIG_CHANGES = `
  select number, created_at as at, b."clusterId" as cluster_id, lag(created_at) over (order by number) as before
    from config_revision where cluster_id = b."clusterId" and epoch = b.epoch and number >= b."from" and number <= b."to"`;

/** Revision 0 of every history: no entries. */
export const EMPTY_SET_HASH: Uint8Array = new Uint8Array(HASH_BYTES);

interface HeadRow {
  cluster_id: string;
  epoch: string;
  revision: string;
  set_hash: Buffer;
  delta_floor: string;
  entry_count: string;
  published_at: Date | null;
}

const HEAD_COLUMNS = 'cluster_id, epoch, revision, set_hash, delta_floor, entry_count, published_at';

/** What the cluster's nodes should run; null when there is no such cluster. */
export async function readConfigHead(pool: Pick<Pool, 'query'>, clusterId: string): Promise<ConfigHead | null> {
  const { rows } = await pool.query<HeadRow>({
    name: 'config-head',
    text: `select ${HEAD_COLUMNS} from cluster_head where cluster_id = $1`,
    values: [clusterId],
  });
  return rows[0] ? toHead(rows[0]) : null;
}

/** The heads of all clusters (or the given ones) by cluster id. */
export async function readConfigHeads(
  pool: Pick<Pool, 'query'>,
  clusterIds?: readonly string[],
): Promise<Map<string, ConfigHead>> {
  const { rows } = await pool.query<HeadRow>({
    name: 'config-heads',
    text: `select ${HEAD_COLUMNS} from cluster_head where $1::text[] is null or cluster_id = any($1::text[])`,
    values: [clusterIds ?? null],
  });
  return new Map(rows.map((row) => [row.cluster_id, toHead(row)]));
}

/** Whether a difference may start at the position: same history, and the hash stored for its revision is the same. */
export async function isValidBase(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  head: ConfigHead,
  base: ConfigPlace,
): Promise<boolean> {
  if (base.epoch !== head.epoch || base.revision > head.revision || base.revision < head.deltaFloor) return false;
  if (base.revision === head.revision) return sameBytes(base.setHash, head.setHash);
  if (base.revision === 0n) return sameBytes(base.setHash, EMPTY_SET_HASH);
  const stored = await storedHash(pool, clusterId, base.epoch, base.revision);
  return stored !== undefined && sameBytes(base.setHash, stored);
}

async function storedHash(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  epoch: bigint,
  revision: bigint,
): Promise<Buffer | undefined> {
  const { rows } = await pool.query<{ set_hash: Buffer }>({
    name: 'config-base',
    text: 'select set_hash from config_revision where cluster_id = $1 and epoch = $2 and number = $3',
    values: [clusterId, epoch.toString(), revision.toString()],
  });
  return rows[0]?.set_hash;
}

/**
 * Whether the database has what a position of the cluster claims: a revision up to the head, with the hash stored for it.
 * True as well for earlier epochs and for revisions that are not remembered any more. `head` was read after the claim.
 */
export async function knowsPlace(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  head: ConfigHead,
  { epoch, revision, setHash }: ConfigPlace,
): Promise<boolean> {
  if (epoch !== head.epoch) return epoch < head.epoch;
  if (revision > head.revision) return false;
  const stored = revision === 0n ? undefined : await storedHash(pool, clusterId, epoch, revision);
  return stored === undefined || sameBytes(setHash, stored);
}

/** Hash of the entries at a revision, 32 bytes. Throws when the history has or remembers none of the number. */
export async function readSetHash(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  epoch: bigint,
  revision: bigint,
): Promise<Uint8Array> {
  if (revision === 0n) return EMPTY_SET_HASH;
  const { rows } = await pool.query<{ set_hash: Buffer }>({
    name: 'config-set-hash',
    text: 'select set_hash from config_revision where cluster_id = $1 and epoch = $2 and number = $3',
    values: [clusterId, epoch.toString(), revision.toString()],
  });
  if (!rows[0]) throw new Error(`cluster ${clusterId} has no revision ${revision} in epoch ${epoch}`);
  return rows[0].set_hash;
}

function toHead(row: HeadRow): ConfigHead {
  return {
    epoch: BigInt(row.epoch),
    revision: BigInt(row.revision),
    setHash: row.set_hash,
    deltaFloor: BigInt(row.delta_floor),
    entryCount: Number(row.entry_count),
    publishedAt: row.published_at,
  };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
