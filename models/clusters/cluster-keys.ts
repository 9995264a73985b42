// Secret keys that the nodes of a cluster share, three by role. Roles move next -> current -> previous with each rotation:
// a node uses `current` and accepts all, so nodes one rotation apart accept what each other made, and what was made
// yesterday stays valid.
import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Sealer } from '../../runtime/sealer.ts';
import { subjectIds } from '../alerts/alert.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** Version of keys that were never rotated. */
export const FIRST_VERSION = 1n;

const SECRET_BYTES = 32;
const ID_BYTES = 12;

export type KeyRole = 'next' | 'current' | 'previous';

export interface KeySet {
  /** 0 = the cluster has none yet. */
  version: bigint;
  keys: Partial<Record<KeyRole, { id: string; secret: Buffer }>>;
}

/** One sort of keys. Its tables are `<name>_set` and `<name>`. */
export interface KeySort {
  name: string;
  /** How old keys are when they move by themselves. */
  rotationMs: number;
  /** How long old keys wait for nodes that lack them; unless given, until none does. */
  waitsMs?: number;
  /** Over node_state `s` and :version: whether an online node would not know what the others begin to use. */
  lacks: string;
}

/** Nodes of a cluster that do not take its keys. */
export interface LaggingNodes {
  clusterId: string;
  clusterName: string;
  /** Since when there are those keys. */
  at: Date;
  count: number;
  named: { id: string; name: string }[];
  /** Ids of all of them, as `subjectIds` reads them. */
  subjects: string[];
}

export class ClusterKeys {
  readonly rotationMs: number;
  readonly #waitsMs: number;
  readonly #key: string;
  readonly #set: string;
  readonly #lacks: string;

  constructor({ name, rotationMs, waitsMs = Number.POSITIVE_INFINITY, lacks }: KeySort) {
    this.rotationMs = rotationMs;
    this.#waitsMs = waitsMs;
    this.#key = name;
    this.#set = `${name}_set`;
    this.#lacks = lacks;
  }

