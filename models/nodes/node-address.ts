// Addresses of nodes, which bans may not cover. A ban created at the same moment either sees the address or counts as
// made before it: a writer here reads no bans, so nothing has to be locked, and nodes report as often as they like.
import type { Knex } from 'knex';
import type { Pool } from 'pg';

export interface NodeAddressEntry {
  address: string;
  source: 'reported' | 'remote';
}

/**
 * Replaces the reported and remote addresses of a node; configured ones stay. A node that is gone gets none. One
 * statement, so that nobody sees a node without its addresses.
 */
export async function replaceNodeAddresses(
  sql: Knex,
  nodeId: string,
  entries: readonly NodeAddressEntry[],
): Promise<void> {
  await sql.raw(
    `with given as (select address::inet, source from jsonb_to_recordset(?::jsonb) as e(address text, source text)),
     gone as (
       delete from node_address a where a.node_id = ? and a.source in ('reported', 'remote')
          and not exists (select from given g where (g.address, g.source) = (a.address, a.source)))
     insert into node_address (node_id, cluster_id, address, source)
     select n.id, n.cluster_id, g.address, g.source from node n, given g where n.id = ?
     on conflict do nothing`,
    [JSON.stringify(entries), nodeId, nodeId],
  );
}

/** Reported and remote addresses of a node as stored. */
export async function storedNodeAddresses(pool: Pick<Pool, 'query'>, nodeId: string): Promise<NodeAddressEntry[]> {
  const { rows } = await pool.query<NodeAddressEntry>({
    name: 'node-addresses',
    text: `select host(address) as address, source from node_address
      where node_id = $1 and source in ('reported', 'remote')`,
    values: [nodeId],
  });
  return rows;
}

/** Replaces the addresses that people configured of a node. */
export async function configureNodeAddresses(
  sql: Knex,
  { nodeId, clusterId }: { nodeId: string; clusterId: string },
  addresses: readonly { address: string; level: number }[],
): Promise<void> {
  await sql('node_address').where({ node_id: nodeId, source: 'configured' }).delete();
  if (addresses.length === 0) return;
  const rows = addresses.map(({ address, level }) => ({
    node_id: nodeId,
    cluster_id: clusterId,
    address,
    source: 'configured',
    level,
  }));
  await sql('node_address').insert(rows);
}
