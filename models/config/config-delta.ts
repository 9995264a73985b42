// Reads the difference between two revisions of a cluster's configuration: an index range scan, whose cost depends on
// what changed and never on the number of entries in the cluster.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { EntryKeySchema } from '../../proto/gen/svc/config/v1/entry_pb.js';
import { type ConfigDelta, ConfigDeltaSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { ENTRY_OVERHEAD_BYTES, type EntryRow, LARGEST_ANSWER_BYTES, PULLED_BYTES, toEntry } from './config-entry.ts';
import { type ConfigPlace, type TrackHead, trackColumn } from './config-history.ts';

/** Bytes of bodies in a pushed difference; a larger one travels as numbers only. */
export const PUSHED_DELTA_BYTES = 256 * 1024;
/** Revisions that one difference spans at most, so that finding its end stays cheap. */
const DELTA_REVISIONS = 5000n;

/** Names of the entries changed in ($3, $4] on a cluster's ($1) track ($2). */
export const CHANGED_KEYS = `
  select kind, resource_id from config_entry
    where cluster_id = $1 and track = $2 and from_revision > $3 and from_revision <= $4
  union
  select kind, resource_id from config_entry
    where cluster_id = $1 and track = $2 and to_revision > $3 and to_revision <= $4`;

/** The one row of a name `k` that is live at a revision, `columns` of it. */
export const liveAt = (revision: string, columns: string, track = '$2') => `
  select ${columns} from config_entry e
    where e.cluster_id = $1 and e.track = ${track} and e.kind = k.kind and e.resource_id = k.resource_id
      and e.from_revision <= ${revision} and (e.to_revision is null or e.to_revision > ${revision})
    order by e.from_revision desc limit 1`;

// In one statement, for it follows each publication: the revision, how large the difference is, and the entries unless it
// is too large. A row for each entry, or one without. `changed`: SQL of their names, features and blobs.
const deltaOf = (changed: string) => `
  with changed as materialized (${changed}
  ), size as materialized (
    select coalesce(sum(octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}), 0) as bytes
      from changed c left join config_blob b on b.hash = c.blob_hash
  )
  select case when $2 = 'C' then r.canary_set_hash else r.set_hash end as set_hash,
    (extract(epoch from r.created_at) * 1000000)::bigint as published_at_us, size.bytes,
    c.kind, c.resource_id, c.features, b.body
    from config_revision r cross join size
    left join changed c on size.bytes <= $6
    left join config_blob b on b.hash = c.blob_hash
    where r.cluster_id = $1 and r.epoch = $5 and r.number = $4
    order by c.kind, c.resource_id`;

/** Between two stable revisions. */
const DELTA = deltaOf(`
    select k.kind, k.resource_id, l.features, l.blob_hash
      from (${CHANGED_KEYS}) k left join lateral (${liveAt('$4', 'e.blob_hash, e.features')}) l on true`);

/** What a canary runs of a name `k`: what it has over the stable entry, which may be nothing, or that one. */
const shownAt = (revision: string, track: string) => `
    left join lateral (${liveAt(revision, 'true as over, e.blob_hash, e.features', "'C'")}) c on ${track} = 'C'
    left join lateral (${liveAt(revision, 'e.blob_hash, e.features', "'S'")}) s on c.over is null`;
const SHOWN =
  'coalesce(c.features, s.features) as features, case when c.over then c.blob_hash else s.blob_hash end as blob_hash';

/** With a canary at one end or both: from track $7 to track $2. What is the same at both ends is left out. */
const TRACKS_DELTA = deltaOf(`
    select k.kind, k.resource_id, a.features, a.blob_hash from (
      select kind, resource_id from config_entry
        where cluster_id = $1 and from_revision > $3 and from_revision <= $4
      union
      select kind, resource_id from config_entry where cluster_id = $1 and to_revision > $3 and to_revision <= $4
      union
      select kind, resource_id from config_entry
        where $2 <> $7 and cluster_id = $1 and track = 'C' and from_revision <= $4 and to_revision is null
      union
      select kind, resource_id from config_entry
        where $2 <> $7 and cluster_id = $1 and track = 'C' and from_revision <= $4 and to_revision > $4) k
    cross join lateral (select ${SHOWN} from (select 1) one ${shownAt('$4', '$2')}) a
    cross join lateral (select ${SHOWN} from (select 1) one ${shownAt('$3', '$7')}) b
    where (a.blob_hash, coalesce(a.features, '{}')) is distinct from (b.blob_hash, coalesce(b.features, '{}'))`);

interface DeltaRow extends EntryRow {
  set_hash: Buffer;
  published_at_us: string;
  bytes: string;
}

/** A revision on a track. */
export type TrackPlace = Pick<ConfigPlace, 'track' | 'revision'>;

/**
 * The final state of the entries that differ between the base and `to`, on one track or from one to the other; `truncated`
 * and empty when their bodies exceed `maxBytes`. The caller has checked that the base is valid. Throws when the history
 * has or remembers no revision `to`, or had no canary then.
 */
export async function readConfigDelta(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  base: TrackPlace,
  to: TrackPlace & { epoch: bigint },
  maxBytes: number = PUSHED_DELTA_BYTES,
): Promise<ConfigDelta> {
  const values = [
    clusterId,
    trackColumn(to.track),
    base.revision.toString(),
    to.revision.toString(),
    to.epoch.toString(),
    maxBytes,
  ];
  const { rows } = await pool.query<DeltaRow | (DeltaRow & { kind: null })>(
    isStable(base) && isStable(to)
      ? { name: 'config-delta', text: DELTA, values }
      : { name: 'config-tracks-delta', text: TRACKS_DELTA, values: [...values, trackColumn(base.track)] },
  );
  const [first] = rows;
  if (!first?.set_hash) throw new Error(`cluster ${clusterId} has no revision ${to.revision} in epoch ${to.epoch}`);
  const delta = create(ConfigDeltaSchema, {
    epoch: to.epoch,
    track: to.track,
    base: base.revision,
    baseTrack: base.track,
    revision: to.revision,
    setHash: first.set_hash,
    publishedAtUs: BigInt(first.published_at_us),
    truncated: Number(first.bytes) > maxBytes,
  });
  for (const row of rows) {
    if (row.kind === null) continue;
    if (row.body) delta.upserts.push(toEntry(row));
    else delta.deletes.push(create(EntryKeySchema, { kind: row.kind, id: row.resource_id }));
  }
  return delta;
}

function isStable({ track }: TrackPlace): boolean {
  return track !== Track.CANARY;
}

/**
 * Up to which revision a difference from the base can go in one answer of {@link PULLED_BYTES}: the head, an earlier one
 * of the stable track, or null when the next step alone is larger than {@link LARGEST_ANSWER_BYTES} (then a snapshot is due).
 */
export async function reachableRevision(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  base: TrackPlace,
  head: TrackHead,
): Promise<bigint | null> {
  const stable = isStable(base) && isStable(head);
  const far = head.revision - base.revision > DELTA_REVISIONS;
  if (far && !stable) return null;
  const to = far ? base.revision + DELTA_REVISIONS : head.revision;
  const { rows } = await pool.query<Record<'total' | 'reachable' | 'next' | 'step', string | null>>({
    name: 'config-delta-reach',
    text: `
      with change as (
        select e.from_revision as revision, octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES} as bytes
          from config_entry e left join config_blob b on b.hash = e.blob_hash
          where e.cluster_id = $1 and e.track = any($5) and e.from_revision > $2 and e.from_revision <= $3
        union all
        select to_revision, ${ENTRY_OVERHEAD_BYTES} from config_entry
          where cluster_id = $1 and track = any($5) and to_revision > $2 and to_revision <= $3
        union all
        select $3, octet_length(b.body) + ${ENTRY_OVERHEAD_BYTES}
          from config_entry e left join config_blob b on b.hash = e.blob_hash
          where $6 and e.cluster_id = $1 and e.track = 'C' and e.from_revision <= $2 and e.to_revision is null
      ), running as (
        select revision, sum(bytes) over (order by revision) as bytes from change
      )
      select max(bytes) as total, max(revision) filter (where bytes <= $4) as reachable, min(revision) as next,
        min(bytes) as step from running`,
    values: [
      clusterId,
      base.revision.toString(),
      to.toString(),
      PULLED_BYTES,
      stable ? ['S'] : ['S', 'C'],
      base.track !== head.track,
    ],
  });
  const { total, reachable, next, step } = rows[0]!;
  // From one track to another there is one step only.
  if (Number(total ?? 0) <= (stable ? PULLED_BYTES : LARGEST_ANSWER_BYTES)) return to;
  if (!stable) return null;
  if (reachable !== null) return BigInt(reachable);
  return Number(step) <= LARGEST_ANSWER_BYTES ? BigInt(next!) : null;
}
