// Sites by delivery, without looking at each: nodes that run the newest revision serve everything, so only sites are
// counted of which something was published since the one most behind, failed somewhere, or needs a capability that a node lacks.
import type { Knex } from 'knex';
import { MAX_NAMED } from '../../contract/resources/overview.ts';
import type { SiteState } from '../../contract/resources/sites.ts';
import { DISABLED_REF } from '../sites/site.entry.ts';
import { ownerOf, UNSERVED_AFTER_MS } from './delivery.ts';
import type { ClusterSpan } from './overview-nodes.ts';

const ON_ITS_WAY = `interval '${UNSERVED_AFTER_MS} milliseconds'`;

/** Sites of a cluster. */
export interface SiteCount {
  clusterId: string;
  enabled: number;
  disabled: number;
}

/** Enabled sites of a cluster that are not live; null: all of them. */
export interface SitesBehind {
  clusterId: string;
  /** Those that not every node runs in the latest version. */
  notLive: number | null;
  /** Those that no connected node serves. */
  notServed: number | null;
  /** Of those, the ones that are just on their way ({@link UNSERVED_AFTER_MS}). */
  pending: number;
  /** The newest of the others. */
  named: { id: string; name: string }[];
}

/** Enabled sites by how far they are delivered, each once: `pending` are on their way. */
export interface SiteStates {
  live: number;
  partial: number;
  pending: number;
  unserved: number;
  unknown: number;
  disabled: number;
}

// Owners of what changed since a revision (a removed entry until nodes pass the one that closed it), is tried by a canary,
// failed, or needs a capability that nodes lack.
const NOT_CURRENT = `
  select e.owner from config_entry e where e.cluster_id = c.id and e.track = 'S' and e.from_revision > c.least
  union all
  select e.owner from config_entry e where e.cluster_id = c.id and e.track = 'S' and e.to_revision > c.least
  union all
  select e.owner from config_entry e where e.cluster_id = c.id and e.track = 'C' and e.to_revision is null
  union all
  select unnest(c.failed)
  union all
  select e.owner from config_entry e where c.lacks <> '{}' and e.cluster_id = c.id and e.track = 'S'
    and e.to_revision is null and e.features <> '{}' and e.features && c.lacks`;

// The live entries of enabled sites that nodes may not serve: published since the newest revision that one runs, failed
// somewhere, or need a capability that a node lacks.
const LIVE_SITE = `e.cluster_id = c.id and e.kind = 'site' and e.track = 'S' and e.to_revision is null
  and e.blob_hash is not null and '${DISABLED_REF}' <> all(e.refs)`;
const DOUBTFUL = `
  select e.resource_id as id, e.features from config_entry e where ${LIVE_SITE} and e.from_revision > c.most
  union
  select e.resource_id, e.features from unnest(c.down) d(id) join config_entry e on e.resource_id = d.id and ${LIVE_SITE}
  union
  select e.resource_id, e.features from config_entry e
   where c.lacks <> '{}' and ${LIVE_SITE} and e.features <> '{}' and e.features && c.lacks`;

// Whether one group of nodes serves the site `d`: the version of its revision, or the one before it when they lack a
// capability for that.
const VERSION = `from config_entry v where v.cluster_id = c.id and v.resource_id = d.id and v.kind = 'site' and v.track = 'S'
  and v.blob_hash is not null`;
const SERVED = `
  exists (select from jsonb_to_recordset(c.groups) as g(revision bigint, lacks text[], down text[])
    cross join lateral (select v.from_revision, v.to_revision, v.refs ${VERSION} and v.from_revision <= g.revision
      order by v.from_revision desc limit 1) a
   where d.id <> all(g.down) and (a.to_revision is null or a.to_revision > g.revision) and '${DISABLED_REF}' <> all(a.refs)
     and coalesce((select '${DISABLED_REF}' <> all(v.refs) ${VERSION} and v.from_revision <= a.from_revision
       and not v.features && g.lacks order by v.from_revision desc limit 1), false))`;

/** Spans ({@link spansJson}) as rows `c`. */
const spansFrom = (
  binding: string,
) => `jsonb_to_recordset(${binding}::jsonb) as c(id text, silent int, least bigint, most bigint, healthy boolean, failed text[],
  lacks text[], down text[], groups jsonb)`;

/** Sites that are not live, and those that nobody serves, of each cluster `c` with a node that has a configuration. */
const NOT_LIVE_IDS = `
  -- Each owner is looked up by itself: with a list of them the planner would read all sites.
  select s.id from (select distinct owner from (${NOT_CURRENT}) a where owner like 'site:%') o
    cross join lateral (select id from site where id = substr(o.owner, 6) and enabled limit 1) s`;
const PENDING_IDS = `
  select s.id, s.name, d.features && c.lacks or d.id = any(c.down) or s.updated_at < now() - ${ON_ITS_WAY} as unserved
    from (${DOUBTFUL}) d
    cross join lateral (select id, name, updated_at from site where id = d.id and enabled limit 1) s
   where not ${SERVED}`;
// Where nodes have no configuration yet: all sites, of which the latest are on their way.
const RECENT = `c.most = -1 and s.updated_at >= now() - ${ON_ITS_WAY}`;
const OF_CLUSTER = 'select s.id, s.name from site s where s.cluster_id = c.id and s.enabled';
const NEWEST_IDS = `${OF_CLUSTER} and not (${RECENT}) order by s.id desc limit ${MAX_NAMED}`;

