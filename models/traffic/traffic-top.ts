// Sites and nodes by their traffic.
import type { Knex } from 'knex';
import { usageParts } from '../usage/usage-parts.ts';
import { type Amount, LEVELS, type LevelSeconds } from './traffic-columns.ts';

export interface TopAsked {
  kind: 'site' | 'node';
  /** Milliseconds, multiples of five minutes. */
  from: number;
  to: number;
  by: Amount;
  limit: number;
  /** Only this one. */
  id?: string;
  /** Only those that are of this cluster now. */
  clusterId?: string;
}

export interface TopRow {
  id: string;
  name: string;
  clusterId: string | null;
  clusterName: string | null;
  requests: number;
  bytesSent: number;
  cacheHits: number;
  cacheMisses: number;
}

const READ = ['requests', 'bytes_sent', 'cache_hits', 'cache_misses'] as const;
const timeOf = (ms: number) => `timestamptz '${new Date(ms).toISOString()}'`;

const NAMES = {
  site: `coalesce(s.name, d.name, '') as name, s.cluster_id as "clusterId"`,
  node: `coalesce(s.name, '') as name, s.cluster_id as "clusterId"`,
};
const JOINS = {
  site: 'left join site s on s.id = p.id left join deleted_site d on d.site_id = p.id',
  node: 'left join node s on s.id = p.id',
};

/** Those with the most, and how many have any. Hours that are not kept any more count as nothing. */
export async function topTraffic(
  sql: Knex,
  { kind, from, to, by, limit, id, clusterId }: TopAsked,
): Promise<{ items: TopRow[]; total: number }> {
  const columns = [...new Set<Amount>([...READ, by])];
  const parts = usageParts(from, to).map(
    (part) => `select id, ${columns.join(', ')} from ${LEVELS[part.seconds as LevelSeconds]}
      where kind = '${kind}' and starts_at >= ${timeOf(part.from)} and starts_at < ${timeOf(part.to)}
        and (:id::text is null or id = :id)
        and (:clusterId::text is null or id in (select o.id from ${kind} o where o.cluster_id = :clusterId))`,
  );
  if (parts.length === 0) return { items: [], total: 0 };
  const { rows } = await sql.raw<{ rows: (TopRow & { total: number })[] }>(
    `with summed as materialized (
       select id, ${columns.map((amount) => `sum(${amount}) as ${amount}`).join(', ')}
         from (${parts.join(' union all ')}) u group by id having sum(${by}) > 0),
     page as (select * from summed order by ${by} desc, id limit :limit)
     select t.total, p.id, ${NAMES[kind]}, c.name as "clusterName", p.requests::float8, p.bytes_sent::float8 as "bytesSent",
         p.cache_hits::float8 as "cacheHits", p.cache_misses::float8 as "cacheMisses"
       from (select count(*)::int as total from summed) t left join page p on true
       ${JOINS[kind]} left join cluster c on c.id = s.cluster_id
      order by p.${by} desc, p.id`,
    { id: id ?? null, clusterId: clusterId ?? null, limit } as never,
  );
  const items = rows.filter(({ id }) => id !== null).map(({ total: _, ...row }) => row);
  return { items, total: rows[0]?.total ?? 0 };
}

/** Up to when sites are summed, in milliseconds. */
export async function summedUntil(sql: Knex): Promise<number> {
  const { rows } = await sql.raw<{ rows: { until: Date }[] }>('select summed_until as until from traffic_state');
  return rows[0]!.until.getTime();
}