  /** Gives the cluster its first two keys unless it has some. */
  async create(sql: Knex, sealer: Sealer, clusterId: string, now: Date): Promise<void> {
    const made = await sql(this.#set)
      .insert({ cluster_id: clusterId, version: String(FIRST_VERSION), rotated_at: now })
      .onConflict('cluster_id')
      .ignore()
      .returning('cluster_id');
    if (made.length === 0) return;
    await this.#insert(sql, sealer, clusterId, 'current');
    await this.#insert(sql, sealer, clusterId, 'next');
  }

  async #insert(sql: Knex, sealer: Sealer, clusterId: string, role: KeyRole): Promise<void> {
    const id = randomBytes(ID_BYTES).toString('base64url');
    const secret = sealer.seal(randomBytes(SECRET_BYTES), this.#place(id));
    await sql(this.#key).insert({ id, cluster_id: clusterId, role, secret });
  }

  #place(row: string): { table: string; column: string; row: string } {
    return { table: this.#key, column: 'secret', row };
  }

  /** Clusters without keys, at most 1,000. */
  async missing(sql: Knex): Promise<string[]> {
    const { rows } = await sql.raw<{ rows: { id: string }[] }>(
      'select id from cluster c where not exists (select from ?? k where k.cluster_id = c.id) limit 1000',
      [this.#set],
    );
    return rows.map(({ id }) => id);
  }

  /** Clusters whose keys are old enough for a rotation, or younger than the clock: at most 1,000, oldest first. */
  async due(sql: Knex, now: Date): Promise<string[]> {
    const { rows } = await sql.raw<{ rows: { cluster_id: string }[] }>(
      'select cluster_id from ?? where rotated_at <= ? or rotated_at > ? order by rotated_at limit 1000',
      [this.#set, new Date(now.getTime() - this.rotationMs), now],
    );
    return rows.map(({ cluster_id }) => cluster_id);
  }

  /**
   * Moves the roles of keys that are old enough and makes another `next`; answers whether it did. Nothing moves before
   * the time has passed since the last time, whatever was missed meanwhile, nor while an online node would not know the key
   * that the others begin to use: as long as the sort waits for it. A time of rotation ahead of the clock begins anew.
   */
  async rotateDue(sql: Knex, sealer: Sealer, clusterId: string, now: Date): Promise<boolean> {
    const set = await sql(this.#set).where({ cluster_id: clusterId }).forUpdate().first();
    if (!set) return false;
    const age = now.getTime() - (set.rotated_at as Date).getTime();
    if (age < 0) await sql(this.#set).where({ cluster_id: clusterId }).update({ rotated_at: now });
    if (age < this.rotationMs) return false;
    const waits = age < this.rotationMs + this.#waitsMs;
    if (waits && (await this.#lacking(sql, clusterId, set.version, now)).length > 0) return false;
    await this.#rotate(sql, sealer, clusterId, set.version, now);
    return true;
  }

  /**
   * The same whatever the age of the keys, of a cluster that has some: answers their version, or the online nodes that
   * would not know the key that the others begin to use, by name; at most 100.
   */
  async rotateNow(
    sql: Knex,
    sealer: Sealer,
    clusterId: string,
    now: Date,
  ): Promise<{ version: bigint } | { lacking: { id: string; name: string }[] }> {
    const set = await sql(this.#set).where({ cluster_id: clusterId }).forUpdate().first();
    const lacking = await this.#lacking(sql, clusterId, set.version, now);
    return lacking.length > 0 ? { lacking } : { version: await this.#rotate(sql, sealer, clusterId, set.version, now) };
  }

  async #rotate(sql: Knex, sealer: Sealer, clusterId: string, before: string, now: Date): Promise<bigint> {
    await sql(this.#key).where({ cluster_id: clusterId, role: 'previous' }).delete();
    await sql.raw(
      `update ?? set role = case role when 'next' then 'current' else 'previous' end where cluster_id = ?`,
      [this.#key, clusterId],
    );
    await this.#insert(sql, sealer, clusterId, 'next');
    const version = BigInt(before) + 1n;
    await sql(this.#set)
      .where({ cluster_id: clusterId })
      .update({ version: String(version), rotated_at: now });
    return version;
  }

  async #lacking(sql: Knex, clusterId: string, version: string, now: Date): Promise<{ id: string; name: string }[]> {
    const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
      `select n.id, n.name from node n join node_state s on s.node_id = n.id
        where n.cluster_id = :clusterId and n.status = 'active' and s.last_seen_at > :since and ${this.#lacks}
        order by n.name, n.id limit 100`,
      { clusterId, version, since: new Date(now.getTime() - ONLINE_SECONDS * 1000) },
    );
    return rows;
  }

  /**
   * Nodes that are online and do not have keys that are older than `sinceMs`, by cluster, the most first; of one cluster when
   * one is asked about. At most `limit` clusters, and `named` nodes of each.
   */
  async lagging(
    sql: Knex,
    { clusterId, sinceMs, limit, named }: { clusterId: string | null; sinceMs: number; limit: number; named: number },
  ): Promise<LaggingNodes[]> {
    const { rows } = await sql.raw<{ rows: LaggingNodes[] }>(
      `select c.id as "clusterId", c.name as "clusterName", k.rotated_at as at, l.count, l.named, l.subjects
         from ?? k join cluster c on c.id = k.cluster_id cross join lateral (
           select count(*)::int as count,
               jsonb_path_query_array(jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name) order by n.name, n.id),
                 '$[0 to $last]', jsonb_build_object('last', ?::int - 1)) as named,
               ${subjectIds('n.id')} as subjects
             from node n join node_state s on s.node_id = n.id
            where n.cluster_id = k.cluster_id and n.status = 'active' and ${this.#lacks.replaceAll(':version', 'k.version')}
              and s.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds') l
        where l.count > 0 and k.rotated_at < now() - make_interval(secs => ?) and (?::text is null or c.id = ?)
        order by l.count desc, c.name limit ?`,
      [this.#set, named, sinceMs / 1000, clusterId, clusterId, limit],
    );
    return rows;
  }

  /** Version of the cluster's keys; 0 = it has none yet. */
  async version(sql: Knex, clusterId: string): Promise<bigint> {
    const row = await sql(this.#set).where({ cluster_id: clusterId }).first('version');
    return BigInt(row?.version ?? 0);
  }

  /** The same for several clusters by id; those without keys are absent. */
  async versions(pool: Pick<Pool, 'query'>, clusterIds: readonly string[]): Promise<Map<string, bigint>> {
    const { rows } = await pool.query<{ cluster_id: string; version: string }>({
      name: `${this.#key}-versions`,
      text: `select cluster_id, version from ${this.#set} where cluster_id = any($1::text[])`,
      values: [clusterIds],
    });
    return new Map(rows.map(({ cluster_id, version }) => [cluster_id, BigInt(version)]));
  }

  /** The cluster's keys, opened: for its nodes and nobody else. */
  async read(pool: Pick<Pool, 'query'>, sealer: Sealer, clusterId: string): Promise<KeySet> {
    // One statement: version and roles of one moment.
    const { rows } = await pool.query<{ version: string; id: string; role: KeyRole; secret: string }>({
      name: `${this.#key}-read`,
      text: `select s.version, k.id, k.role, k.secret from ${this.#set} s
        join ${this.#key} k on k.cluster_id = s.cluster_id where s.cluster_id = $1`,
      values: [clusterId],
    });
    const keys: KeySet['keys'] = {};
    for (const { id, role, secret } of rows) keys[role] = { id, secret: sealer.open(secret, this.#place(id)) };
    return { version: BigInt(rows[0]?.version ?? 0), keys };
  }
}
