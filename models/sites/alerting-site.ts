// Sites whose visitors get errors, by what nodes reported and counted.
import type { Knex } from 'knex';

/** Enabled sites of which one node that was heard of within so many seconds reaches no origin. */
export async function sitesWithoutOrigin(sql: Knex, seconds: number, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `select distinct s.id
       from node_state t join node n on n.id = t.node_id and n.status = 'active'
       cross join lateral jsonb_each(t.origin_health -> 'sites') o
       join site s on s.id = o.key and s.cluster_id = n.cluster_id and s.enabled
      where t.last_seen_at > now() - make_interval(secs => :seconds) and t.origin_health -> 'sites' <> '{}'
        and jsonb_array_length(s.origins) > 0 and jsonb_array_length(s.origins) <= (
          select count(distinct e ->> 'originId') from jsonb_array_elements(o.value) e where not (e ->> 'healthy')::boolean)
      order by s.id limit :limit`,
    { seconds, limit },
  );
  return rows.map(({ id }) => id);
}

export interface ErrorShare {
  minutes: number;
  /** 0 to 1. */
  ratio: number;
  requests: number;
}

/**
 * Enabled sites where so many of the responses of the last minutes were 5xx, in percent. Nodes tell of a minute within two, so the
 * window ends two minutes ago. Costs follow the sites with 5xx: their rows
 * alone are in an index.
 */
export async function sitesWithErrors(
  sql: Knex,
  { minutes, ratio, requests }: ErrorShare,
  limit: number,
): Promise<{ id: string; percent: number }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; percent: number }[] }>(
    `with span as (
       select date_trunc('minute', now()) - make_interval(mins => :minutes + 1) as begins,
           date_trunc('minute', now()) - interval '1 minute' as ends
     ), failing as materialized (
       select u.site_id, sum(u.failed) as failed from usage_minute u, span
        where u.minute >= span.begins and u.minute < span.ends and u.site_id <> '' and u.failed > 0
        group by 1
     )
     select s.id, floor(100 * f.failed / total.requests)::int as percent
       from failing f join site s on s.id = f.site_id and s.enabled
       cross join lateral (select sum(u.requests) as requests from usage_minute u, span
         where u.site_id = f.site_id and u.minute >= span.begins and u.minute < span.ends) total
      where total.requests >= :requests and f.failed >= :ratio::numeric * total.requests
      order by s.id limit :limit`,
    { minutes, ratio, requests, limit },
  );
  return rows;
}
