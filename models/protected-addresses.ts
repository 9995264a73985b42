// Addresses that bans may not touch: those of nodes, and allow lists.
import type { Knex } from 'knex';

/** A node address the range covers (of the cluster, or of any with null), else an allow-list entry it overlaps. */
export async function protectedIn(sql: Knex, cidr: string, clusterId: string | null): Promise<string | undefined> {
  const { rows } = await sql.raw<{ rows: { address: string }[] }>(
    `(select host(address) as address from node_address
       where address <<= :cidr::inet and (:cluster::text is null or cluster_id = :cluster) order by 1 limit 1)
     union all
     (select e.cidr::text from ip_list_entry e join ip_list l on l.id = e.ip_list_id
       where e.cidr && :cidr::inet and l.kind = 'allow' order by 1 limit 1)
     limit 1`,
    { cidr, cluster: clusterId },
  );
  return rows[0]?.address;
}
