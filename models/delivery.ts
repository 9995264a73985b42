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

const ACTIVE_ONLINE = `
  from node n
  join node_state s on s.node_id = n.id
  join cluster_head h on h.cluster_id = n.cluster_id
 where n.cluster_id = any(:clusters) and n.status = 'active'
   and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})`;
const REVISION = 'case when s.epoch = h.epoch then s.revision else -1 end';

/** The delivery of each site, by id. */
export async function deliveryOf(sql: Knex, sites: readonly DeliveredSite[]): Promise<Map<string, Delivery>> {
  if (sites.length === 0) return new Map();
  const bindings = {
    clusters: [...new Set(sites.map(({ clusterId }) => clusterId))] as never,
    sites: sites.map(({ id }) => id) as never,
  };
  const groups = await nodeGroups(sql, bindings);
  // Without nodes nothing has reached anybody: two reads less for consoles without a fleet.
  const [intervals, failures] =
    groups.length === 0 ? [[], []] : [await siteIntervals(sql, bindings), await siteFailures(sql, bindings)];
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

type Bindings = Record<'clusters' | 'sites', never>;

async function nodeGroups(sql: Knex, bindings: Bindings): Promise<NodeGroup[]> {
  const { rows } = await sql.raw(
    `select n.cluster_id as "clusterId", (${REVISION})::float8 as revision, s.data_plane_healthy as healthy,
       count(*)::int as nodes ${ACTIVE_ONLINE} group by 1, 2, 3`,
    { clusters: bindings.clusters },
  );
  return rows;
}

/** Versions that a node which is not hopelessly behind can run: the latest, and those ended lately. */
async function siteIntervals(sql: Knex, bindings: Bindings): Promise<Interval[]> {
  const { rows } = await sql.raw(
    `select e.resource_id as "siteId", e.from_revision::float8 as "from", e.to_revision::float8 as "to",
       '${DISABLED_REF}' = any(e.refs) as disabled
       from config_entry e
      where e.cluster_id = any(:clusters) and e.resource_id = any(:sites) and e.kind = 'site' and e.track = 'S'
        and e.blob_hash is not null
        and (e.to_revision is null or e.to_revision > (
          select min(${REVISION}) ${ACTIVE_ONLINE} and n.cluster_id = e.cluster_id))`,
    bindings,
  );
  return rows;
}

async function siteFailures(sql: Knex, bindings: Bindings): Promise<Failure[]> {
  const { rows } = await sql.raw(
    `select f.id as "siteId", (${REVISION})::float8 as revision, s.data_plane_healthy as healthy,
       coalesce(f.running, false) as running
       from node n
       join node_state s on s.node_id = n.id
       join cluster_head h on h.cluster_id = n.cluster_id
       cross join lateral jsonb_to_recordset(s.failed) as f(kind text, id text, running boolean)
      where n.cluster_id = any(:clusters) and n.status = 'active'
        and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
        and s.failed <> '[]' and f.kind = 'site' and f.id = any(:sites)`,
    bindings,
  );
  return rows;
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

function stateOf({ enabled }: DeliveredSite, total: number, serving: number, current: number): Delivery['state'] {
  if (!enabled) return 'disabled';
  if (total > 0 && current === total) return 'live';
  return serving > 0 ? 'partial' : 'pending';
}
