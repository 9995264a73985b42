// Nodes that do not count everything.
import type { Knex } from 'knex';

/** How many active nodes lack a capability: of the cluster of a site, or of all with null. */
export async function nodesWithout(sql: Knex, capability: string, siteId: string | null): Promise<number> {
  const { rows } = await sql.raw<{ rows: { count: number }[] }>(
    `select count(*)::int as count from node n join node_state s on s.node_id = n.id
      where n.status = 'active' and not (:capability = any(s.features))
        and (:siteId::text is null or n.cluster_id = (select cluster_id from site where id = :siteId))`,
    { capability, siteId } as never,
  );
  return rows[0]!.count;
}
