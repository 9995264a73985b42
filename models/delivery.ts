// How far sites have reached the nodes: a histogram of nodes by revision, laid over the intervals of revisions in which
// each site's entry was one version, less the entries nodes could not apply. Never sites times nodes.
import type { Knex } from 'knex';
import { ONLINE_SECONDS } from './node-state.ts';

/** Among the references of a site's entry: the entry is that of a disabled site, which nodes do not serve. */
export const DISABLED_REF = 'state:disabled';

export interface DeliveredSite {
  id: string;
  clusterId: string;
  enabled: boolean;
}

export interface Delivery {
  state: 'pending' | 'partial' | 'live' | 'disabled';
  totalNodes: number;
  servingNodes: number;
  currentNodes: number;
  canary: { endsAt: string | null; autoPromote: boolean } | null;
}

/** Online active nodes of a cluster that run one revision. */
interface NodeGroup {
  clusterId: string;
  /** -1 for nodes without a configuration of this history. */
  revision: number;
  healthy: boolean;
  nodes: number;
}

/** Revisions [from, to) in which the site's entry was one version; to is null for the latest. */
interface Interval {
  siteId: string;
  from: number;
  to: number | null;
  disabled: boolean;
}

/** A node that could not apply the site's entry; `running`: it serves an earlier version. */
interface Failure {
  siteId: string;
  revision: number;
  healthy: boolean;
  running: boolean;
}

// One statement: the nodes are read once, and groups, intervals and failures are of one moment.
const SITUATION = `
  with present as materialized (
    select n.cluster_id, case when s.epoch = h.epoch then s.revision else -1 end as revision,
      s.data_plane_healthy as healthy, s.failed
    from node n
    join node_state s on s.node_id = n.id
    join cluster_head h on h.cluster_id = n.cluster_id
    where n.cluster_id = any(:clusters) and n.status = 'active'
      and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
  ), behind as materialized (
    -- Once per cluster: asked for each ended version, it would read all nodes for each (2 s with 1,000 and 20,000).
    select cluster_id, min(revision) as revision from present where revision >= 0 group by cluster_id
  )
  select
    (select coalesce(jsonb_agg(g), '[]') from (
       select cluster_id as "clusterId", revision, healthy, count(*) as nodes from present group by 1, 2, 3) g) as groups,
    -- Versions that some node can run: the latest, and those ended after the revision of the one most behind.
    (select coalesce(jsonb_agg(i), '[]') from (
       select e.resource_id as "siteId", e.from_revision as "from", e.to_revision as "to",
         '${DISABLED_REF}' = any(e.refs) as disabled
       from config_entry e left join behind on behind.cluster_id = e.cluster_id
       where e.cluster_id = any(:clusters) and e.resource_id = any(:sites) and e.kind = 'site' and e.track = 'S'
         and e.blob_hash is not null
         and (e.to_revision is null or e.to_revision > behind.revision)) i) as intervals,
    (select coalesce(jsonb_agg(f), '[]') from (
       select f.id as "siteId", p.revision, p.healthy, coalesce(f.running, false) as running
       from present p cross join lateral jsonb_to_recordset(p.failed) as f(kind text, id text, running boolean)
       where p.failed <> '[]' and f.kind = 'site' and f.id = any(:sites)) f) as failures`;

interface Situation {
  groups: NodeGroup[];
  intervals: Interval[];
  failures: Failure[];
}

/** The delivery of each site, by id. */
export async function deliveryOf(sql: Knex, sites: readonly DeliveredSite[]): Promise<Map<string, Delivery>> {
  if (sites.length === 0) return new Map();
  const { rows } = await sql.raw<{ rows: Situation[] }>(SITUATION, {
    clusters: [...new Set(sites.map(({ clusterId }) => clusterId))] as never,
    sites: sites.map(({ id }) => id) as never,
  });
  const { groups, intervals, failures } = rows[0]!;
  return new Map(
    sites.map((site) => [
      site.id,
      delivery(
        site,
        groups.filter(({ clusterId }) => clusterId === site.clusterId),
        intervals.filter(({ siteId }) => siteId === site.id),
        failures.filter(({ siteId }) => siteId === site.id),
      ),
    ]),
  );
}

/** Nobody runs the version just published: what the delivery was, after a change of the site. */
export function deliveryAfterChange(before: Delivery, enabled: boolean, wasEnabled: boolean): Delivery {
  const servingNodes = enabled && !wasEnabled ? 0 : before.servingNodes;
  const state = stateOf({ enabled }, before.totalNodes, servingNodes, 0);
  return { ...before, state, servingNodes, currentNodes: 0 };
}

function delivery(
  site: DeliveredSite,
  groups: readonly NodeGroup[],
  intervals: readonly Interval[],
  failures: readonly Failure[],
): Delivery {
  const latest = intervals.find(({ to }) => to === null);
  const running = site.enabled ? intervals : intervals.filter(({ disabled }) => !disabled);
  const serves = (revision: number) =>
    running.some(({ from, to }) => from <= revision && (to === null || revision < to));
  const isCurrent = ({ revision, healthy }: { revision: number; healthy: boolean }) =>
    healthy && latest !== undefined && revision >= latest.from;
  const sum = (some: readonly NodeGroup[]) => some.reduce((total, { nodes }) => total + nodes, 0);
  const notServing = failures.filter((failure) => !failure.running && serves(failure.revision)).length;
  const totalNodes = sum(groups);
  const servingNodes = sum(groups.filter(({ revision }) => serves(revision))) - notServing;
  const currentNodes = sum(groups.filter(isCurrent)) - failures.filter(isCurrent).length;
  return {
    state: stateOf(site, totalNodes, servingNodes, currentNodes),
    totalNodes,
    servingNodes,
    currentNodes,
    canary: null,
  };
}

function stateOf(
  { enabled }: Pick<DeliveredSite, 'enabled'>,
  total: number,
  serving: number,
  current: number,
): Delivery['state'] {
  if (!enabled) return 'disabled';
  if (total > 0 && current === total) return 'live';
  return serving > 0 ? 'partial' : 'pending';
}
