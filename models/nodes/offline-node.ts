// Nodes that visitors may not reach: silent for a time, or with a data plane that does not work.
import type { Knex } from 'knex';

/** Ids of active nodes that were connected before, at most `limit`. */
export async function offlineNodes(sql: Knex, seconds: number, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `select n.id from node n join node_state s on s.node_id = n.id
      where n.status = 'active' and s.last_seen_at is not null
        and (s.last_seen_at < now() - make_interval(secs => :seconds) or not s.data_plane_healthy)
      order by n.id limit :limit`,
    { seconds, limit },
  );
  return rows.map(({ id }) => id);
}
