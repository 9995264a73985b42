// Keys that sign passes, three per cluster by role. Roles move next -> current -> previous with each rotation, so a node
// needs to know no more than the next key ahead of time, and passes of yesterday stay valid.
import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Sealer } from '../mixins/sealer.ts';

/** Version of keys that were never rotated. */
export const FIRST_VERSION = 1n;
const SECRET_BYTES = 32;
const ID_BYTES = 12;
const ROLES = ['next', 'current', 'previous'] as const;
type Role = (typeof ROLES)[number];

export interface ChallengeKeyRow {
  id: string;
  secret: Buffer;
}

export interface ChallengeKeySet {
  version: bigint;
  keys: Partial<Record<Role, ChallengeKeyRow>>;
}

/** Version of the cluster's keys; 0 = it has none yet. */
export async function readKeysVersion(sql: Knex, clusterId: string): Promise<bigint> {
  const row = await sql('challenge_key_set').where({ cluster_id: clusterId }).first('version');
  return BigInt(row?.version ?? 0);
}

function place(clusterId: string, id: string) {
  return { table: 'challenge_key', column: 'secret', row: `${clusterId}/${id}` };
}

async function insertKey(sql: Knex, sealer: Sealer, clusterId: string, role: Role): Promise<void> {
  const id = randomBytes(ID_BYTES).toString('base64url');
  const secret = sealer.seal(randomBytes(SECRET_BYTES), place(clusterId, id));
  await sql('challenge_key').insert({ cluster_id: clusterId, role, id, secret });
}

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
