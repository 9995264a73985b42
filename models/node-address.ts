// Addresses of nodes, which bans may not cover. Whoever changes the set of a node holds the guard, so that a ban
// created at the same moment either sees the address or comes first.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { holdBanGuard } from './ban-guard.ts';

export interface NodeAddressEntry {
  address: string;
  source: 'reported' | 'remote';
}

/** Replaces the reported and remote addresses of a node; configured ones stay. A node that is gone gets none. */
export async function replaceNodeAddresses(
  sql: Knex.Transaction,
  node: { id: string; clusterId: string },
  entries: readonly NodeAddressEntry[],
): Promise<void> {
  await holdBanGuard(sql);
  await sql.raw(`delete from node_address where node_id = ? and source in ('reported', 'remote')`, [node.id]);
  await sql.raw(
    `insert into node_address (node_id, cluster_id, address, source)
     select n.id, n.cluster_id, e.address::inet, e.source
       from node n, jsonb_to_recordset(?::jsonb) as e(address text, source text)
      where n.id = ?
     on conflict do nothing`,
    [JSON.stringify(entries), node.id],
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
