// Places in the history of a cluster's configuration: where its head is, and whether a node's base belongs to it.
import type { Pool } from 'pg';
import { HASH_BYTES } from '../../proto/entry-hash.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';

/** A position; numbers are 64-bit. */
export interface ConfigPlace {
  epoch: bigint;
  track: Track;
  revision: bigint;
  /** 32 bytes. */
  setHash: Uint8Array;
}

/** Where a track is. */
export interface TrackHead extends ConfigPlace {
  /** Differences and snapshots reach back to this revision. */
  deltaFloor: bigint;
}

/** Where a cluster is: what everybody runs, and what a canary runs. */
export interface ConfigHead extends TrackHead {
  /** Entries that everybody runs. */
  entryCount: number;
  /** Null: no canary runs. */
  canary: TrackHead | null;
}

/** The head of what a node of the track should run: everybody's, where no canary runs (any more). */
export function headOn(head: ConfigHead, track: Track): TrackHead {
  return track === Track.CANARY && head.canary ? head.canary : head;
}

/** The track as columns hold it. */
export function trackColumn(track: Track): 'S' | 'C' {
  return track === Track.CANARY ? 'C' : 'S';
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
  canary_revision: string | null;
  canary_set_hash: Buffer | null;
}

const HEAD_COLUMNS =
  'cluster_id, epoch, revision, set_hash, delta_floor, entry_count, canary_revision, canary_set_hash';

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
  const { epoch, revision, setHash } = headOn(head, base.track);
  if (base.epoch !== epoch || base.revision > revision || base.revision < head.deltaFloor) return false;
  if (base.revision === 0n) return sameBytes(base.setHash, EMPTY_SET_HASH);
  if (base.revision === revision && hasTrack(head, base.track)) return sameBytes(base.setHash, setHash);
  const stored = await storedHash(pool, clusterId, base);
  return stored !== undefined && sameBytes(base.setHash, stored);
}

function hasTrack({ canary }: ConfigHead, track: Track): boolean {
  return track !== Track.CANARY || canary !== null;
}

async function storedHash(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  { epoch, track, revision }: Omit<ConfigPlace, 'setHash'>,
): Promise<Buffer | undefined> {
  const { rows } = await pool.query<{ set_hash: Buffer }>({
    name: 'config-base',
    text: `select case when $4 = 'C' then coalesce(canary_set_hash, set_hash) else set_hash end as set_hash
      from config_revision where cluster_id = $1 and epoch = $2 and number = $3`,
    values: [clusterId, epoch.toString(), revision.toString(), trackColumn(track)],
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
  place: ConfigPlace,
): Promise<boolean> {
  if (place.epoch !== head.epoch) return place.epoch < head.epoch;
  if (place.revision > headOn(head, place.track).revision) return false;
  const stored = place.revision === 0n ? undefined : await storedHash(pool, clusterId, place);
  return stored === undefined || sameBytes(place.setHash, stored);
}

/** Hash of the entries at a place, 32 bytes. Throws when the history has or remembers none of the number. */
export async function readSetHash(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  place: Omit<ConfigPlace, 'setHash'>,
): Promise<Uint8Array> {
  if (place.revision === 0n) return EMPTY_SET_HASH;
  const stored = await storedHash(pool, clusterId, place);
  if (!stored) throw new Error(`cluster ${clusterId} has no revision ${place.revision} in epoch ${place.epoch}`);
  return stored;
}

function toHead(row: HeadRow): ConfigHead {
  const epoch = BigInt(row.epoch);
  const deltaFloor = BigInt(row.delta_floor);
  const canary = row.canary_revision !== null && {
    epoch,
    deltaFloor,
    track: Track.CANARY,
    revision: BigInt(row.canary_revision),
    setHash: row.canary_set_hash!,
  };
  return {
    epoch,
    deltaFloor,
    track: Track.STABLE,
    revision: BigInt(row.revision),
    setHash: row.set_hash,
    entryCount: Number(row.entry_count),
    canary: canary || null,
  };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
