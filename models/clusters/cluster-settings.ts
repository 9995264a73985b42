// Settings of a cluster that are one object each, and which of its nodes cannot follow them.
import type { Knex } from 'knex';
import type { Capability } from '../../contract/capabilities.ts';

/** A setting of clusters: a column of their table that its own feature adds, of JSON. */
export interface SettingColumn<T> {
  readonly column: string;
  /** The setting for what the column holds; null until it is first saved. */
  read(saved: unknown): T;
}

const LISTED_NODES = 100;

/** Undefined when there is no such cluster. With `lock` it stays as it is until the end of the transaction. */
export async function readClusterSetting<T>(
  sql: Knex,
  clusterId: string,
  { column, read }: SettingColumn<T>,
  { lock = false } = {},
): Promise<{ clusterName: string; settings: T } | undefined> {
  const query = sql('cluster').where({ id: clusterId }).first('name', column);
  const row = await (lock ? query.forNoKeyUpdate() : query);
  return row && { clusterName: row.name, settings: read(row[column]) };
}

export async function writeClusterSetting<T>(
  sql: Knex,
  clusterId: string,
  { column }: SettingColumn<T>,
  settings: T,
): Promise<void> {
  await sql('cluster')
    .where({ id: clusterId })
    .update({ [column]: JSON.stringify(settings) });
}

/** Active nodes of the cluster that do not report the capability, by name; at most 100. */
export async function nodesLacking(
  sql: Knex,
  clusterId: string,
  capability: Capability,
): Promise<{ id: string; name: string }[]> {
  const { rows } = await sql.raw(
    `select n.id, n.name from node n left join node_state s on s.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and not coalesce(s.features, '{}') @> array[?]::text[]
      order by n.name, n.id limit ?`,
    [clusterId, capability, LISTED_NODES],
  );
  return rows;
}

/** Active nodes of the cluster on which whoever connects may send a PROXY header, by name; at most 100. */
export async function nodesBelievingAnyPeer(sql: Knex, clusterId: string): Promise<{ id: string; name: string }[]> {
  const { rows } = await sql.raw(
    `select n.id, n.name from node n join node_state s on s.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and s.info -> 'proxyPeersUnset' = 'true'
      order by n.name, n.id limit ?`,
    [clusterId, LISTED_NODES],
  );
  return rows;
}

/** Which of the capabilities every active node of the cluster reports. */
export async function sharedCapabilities(
  sql: Knex,
  clusterId: string,
  capabilities: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { capability: string }[] }>(
    `select c.capability from unnest(?::text[]) c(capability)
      where not exists (
        select from node n left join node_state s on s.node_id = n.id
         where n.cluster_id = ? and n.status = 'active' and not coalesce(s.features, '{}') @> array[c.capability])`,
    [capabilities as never, clusterId],
  );
  return new Set(rows.map(({ capability }) => capability));
}
