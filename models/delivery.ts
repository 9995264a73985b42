// How far sites have reached the nodes: a histogram of nodes by revision, laid over the intervals of revisions in which
// each site's entry was one version, less the entries nodes could not apply. Never sites times nodes.
import type { Knex } from 'knex';
import { named } from './named-statement.ts';
import { ONLINE_SECONDS } from './node-state.ts';
import { Recent } from './recent.ts';

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
  /** -1 for nodes without a configuration of this history. */
  revision: number;
  healthy: boolean;
  nodes: number;
}

/** Revisions [from, to) in which the site's entry was one version; to is null for the latest. */
export interface Interval {
  from: number;
  to: number | null;
  disabled: boolean;
}

/** Nodes that could not apply the site's entry; `running`: they serve an earlier version. */
interface Failure {
  siteId: string;
  revision: number;
  healthy: boolean;
  running: boolean;
  nodes: number;
}

/** The nodes of one cluster by what they run, at one moment. */
/** What the nodes of a cluster run: how many each revision, and what failed on them. */
export interface Situation {
  groups: NodeGroup[];
  failures: Map<string, Failure[]>;
}

// One statement, so that the nodes are read once.
const SITUATION = `
  with present as materialized (
    select case when s.epoch = h.epoch then s.revision else -1 end as revision, s.data_plane_healthy as healthy, s.failed
    from node n
    join node_state s on s.node_id = n.id
    join cluster_head h on h.cluster_id = n.cluster_id
    where n.cluster_id = $1 and n.status = 'active'
      and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
  )
  select
    (select coalesce(jsonb_agg(g), '[]') from (
       select revision, healthy, count(*) as nodes from present group by 1, 2) g) as groups,
    (select coalesce(jsonb_agg(f), '[]') from (
       select f.id as "siteId", p.revision, p.healthy, coalesce(f.running, false) as running, count(*) as nodes
       from present p cross join lateral jsonb_to_recordset(p.failed) as f(kind text, id text, running boolean)
       where p.failed <> '[]' and f.kind = 'site' group by 1, 2, 3, 4) f) as failures`;

/** Columns of an {@link Interval} of `config_entry e`. */
export const INTERVAL_COLUMNS = `e.from_revision as "from", e.to_revision as "to", '${DISABLED_REF}' = any(e.refs) as disabled`;

// Versions that some node can run: the latest, and those ended after the revision of the one most behind.
const INTERVALS = `
  select site.id, (
    select coalesce(jsonb_agg(i), '[]') from (
      select ${INTERVAL_COLUMNS} from config_entry e
       where e.cluster_id = site.cluster_id and e.resource_id = site.id and e.kind = 'site' and e.track = 'S'
         and e.blob_hash is not null and (e.to_revision is null or e.to_revision > site.behind)) i) as intervals
  from unnest($1::text[], $2::text[], $3::bigint[]) as site(cluster_id, id, behind)`;

/** How long a picture of a cluster's nodes is good enough. */
const SITUATION_MS = 1000;

const pictures = new WeakMap<object, Recent<Situation>>();

function picturesOf(sql: Knex): Recent<Situation> {
  const recent = pictures.get(sql.client) ?? new Recent<Situation>(SITUATION_MS);
  pictures.set(sql.client, recent);
  return recent;
}

/** What the nodes of the cluster run; up to a second old, and read once for all who ask meanwhile. */
export function recentSituation(sql: Knex, clusterId: string): Promise<Situation> {
  return picturesOf(sql).get(() => readSituation(sql, clusterId), clusterId);
}

/** What the nodes of the cluster run now. */
export function situationNow(sql: Knex, clusterId: string): Promise<Situation> {
  return picturesOf(sql).now(() => readSituation(sql, clusterId), clusterId);
}

/**
 * Whether nodes still have to follow. Then a picture of a second ago does not do, and it is looked at again: a page that
 * was told that the last node has the change, or the first one came, and reads at once, is not told a second time.
 */
export function isUnderWay({ totalNodes, currentNodes }: Delivery): boolean {
  return currentNodes < totalNodes || totalNodes === 0;
}

async function readSituation(sql: Knex, clusterId: string): Promise<Situation> {
  const [row] = await named<{ groups: NodeGroup[]; failures: Failure[] }>(sql, 'node-situation', SITUATION, [
    clusterId,
  ]);
  return { groups: row!.groups, failures: Map.groupBy(row!.failures, ({ siteId }) => siteId) };
}

/** The delivery of each site, by id. */
export async function deliveryOf(
  sql: Knex,
  sites: readonly DeliveredSite[],
  situationOf: (sql: Knex, clusterId: string) => Promise<Situation> = recentSituation,
): Promise<Map<string, Delivery>> {
  if (sites.length === 0) return new Map();
  const situations = new Map<string, Situation>();
  const clusters = new Set(sites.map(({ clusterId }) => clusterId));
  await Promise.all([...clusters].map(async (id) => situations.set(id, await situationOf(sql, id))));
  const rows = await named<{ id: string; intervals: Interval[] }>(sql, 'site-intervals', INTERVALS, [
    sites.map(({ clusterId }) => clusterId),
    sites.map(({ id }) => id),
    sites.map(({ clusterId }) => mostBehind(situations.get(clusterId)!) ?? NONE_BEHIND),
  ]);
  const intervals = new Map(rows.map((row) => [row.id, row.intervals]));
  return new Map(
    sites.map((site) => [site.id, delivery(site, situations.get(site.clusterId)!, intervals.get(site.id)!)]),
  );
}

/** Without nodes only the latest version matters. */
const NONE_BEHIND = '9223372036854775807';

/** The revision of the node that is most behind; null when no node has one. */
export function mostBehind({ groups }: Situation): number | null {
  const revisions = groups.flatMap(({ revision }) => (revision >= 0 ? [revision] : []));
  return revisions.length > 0 ? Math.min(...revisions) : null;
}

/** Nobody runs the version just published: what the delivery was, after a change of the site. */
export function deliveryAfterChange(before: Delivery, enabled: boolean, wasEnabled: boolean): Delivery {
  const servingNodes = enabled && !wasEnabled ? 0 : before.servingNodes;
  const state = stateOf({ enabled }, before.totalNodes, servingNodes, 0);
  return { ...before, state, servingNodes, currentNodes: 0 };
}

/** The delivery of a site with these versions: all that a node of the cluster can run. */
export function delivery(site: DeliveredSite, situation: Situation, intervals: readonly Interval[]): Delivery {
  const { groups } = situation;
  const failures = situation.failures.get(site.id) ?? [];
  const latest = intervals.find(({ to }) => to === null);
  const running = site.enabled ? intervals : intervals.filter(({ disabled }) => !disabled);
  const serves = ({ revision }: { revision: number }) =>
    running.some(({ from, to }) => from <= revision && (to === null || revision < to));
  const isCurrent = ({ revision, healthy }: { revision: number; healthy: boolean }) =>
    healthy && latest !== undefined && revision >= latest.from;
  const sum = (some: readonly { nodes: number }[]) => some.reduce((total, { nodes }) => total + nodes, 0);
  const totalNodes = sum(groups);
  const servingNodes =
    sum(groups.filter(serves)) - sum(failures.filter((failure) => !failure.running && serves(failure)));
  const currentNodes = sum(groups.filter(isCurrent)) - sum(failures.filter(isCurrent));
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
