// Addresses that bans may not touch: those of nodes, and allow lists.
import type { Knex } from 'knex';

/** A node address the range covers (of the cluster, or of any with null), else an allow-list entry it overlaps. */
export async function protectedIn(sql: Knex, cidr: string, clusterId: string | null): Promise<string | null> {
  const { rows } = await sql.raw('select ban_protected(cast(? as cidr), ?) as address', [cidr, clusterId]);
  return rows[0].address;
}
