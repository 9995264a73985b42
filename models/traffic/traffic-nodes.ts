// Nodes that do not count everything.
import type { Knex } from 'knex';

/** How many active nodes lack a capability: of a cluster, of the cluster of a site, or of all. */
export async function nodesWithout(
  sql: Knex,
  capability: string,
  { kind, id }: { kind: 'all' | 'cluster' | 'site'; id: string },
): Promise<number> {
  const { rows } = await sql.raw<{ rows: { count: number }[] }>(
    `select count(*)::int as count from node n join node_state s on s.node_id = n.id
      where n.status = 'active' and not (:capability = any(s.features))
        and case :kind when 'all' then true when 'cluster' then n.cluster_id = :id
          else n.cluster_id = (select cluster_id from site where id = :id) end`,
    { capability, kind, id } as never,
  );
  return rows[0]!.count;
}
