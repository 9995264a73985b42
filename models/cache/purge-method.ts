// Which sites take PURGE requests, and with which key. Keys are kept as keyed hashes under a secret of the cluster.
import { createHmac, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Sealer } from '../../runtime/sealer.ts';

const SECRET_BYTES = 32;

export interface PurgeMethod {
  enabled: boolean;
  /** Null: no key was ever given. */
  keyDigest: Uint8Array | null;
}

const NONE: PurgeMethod = { enabled: false, keyDigest: null };

export async function readPurgeMethod(sql: Knex, siteId: string): Promise<PurgeMethod> {
  const { rows } = await sql.raw<{ rows: PurgeMethod[] }>(
    'select enabled, key_digest as "keyDigest" from site_purge_method where site_id = ?',
    [siteId],
  );
  return rows[0] ?? NONE;
}

/** Whoever writes holds the site's lock. */
export async function writePurgeMethod(
  sql: Knex,
  { id, clusterId }: { id: string; clusterId: string },
  { enabled, keyDigest }: PurgeMethod,
): Promise<void> {
  await sql.raw(
    `insert into site_purge_method (site_id, cluster_id, enabled, key_digest) values (?, ?, ?, ?)
     on conflict (site_id) do update set enabled = excluded.enabled, key_digest = excluded.key_digest`,
    [id, clusterId, enabled, (keyDigest && Buffer.from(keyDigest)) as never],
  );
}

/** What nodes compare a key of the site with; the cluster's secret is made where there is none. */
export async function digestOfKey(
  sql: Knex,
  sealer: Sealer,
  { id, clusterId }: { id: string; clusterId: string },
  key: string,
): Promise<Buffer> {
  return createHmac('sha256', await purgeSecret(sql, sealer, clusterId))
    .update(`${id}\n${key}`)
    .digest();
}

/** The cluster's secret, for its nodes and nobody else; it is made where there is none. */
export async function purgeSecret(sql: Knex, sealer: Sealer, clusterId: string): Promise<Buffer> {
  const place = { table: 'purge_secret', column: 'secret', row: clusterId };
  const made = sealer.seal(randomBytes(SECRET_BYTES), place);
  await sql.raw('insert into purge_secret (cluster_id, secret) values (?, ?) on conflict do nothing', [
    clusterId,
    made,
  ]);
  // Another call may have made it.
  const { rows } = await sql.raw<{ rows: { secret: string }[] }>(
    'select secret from purge_secret where cluster_id = ?',
    [clusterId],
  );
  return sealer.open(rows[0]!.secret, place);
}
