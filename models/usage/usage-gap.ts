// Times of which usage is missing for good, with the node that missed them.
import type { Knex } from 'knex';
import type { UsageSpan } from './usage-view.ts';

export interface UsageGap {
  id: string;
  nodeId: string;
  /** null: the node is gone. */
  nodeName: string | null;
  from: Date;
  to: Date;
  reason: 'told' | 'skipped';
  recordedAt: Date;
}

/**
 * Gaps that touch the range, the latest first, and how many there are. For a site those of nodes of its cluster, and of
 * nodes that are gone.
 */
export async function usageGaps(
  sql: Knex,
  { from, to }: UsageSpan,
  siteId: string | null,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: UsageGap[]; total: number }> {
  const ofSite = `(:siteId::text is null or n.id is null or n.cluster_id = (
    select cluster_id from site where id = :siteId union all select cluster_id from deleted_site where site_id = :siteId limit 1))`;
  const { rows } = await sql.raw<{ rows: (UsageGap & { total: number })[] }>(
    `with touching as materialized (
       select g.id, g.node_id, n.name, g.starts_at, g.ends_at, g.reason, g.recorded_at
         from usage_gap g left join node n on n.id = g.node_id
        where (g.ends_at > :from or g.starts_at >= :from) and g.starts_at < :to and ${ofSite}),
     page as (select * from touching order by starts_at desc, id desc limit :limit offset :offset)
     select t.total, p.id::text, p.node_id as "nodeId", p.name as "nodeName", p.starts_at as "from", p.ends_at as "to",
         p.reason, p.recorded_at as "recordedAt"
       from (select count(*)::int as total from touching) t left join page p on true
      order by p.starts_at desc, p.id desc`,
    { from: new Date(from), to: new Date(to), siteId, limit, offset } as never,
  );
  const items = rows.filter(({ id }) => id !== null).map(({ total: _, ...gap }) => gap);
  return { items, total: rows[0]?.total ?? 0 };
}