const named = (from: string) => `(select jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name)) from (${from}) n)`;

const BEHIND = `
  select c.id as "clusterId",
      case when c.healthy and c.least >= 0 then (select count(*)::int from (${NOT_LIVE_IDS}) n) end as "notLive",
      p."notServed",
      case when c.most >= 0 then p.pending else (select count(*)::int from (${OF_CLUSTER} and ${RECENT}) r) end as pending,
      coalesce(case when c.most >= 0 then p.named else ${named(NEWEST_IDS)} end, '[]') as named
    from ${spansFrom('?')}
    cross join lateral (
      select case when c.most >= 0 then count(*)::int end as "notServed",
          (count(*) filter (where not u.unserved))::int as pending,
          jsonb_path_query_array(jsonb_agg(jsonb_build_object('id', u.id, 'name', u.name) order by u.id desc)
            filter (where u.unserved), '$[0 to ${MAX_NAMED - 1}]') as named
        from (${PENDING_IDS}) u where c.most >= 0) p`;

/** What nodes do not run yet; costs follow what was published lately, failed or lacks capabilities, not the number of sites. */
export async function sitesBehind(sql: Knex, spans: readonly ClusterSpan[]): Promise<SitesBehind[]> {
  const { rows } = await sql.raw<{ rows: SitesBehind[] }>(BEHIND, [spansJson(spans)]);
  return rows;
}

/** The spans as {@link spansFrom} reads them. */
export function spansJson(spans: readonly ClusterSpan[]): string {
  return JSON.stringify(
    spans.map(({ clusterId, silent, least, most, allHealthy, failed, lacks, groups }) => ({
      id: clusterId,
      silent,
      least: least ?? -1,
      most,
      healthy: allHealthy,
      failed: failed.map(ownerOf).filter((owner) => owner !== null),
      lacks,
      down: [...new Set(groups.flatMap(({ down }) => down))],
      groups,
    })),
  );
}

const ENABLED = 'select s.id from c join site s on s.cluster_id = c.id and s.enabled';
const IDS: Readonly<Record<SiteState, string>> = {
  unserved: `${ENABLED} where c.most is null and c.silent = 0 or c.most = -1 and not (${RECENT})
    union all select id from not_served where unserved`,
  unknown: `${ENABLED} where c.most is null and c.silent > 0`,
  pending: `${ENABLED} where ${RECENT} union all select id from not_served where not unserved`,
  partial: `${ENABLED} where c.most >= 0 and not (c.healthy and c.least >= 0)
      and not exists (select from not_served n where n.id = s.id)
    union all select id from not_live l where not exists (select from not_served n where n.id = l.id)`,
  live: `${ENABLED} where c.healthy and c.least >= 0 and not exists (select from not_live l where l.id = s.id)`,
  disabled: 'select s.id from c join site s on s.cluster_id = c.id and not s.enabled',
};

/**
 * Common table expressions, the last of which (`in_state`) has the ids of the sites that are in the state, as they are
 * counted here; the spans, by {@link spansJson}, are bound as `spans`. Only what the clusters' nodes do not run is looked
 * at one by one.
 */
export function inState(state: SiteState): string {
  return `c as materialized (select * from ${spansFrom(':spans')}),
    not_live as materialized (
      select n.id from c cross join lateral (${NOT_LIVE_IDS}) n where c.healthy and c.least >= 0),
    not_served as materialized (
      select u.id, u.unserved from c cross join lateral (${PENDING_IDS}) u where c.most >= 0),
    in_state as materialized (${IDS[state]})`;
}

/** Sites of every cluster, or of some: two counts each, for which its index is enough. */
export async function siteCounts(sql: Knex, clusterIds: readonly string[] | null = null): Promise<SiteCount[]> {
  const { rows } = await sql.raw<{ rows: SiteCount[] }>(
    `select c.id as "clusterId", (select count(*)::int from site where cluster_id = c.id and enabled) as enabled,
         (select count(*)::int from site where cluster_id = c.id and not enabled) as disabled
       from cluster c where :clusterIds::text[] is null or c.id = any(:clusterIds)`,
    { clusterIds } as never,
  );
  return rows;
}

/** Whether all nodes of the cluster are silent, so that nothing is known of its sites. */
export function isSilent({ most, silent }: ClusterSpan): boolean {
  return most === null && silent > 0;
}

/** Sites of all clusters by state. What is counted may be of different moments: no state is less than none. */
export function siteStates(
  counts: readonly SiteCount[],
  behind: readonly SitesBehind[],
  spans: readonly ClusterSpan[],
): SiteStates {
  const byCluster = new Map(behind.map((one) => [one.clusterId, one]));
  const silent = new Set(spans.filter(isSilent).map(({ clusterId }) => clusterId));
  const total: SiteStates = { live: 0, partial: 0, pending: 0, unserved: 0, unknown: 0, disabled: 0 };
  for (const { clusterId, enabled, disabled } of counts) {
    const of = byCluster.get(clusterId);
    const live = Math.max(0, enabled - (of?.notLive ?? enabled));
    const notServed = Math.min(enabled - live, of?.notServed ?? enabled);
    const pending = Math.min(notServed, of?.pending ?? 0);
    total.disabled += disabled;
    if (silent.has(clusterId)) {
      total.unknown += enabled;
      continue;
    }
    total.unserved += notServed - pending;
    total.pending += pending;
    total.live += live;
    total.partial += enabled - notServed - live;
  }
  return total;
}
