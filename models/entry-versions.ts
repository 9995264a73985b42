// Which entries of a cluster differ between two of its revisions, and what they were at each: an index range scan, whose
// cost depends on what changed between them.
import type { Knex } from 'knex';
import { CHANGED_KEYS, liveAt } from './config-delta.ts';
import { numbered } from './named-statement.ts';
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
   order by coalesce(b.owner, a.owner) nulls first, k.kind, k.resource_id limit $6`;

/**
 * The entries of these kinds that differ between the revisions, by owner, kind and id, at most so many; with `touched`
 * those as well that changed between and are again what they were.
 */
export async function changedEntries(
  sql: Knex,
  clusterId: string,
  { from, to }: { from: string; to: string },
  kinds: readonly string[],
  limit: number,
  { touched = false } = {},
): Promise<EntryVersions[]> {
  const forward = BigInt(from) <= BigInt(to);
  const [low, high] = forward ? [from, to] : [to, from];
  const rows = await numbered<EntryName & { bucket: number; low: StoredEntry | null; high: StoredEntry | null }>(
    sql,
    VERSIONS,
    [clusterId, 'S', low, high, kinds, limit, touched],
  );
  return rows.map(({ low, high, ...name }) => ({
    ...name,
    ...(forward ? { from: low, to: high } : { from: high, to: low }),
  }));
}
