// Sites by delivery, without looking at each: nodes that run the newest revision serve everything, so only sites are
// counted of which something was published since the one most behind, failed somewhere, or is held by a node.
import type { Knex } from 'knex';
import { ownerOf } from './delivery.ts';
import { DISABLED_REF } from './entries/site.ts';
import type { ClusterSpan } from './overview-nodes.ts';

export interface SiteStates {
  live: number;
  partial: number;
  pending: number;
  disabled: number;
}

// Owners of what changed since a revision (a removed entry until nodes pass the one that closed it), failed or is held.
const NOT_CURRENT = `
  select e.owner from config_entry e where e.cluster_id = c.id and e.track = 'S' and e.from_revision > c.least
  union all
  select e.owner from config_entry e where e.cluster_id = c.id and e.track = 'S' and e.to_revision > c.least
  union all
  select unnest(c.failed)
  union all
  select e.owner from config_entry e where c.lacks <> '{}' and e.cluster_id = c.id and e.track = 'S'
    and e.to_revision is null and e.features <> '{}' and e.features && c.lacks`;

const COUNTS = `
  with site_count as (
    select cluster_id, count(*) filter (where enabled) as enabled, count(*) filter (where not enabled) as disabled
      from site group by cluster_id)
  select n.disabled::int, n.enabled::int,
      -- Each owner is looked up by itself: with a list of them the planner would read all sites.
      (case when c.least < 0 then n.enabled else (
        select count(*) from (select distinct owner from (${NOT_CURRENT}) a where owner like 'site:%') o
          cross join lateral (select from site where id = substr(o.owner, 6) and enabled limit 1) s) end)::int as "notLive",
      -- A new version of a site that nodes serve in an older one is not counted among those that nobody serves.
      (case when c.most is null or c.most < 0 then n.enabled else (
        select count(*) from config_entry e where e.cluster_id = c.id and e.from_revision > c.most and e.kind = 'site'
          and e.track = 'S' and e.to_revision is null and e.blob_hash is not null and '${DISABLED_REF}' <> all(e.refs)
          and not exists (select from config_entry o where o.cluster_id = e.cluster_id and o.resource_id = e.resource_id
            and o.kind = 'site' and o.track = 'S' and o.blob_hash is not null and o.from_revision <= c.most
            and o.to_revision > c.least and '${DISABLED_REF}' <> all(o.refs))) end)::int as "unserved",
      c.healthy
    from jsonb_to_recordset(?::jsonb) as c(id text, least bigint, most bigint, healthy boolean, failed text[],
      lacks text[])
    join site_count n on n.cluster_id = c.id`;

interface CountRow {
  disabled: number;
  enabled: number;
  notLive: number;
  unserved: number;
  healthy: boolean;
}

export async function siteStates(sql: Knex, spans: readonly ClusterSpan[]): Promise<SiteStates> {
  const { rows } = await sql.raw<{ rows: CountRow[] }>(COUNTS, [
    JSON.stringify(
      spans.map(({ clusterId, least, most, allHealthy, failed, lacks }) => ({
        id: clusterId,
        least: least ?? -1,
        most,
        healthy: allHealthy,
        failed: failed.map(ownerOf).filter((owner) => owner !== null),
        lacks,
      })),
    ),
  ]);
  const total: SiteStates = { live: 0, partial: 0, pending: 0, disabled: 0 };
  for (const { disabled, enabled, notLive, unserved, healthy } of rows) {
    const live = healthy ? enabled - notLive : 0;
    total.disabled += disabled;
    total.pending += unserved;
    total.live += live;
    total.partial += enabled - unserved - live;
  }
  return total;
}
