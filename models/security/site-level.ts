// How high a site's challenges are at the nodes, and how much is asked of it: what nodes reported lately.
import type { Knex } from 'knex';
import type { SiteLevelFilter } from '../../contract/resources/sites.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

// A node that is gone or switched off has no say.
const SPEAKING = `join node n on n.id = x.node_id and n.status = 'active'
  join node_state t on t.node_id = n.id and t.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds'`;

/** Sites above normal, which are few, with the number of their highest level. */
export const ABOVE = `select x.site_id as id, max(x.level) as level from site_security x ${SPEAKING} group by x.site_id`;

/** Clusters of which a node has told its levels: what it does not name is normal. */
const TOLD = `select n.cluster_id from node_security x ${SPEAKING}`;

/** Condition over `site`, with {@link ABOVE} as `above`. */
export function levelCondition(level: SiteLevelFilter): string {
  if (level === 'above_normal') return 'id in (select id from above)';
  if (level === 'normal') return `cluster_id in (${TOLD}) and id not in (select id from above)`;
  return `id in (select id from above where level = ${LEVELS.indexOf(level)})`;
}

/** What nodes told of a site; null: nothing. */
export interface SiteFigures {
  id: string;
  /** Number of the highest level at a connected node. */
  level: number | null;
  /** Of the last minute of the five before this one that is known. */
  requestsPerSecond: number | null;
}

/** The figures of these sites, by id; a look-up for each of them. */
export async function siteFigures(
  sql: Knex,
  sites: readonly { id: string; clusterId: string }[],
): Promise<Map<string, SiteFigures>> {
  if (sites.length === 0) return new Map();
  const { rows } = await sql.raw<{ rows: SiteFigures[] }>(
    `with told as materialized (${TOLD} where n.cluster_id = any(:clusterIds::text[]) group by n.cluster_id)
     select s.id,
       case when s.cluster_id in (select cluster_id from told) then coalesce(
         (select max(x.level) from site_security x ${SPEAKING} where x.site_id = s.id), 0) end as level,
       (select m.requests / 60.0 from site_minute m where m.site_id = s.id
          and m.minute >= date_trunc('minute', now()) - interval '5 minutes' and m.minute < date_trunc('minute', now())
         order by m.minute desc limit 1)::float8 as "requestsPerSecond"
       from unnest(:ids::text[], :clusters::text[]) as s(id, cluster_id)`,
    {
      ids: sites.map(({ id }) => id),
      clusters: sites.map(({ clusterId }) => clusterId),
      clusterIds: [...new Set(sites.map(({ clusterId }) => clusterId))],
    } as never,
  );
  return new Map(rows.map((row) => [row.id, row]));
}
