// Sites by delivery, without looking at each: nodes that run the newest revision serve everything, so only sites are
// counted of which something was published since the one most behind, failed somewhere, or is held by a node.
import type { Knex } from 'knex';
import { ownerOf } from './delivery.ts';
import { DISABLED_REF } from './entries/site.ts';
import type { ClusterSpan } from './overview-nodes.ts';

/** Sites of a cluster. */
export interface SiteCount {
  clusterId: string;
  enabled: number;
  disabled: number;
}

/** Enabled sites of a cluster that not every node runs in the latest version, and those that none serves; null: all. */
export interface SitesBehind {
  clusterId: string;
  notLive: number | null;
  unserved: number | null;
}

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

const BEHIND = `
  select c.id as "clusterId",
      -- Each owner is looked up by itself: with a list of them the planner would read all sites.
      case when c.healthy and c.least >= 0 then (
        select count(*)::int from (select distinct owner from (${NOT_CURRENT}) a where owner like 'site:%') o
          cross join lateral (select from site where id = substr(o.owner, 6) and enabled limit 1) s) end as "notLive",
      -- A new version of a site that nodes serve in an older one is not counted among those that nobody serves.
      case when c.most >= 0 then (
        select count(*)::int from config_entry e where e.cluster_id = c.id and e.from_revision > c.most and e.kind = 'site'
          and e.track = 'S' and e.to_revision is null and e.blob_hash is not null and '${DISABLED_REF}' <> all(e.refs)
          and not exists (select from config_entry o where o.cluster_id = e.cluster_id and o.resource_id = e.resource_id
            and o.kind = 'site' and o.track = 'S' and o.blob_hash is not null and o.from_revision <= c.most
            and o.to_revision > c.least and '${DISABLED_REF}' <> all(o.refs))) end as "unserved"
    from jsonb_to_recordset(?::jsonb) as c(id text, least bigint, most bigint, healthy boolean, failed text[],
      lacks text[])`;

/** What nodes do not run yet; costs follow what was published lately, not the number of sites. */
export async function sitesBehind(sql: Knex, spans: readonly ClusterSpan[]): Promise<SitesBehind[]> {
  const { rows } = await sql.raw<{ rows: SitesBehind[] }>(BEHIND, [
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
  return rows;
}

/** Sites of every cluster, or of one: two counts each, for which its index is enough. */
export async function siteCounts(sql: Knex, clusterId: string | null = null): Promise<SiteCount[]> {
  const { rows } = await sql.raw<{ rows: SiteCount[] }>(
    `select c.id as "clusterId", (select count(*)::int from site where cluster_id = c.id and enabled) as enabled,
         (select count(*)::int from site where cluster_id = c.id and not enabled) as disabled
       from cluster c where :clusterId::text is null or c.id = :clusterId`,
    { clusterId } as never,
  );
  return rows;
}

/** Both may be of different moments: no state is less than none. */
export function siteStates(counts: readonly SiteCount[], behind: readonly SitesBehind[]): SiteStates {
  const byCluster = new Map(behind.map((one) => [one.clusterId, one]));
  const total: SiteStates = { live: 0, partial: 0, pending: 0, disabled: 0 };
  for (const { clusterId, enabled, disabled } of counts) {
    const of = byCluster.get(clusterId);
    const live = Math.max(0, enabled - (of?.notLive ?? enabled));
    const pending = Math.min(enabled - live, of?.unserved ?? enabled);
    total.disabled += disabled;
    total.pending += pending;
    total.live += live;
    total.partial += enabled - pending - live;
  }
  return total;
}
