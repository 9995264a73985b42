// Keys that sign passes, three per cluster by role. Roles move next -> current -> previous with each rotation: a node
// signs with `current` and verifies with all, so nodes one rotation apart accept each other's passes, and passes of
// yesterday stay valid.
import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Sealer } from '../runtime/sealer.ts';
import { ONLINE_SECONDS } from './node-state.ts';

/** Version of keys that were never rotated. */
export const FIRST_VERSION = 1n;
/** Longer than any pass is valid, so that a key has signed nothing valid when it is forgotten. */
export const ROTATION_MS = (24 * 60 + 10) * 60_000;

const SECRET_BYTES = 32;
const ID_BYTES = 12;

export type KeyRole = 'next' | 'current' | 'previous';

export interface ChallengeKeySet {
  /** 0 = the cluster has none yet. */
  version: bigint;
  keys: Partial<Record<KeyRole, { id: string; secret: Buffer }>>;
}

const place = (id: string) => ({ table: 'challenge_key', column: 'secret', row: id });

/** Gives the cluster its first two keys unless it has some. */
export async function createKeys(sql: Knex, sealer: Sealer, clusterId: string, now: Date): Promise<void> {
  const made = await sql('challenge_key_set')
    .insert({ cluster_id: clusterId, version: String(FIRST_VERSION), rotated_at: now })
    .onConflict('cluster_id')
    .ignore()
    .returning('cluster_id');
  if (made.length === 0) return;
  await insertKey(sql, sealer, clusterId, 'current');
  await insertKey(sql, sealer, clusterId, 'next');
}

async function insertKey(sql: Knex, sealer: Sealer, clusterId: string, role: KeyRole): Promise<void> {
  const id = randomBytes(ID_BYTES).toString('base64url');
  const secret = sealer.seal(randomBytes(SECRET_BYTES), place(id));
  await sql('challenge_key').insert({ id, cluster_id: clusterId, role, secret });
}

/** Clusters without keys, at most 1,000. */
export async function clustersWithoutKeys(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select id from cluster c where not exists (select from challenge_key_set k where k.cluster_id = c.id) limit 1000',
  );
  return rows.map(({ id }) => id);
}

/** Clusters whose keys are old enough for a rotation, or younger than the clock: at most 1,000, oldest first. */
export async function clustersDueForRotation(sql: Knex, now: Date): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { cluster_id: string }[] }>(
    'select cluster_id from challenge_key_set where rotated_at <= ? or rotated_at > ? order by rotated_at limit 1000',
    [new Date(now.getTime() - ROTATION_MS), now],
  );
  return rows.map(({ cluster_id }) => cluster_id);
}

/**
 * Moves the roles and makes another `next`; answers whether it did. Nothing moves before {@link ROTATION_MS} have passed
 * since the last time, whatever was missed meanwhile, nor while an online node that holds keys holds others: it would
 * not know the key that the others begin to sign with. A time of rotation ahead of the clock begins anew.
 */
export async function rotateKeys(sql: Knex, sealer: Sealer, clusterId: string, now: Date): Promise<boolean> {
  const set = await sql('challenge_key_set').where({ cluster_id: clusterId }).forUpdate().first();
  if (!set) return false;
  const age = now.getTime() - (set.rotated_at as Date).getTime();
  if (age < 0) await sql('challenge_key_set').where({ cluster_id: clusterId }).update({ rotated_at: now });
  if (age < ROTATION_MS || (await hasOnlineNodeWithOthers(sql, clusterId, set.version, now))) return false;
  await sql('challenge_key').where({ cluster_id: clusterId, role: 'previous' }).delete();
  await sql.raw(
    `update challenge_key set role = case role when 'next' then 'current' else 'previous' end where cluster_id = ?`,
    [clusterId],
  );
  await insertKey(sql, sealer, clusterId, 'next');
  const version = String(BigInt(set.version) + 1n);
  await sql('challenge_key_set').where({ cluster_id: clusterId }).update({ version, rotated_at: now });
  return true;
}

async function hasOnlineNodeWithOthers(sql: Knex, clusterId: string, version: string, now: Date): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: { found: boolean }[] }>(
    `select exists (
       select from node n join node_state s on s.node_id = n.id
        where n.cluster_id = ? and n.status = 'active' and s.last_seen_at > ?
          and s.challenge_keys_version not in (0, ?)) as found`,
    [clusterId, new Date(now.getTime() - ONLINE_SECONDS * 1000), version],
  );
  return rows[0]!.found;
}

/** Version of the cluster's keys; 0 = it has none yet. */
export async function readKeysVersion(sql: Knex, clusterId: string): Promise<bigint> {
  const row = await sql('challenge_key_set').where({ cluster_id: clusterId }).first('version');
  return BigInt(row?.version ?? 0);
}

/** The same for several clusters by id; those without keys are absent. */
export async function readKeysVersions(
  pool: Pick<Pool, 'query'>,
  clusterIds: readonly string[],
): Promise<Map<string, bigint>> {
  const { rows } = await pool.query<{ cluster_id: string; version: string }>({
    name: 'keys-versions',
    text: 'select cluster_id, version from challenge_key_set where cluster_id = any($1::text[])',
    values: [clusterIds],
  });
  return new Map(rows.map(({ cluster_id, version }) => [cluster_id, BigInt(version)]));
}

/** The cluster's keys, opened: for its nodes and nobody else. */
export async function readKeys(pool: Pick<Pool, 'query'>, sealer: Sealer, clusterId: string): Promise<ChallengeKeySet> {
  // One statement: version and roles of one moment.
  const { rows } = await pool.query<{ version: string; id: string; role: KeyRole; secret: string }>({
    name: 'challenge-keys',
    text: `select s.version, k.id, k.role, k.secret from challenge_key_set s
      join challenge_key k on k.cluster_id = s.cluster_id where s.cluster_id = $1`,
    values: [clusterId],
  });
  const keys: ChallengeKeySet['keys'] = {};
  for (const { id, role, secret } of rows) keys[role] = { id, secret: sealer.open(secret, place(id)) };
  return { version: BigInt(rows[0]?.version ?? 0), keys };
}
