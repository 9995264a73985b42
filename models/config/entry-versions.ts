// Which entries of a cluster differ between two of its revisions, and what they were at each: an index range scan, whose
// cost depends on what changed between them.
import type { Knex } from 'knex';
import { numbered } from '../db/named-statement.ts';
import { CHANGED_KEYS, liveAt } from './config-delta.ts';
import type { EntryName } from './write-revision.ts';

/** An entry as it was published. */
export interface StoredEntry {
  /** SHA-256 of the body, hexadecimal. */
  hash: string;
  features: string[];
  refs: string[];
  compilerVersion: number;
  owner: string | null;
  /** SHA-256 of the settings, hexadecimal; null: none are kept. */
  settingsHash: string | null;
  settings: Record<string, unknown> | null;
}

/** An entry at two revisions; null where it was none. */
export interface EntryVersions extends EntryName {
  bucket: number;
  from: StoredEntry | null;
  to: StoredEntry | null;
}

const stored = (alias: string) => `case when ${alias}.blob_hash is null then null else jsonb_build_object(
    'hash', encode(${alias}.blob_hash, 'hex'), 'features', to_jsonb(${alias}.features), 'refs', to_jsonb(${alias}.refs),
    'compilerVersion', ${alias}.compiler_version, 'owner', ${alias}.owner,
    'settingsHash', encode(${alias}.settings_hash, 'hex'),
    'settings', (select s.settings::jsonb from config_settings s where s.hash = ${alias}.settings_hash)) end`;

const COLUMNS = 'e.bucket, e.blob_hash, e.features, e.refs, e.compiler_version, e.owner, e.settings_hash';

const VERSIONS = `
  with k as materialized (${CHANGED_KEYS})
  select k.kind, k.resource_id as id, coalesce(a.bucket, b.bucket) as bucket, ${stored('a')} as low, ${stored('b')} as high
    from k
    left join lateral (${liveAt('$3', COLUMNS)}) a on true
    left join lateral (${liveAt('$4', COLUMNS)}) b on true
   where k.kind = any($5) and ($7 or (a.blob_hash, a.features) is distinct from (b.blob_hash, b.features))
     and ($8::text[] is null or (k.kind, k.resource_id) in (select * from unnest($8::text[], $9::text[])))
     and ($10::text[] is null or coalesce(b.owner, a.owner) = any($10))
   order by coalesce(b.owner, a.owner) nulls first, k.kind, k.resource_id limit $6`;

/** As it is live at a revision, of what a canary has over it where that is looked at. */
const shownAt = (revision: string, canary: string) => `
  select ${COLUMNS} from config_entry e
    where e.cluster_id = $1 and e.kind = k.kind and e.resource_id = k.resource_id and (e.track = 'S' or ${canary})
      and e.from_revision <= ${revision} and (e.to_revision is null or e.to_revision > ${revision})
    order by e.track, e.from_revision desc limit 1`;

/** With what canaries have at one end ($6, $7) or both. */
const TRIED_VERSIONS = `
  with k as materialized (
    select kind, resource_id from config_entry where cluster_id = $1 and from_revision > $2 and from_revision <= $3
    union
    select kind, resource_id from config_entry where cluster_id = $1 and to_revision > $2 and to_revision <= $3)
  select k.kind, k.resource_id as id, coalesce(a.bucket, b.bucket) as bucket, ${stored('a')} as low, ${stored('b')} as high
    from k
    left join lateral (${shownAt('$2', '$6')}) a on true
    left join lateral (${shownAt('$3', '$7')}) b on true
   where k.kind = any($4) and (a.blob_hash, a.features) is distinct from (b.blob_hash, b.features)
   order by coalesce(b.owner, a.owner) nulls first, k.kind, k.resource_id limit $5`;

interface VersionsRow extends EntryName {
  bucket: number;
  low: StoredEntry | null;
  high: StoredEntry | null;
}

interface Span {
  from: string;
  to: string;
}

export interface ChangedFilter {
  /** Those as well that changed between and are again what they were. */
  touched?: boolean;
  /** Of these names alone. */
  names?: readonly EntryName[];
  /** Of these owners alone. */
  owners?: readonly string[];
}

/** The entries of these kinds that differ between the revisions, by owner, kind and id, at most so many. */
export async function changedEntries(
  sql: Knex,
  clusterId: string,
  { from, to }: Span,
  kinds: readonly string[],
  limit: number,
  { touched = false, names, owners }: ChangedFilter = {},
): Promise<EntryVersions[]> {
  return inOrder({ from, to }, (low, high) =>
    numbered<VersionsRow>(sql, VERSIONS, [
      ...[clusterId, 'S', low, high, kinds, limit, touched],
      ...[names?.map(({ kind }) => kind) ?? null, names?.map(({ id }) => id) ?? null, owners ?? null],
    ]),
  );
}

/**
 * The entries that differ for whom a revision is about: the nodes of a canary while one runs and when it is taken back,
 * everybody else when it is promoted or none runs. As {@link changedEntries}, ended by `to`.
 */
export async function triedEntries(
  sql: Knex,
  clusterId: string,
  { from, to }: Span,
  kinds: readonly string[],
  limit: number,
): Promise<EntryVersions[]> {
  const [at] = await numbered<{ runs: boolean; ran: boolean }>(
    sql,
    `select r.canary_set_hash is not null as runs, r.canary_set_hash is not null or r.reason = 'rollout_rollback' as ran
       from config_revision r join cluster_head h using (cluster_id, epoch)
      where r.cluster_id = $1 and r.number = $2`,
    [clusterId, to],
  );
  const { runs = false, ran = false } = at ?? {};
  if (!ran) return changedEntries(sql, clusterId, { from, to }, kinds, limit);
  return inOrder({ from, to }, (low, high, forward) =>
    numbered<VersionsRow>(sql, TRIED_VERSIONS, [
      clusterId,
      low,
      high,
      kinds,
      limit,
      forward ? ran : runs,
      forward ? runs : ran,
    ]),
  );
}

/** Asks for the earlier revision first, whichever of them is compared with the other. */
async function inOrder(
  { from, to }: Span,
  ask: (low: string, high: string, forward: boolean) => Promise<VersionsRow[]>,
): Promise<EntryVersions[]> {
  const forward = BigInt(from) <= BigInt(to);
  const rows = await (forward ? ask(from, to, forward) : ask(to, from, forward));
  return rows.map(({ low, high, ...name }) => ({
    ...name,
    ...(forward ? { from: low, to: high } : { from: high, to: low }),
  }));
}
