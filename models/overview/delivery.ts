// How far sites have reached the nodes: a histogram of nodes by what they run, laid over the revisions in which each
// entry that belongs to a site was one version. Never sites times nodes.
//
// A node is current when it has passed the last change of every entry of the site (one that was removed until it passed
// the revision that closed it), and none of them failed there or needs a capability that the node lacks.
import type { Knex } from 'knex';
import { findKind } from '../config/entry-kinds.ts';
import { siteOwner } from '../config/entry-owner.ts';
import { named } from '../db/named-statement.ts';
import { Recent } from '../db/recent.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import { DISABLED_REF } from '../sites/site.entry.ts';

export interface DeliveredSite {
  id: string;
  clusterId: string;
  enabled: boolean;
  updatedAt: Date;
}

export interface Delivery {
  state: 'pending' | 'partial' | 'live' | 'disabled';
  totalNodes: number;
  servingNodes: number;
  currentNodes: number;
  blocked: Blocked[];
  /** Nobody serves the enabled site, and it is not just on its way. */
  unserved: boolean;
  /** Nodes that could tell whether they serve the enabled site are silent. */
  unknown: boolean;
  canary: { endsAt: string | null; autoPromote: boolean } | null;
}

/** Why nodes do not run the latest version of one of the site's entries. */
export interface Blocked {
  kind: string;
  reason: 'failed' | 'lacking';
  /** Capabilities that the nodes lack. */
  capabilities: string[];
  /** What the nodes said; empty where a capability is lacking. */
  message: string;
  count: number;
  /** The first by name. */
  nodes: NamedNode[];
}

interface NamedNode {
  id: string;
  name: string;
}

/** A site that nobody serves is on its way for this long after a change of it. */
export const UNSERVED_AFTER_MS = 10_000;
/** Reasons listed at most; the same in the contract. */
const MAX_BLOCKED = 20;
const MAX_NAMED = 5;

/** Online active nodes of a cluster in the same state. */
export interface NodeGroup {
  track: Track;
  /** -1 for nodes without a configuration of this history. */
  revision: number;
  healthy: boolean;
  /** Capabilities that live entries of the cluster need and the nodes do not report. */
  lacks: string[];
  nodes: number;
  /** The first by name, where something is missing or failed. */
  named: NamedNode[];
  /** What failed, by its owner. */
  failed: Map<string, Failure[]>;
}

/** What everybody runs, and what a canary has over it. */
type Track = 'S' | 'C';

/** Revisions [from, to) in which one entry of the site was one version; to is null for the latest. */
export interface Interval {
  track: Track;
  kind: string;
  id: string;
  /** The canary does not have the entry. */
  removed: boolean;
  from: number;
  to: number | null;
  disabled: boolean;
  features: string[];
}

/** An entry nodes could not apply; `running`: they serve an earlier version. */
interface Failure {
  kind: string;
  id: string;
  running: boolean;
  reason: string;
}

/** The nodes of one cluster by what they run, at one moment. */
export interface Situation {
  groups: NodeGroup[];
  /** Active nodes that were connected before and are not now: they may still serve what they had. */
  silentNodes: number;
  /** The canary that runs. */
  canary: Delivery['canary'];
}

const ONLINE_SINCE = `now() - make_interval(secs => ${ONLINE_SECONDS})`;

/** The groups of the nodes of a cluster, and in a row of its own how many are silent. In one statement, so that the nodes are read once. Parameter: SQL of the cluster. */
const groupsSql = (cluster: string) => `
  with need as materialized (
    select t.track, array(select feature from config_feature where cluster_id = ${cluster} and track in ('S', t.track)
        group by feature having sum(count) > 0) as features
      from (values ('S'), ('C')) t(track)
  ), present as materialized (
    select n.id, n.name, case when t.epoch = h.epoch then t.revision else -1 end as revision, need.track,
      t.data_plane_healthy as healthy, t.failed,
      case when t.features @> need.features then '{}'
        else array(select unnest(need.features) except select unnest(t.features) order by 1) end as lacks
    from node n
    join node_state t on t.node_id = n.id
    join cluster_head h on h.cluster_id = n.cluster_id
    join need on need.track = coalesce(t.track, 'S')
    where n.cluster_id = ${cluster} and n.status = 'active' and t.last_seen_at > ${ONLINE_SINCE}
  )
  select revision, track, healthy, lacks, failed, count(*)::int as nodes,
    (select jsonb_build_object('endsAt', r.window_ends_at, 'autoPromote', r.auto_promote) from cluster_rollout r
      where r.cluster_id = ${cluster} and r.candidate_revision is not null) as canary,
    coalesce(jsonb_path_query_array(jsonb_agg(jsonb_build_object('id', id, 'name', name) order by name, id)
      filter (where lacks <> '{}' or failed <> '[]'), '$[0 to ${MAX_NAMED - 1}]'), '[]') as named, false as silent
  from present group by 1, 2, 3, 4, 5
  union all
  select -1, 'S', false, '{}', '[]', count(*)::int, null, '[]', true
  from node n join node_state t on t.node_id = n.id
  where n.cluster_id = ${cluster} and n.status = 'active' and t.last_seen_at <= ${ONLINE_SINCE} having count(*) > 0`;

/** The nodes of a cluster as one JSON array, for {@link situationOf}. Parameter: SQL of the cluster. */
export function nodesSql(cluster: string): string {
  return `(select coalesce(jsonb_agg(g), '[]') from (${groupsSql(cluster)}) g)`;
}

/** Closed versions read beyond those that nodes can run: a node that lacks a capability for the latest serves an earlier one. */
export const EARLIER = 8;

/**
 * The {@link Interval}s of a site's entries as one JSON array: the live ones, the latest that were closed, and those
 * closed after the revision of the node most behind. Parameters: SQL of the cluster, of the owner and of that revision.
 */
export function intervalsSql(cluster: string, owner: string, behind: string): string {
  const columns = `e.track, e.kind, e.resource_id as id, e.blob_hash is null as removed, e.from_revision as "from", e.to_revision as "to", '${DISABLED_REF}' = any(e.refs) as disabled, e.features`;
  const mine = `from config_entry e where e.owner = ${owner} and e.cluster_id = ${cluster}`;
  return `(select coalesce(jsonb_agg(i), '[]') from (
    select ${columns} ${mine} and e.to_revision is null
    union all (select ${columns} ${mine} and e.to_revision is not null order by e.to_revision desc limit ${EARLIER})
    union (select ${columns} ${mine} and e.to_revision > ${behind})) i)`;
}

const INTERVALS = `
  select site.id, ${intervalsSql('site.cluster_id', 'site.owner', 'site.behind')} as intervals
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as site(cluster_id, id, owner, behind)`;

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
  return situationOf(await named<GroupRow>(sql, 'node-situation', groupsSql('$1'), [clusterId]));
}

/** A group as the database has it. */
export interface GroupRow extends Omit<NodeGroup, 'failed' | 'revision'> {
  canary: { endsAt: string; autoPromote: boolean } | null;
  failed: Failure[];
  revision: string | number;
  silent: boolean;
}

export function situationOf(rows: readonly GroupRow[]): Situation {
  const online = rows.filter(({ silent }) => !silent);
  const canary = online[0]?.canary ?? null;
  return {
    groups: online.map(({ canary: _canary, silent: _silent, ...row }) => ({
      ...row,
      revision: Number(row.revision),
      failed: byOwner(row.failed),
    })),
    silentNodes: rows.find(({ silent }) => silent)?.nodes ?? 0,
    canary: canary && { ...canary, endsAt: new Date(canary.endsAt).toISOString() },
  };
}

/** What belongs to the cluster, or is of a kind that only a newer console knows, is nobody's here. */
function byOwner(failed: readonly Failure[]): Map<string, Failure[]> {
  const owned = failed.map((failure) => [ownerOf(failure), failure] as const);
  const known = owned.filter((pair): pair is [string, Failure] => pair[0] !== null);
  return new Map(
    [...Map.groupBy(known, ([owner]) => owner)].map(([owner, pairs]) => [owner, pairs.map(([, failure]) => failure)]),
  );
}

/** The owner of an entry by its name; null for the cluster's own and unknown kinds. */
export function ownerOf({ kind, id }: { kind: string; id: string }): string | null {
  return findKind(kind)?.ownerOf(id) ?? null;
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
    sites.map(({ id }) => siteOwner(id)),
    sites.map(({ clusterId }) => mostBehind(situations.get(clusterId)!) ?? NONE_BEHIND),
  ]);
  const intervals = new Map(rows.map((row) => [row.id, row.intervals]));
  return new Map(
    sites.map((site) => [site.id, delivery(site, situations.get(site.clusterId)!, intervals.get(site.id)!)]),
  );
}

/** Without nodes only the latest version matters. */
export const NONE_BEHIND = '9223372036854775807';

/** The revision of the node that is most behind; null when no node has one. */
export function mostBehind({ groups }: Situation): number | null {
  const revisions = groups.flatMap(({ revision }) => (revision >= 0 ? [revision] : []));
  return revisions.length > 0 ? Math.min(...revisions) : null;
}

/**
 * Nobody runs the version just published: what the delivery was, after a change of the site. `features`: what its own
 * entry needs now.
 */
export function deliveryAfterChange(
  before: Delivery,
  situation: Situation,
  features: readonly string[],
  { enabled, wasEnabled }: { enabled: boolean; wasEnabled: boolean },
): Delivery {
  const servingNodes = enabled && !wasEnabled ? 0 : before.servingNodes;
  const state = stateOf({ enabled }, before.totalNodes, servingNodes, 0);
  const lackingNow = situation.groups.flatMap((group) => lackingAt(group, { kind: 'site', features }));
  const lackedBefore = before.blocked.filter(({ kind, reason }) => reason === 'lacking' && kind !== 'site');
  const blocked = merged([...lackingNow, ...lackedBefore]);
  const unknown = isUnknown(state, before.totalNodes, situation);
  const unserved = state === 'pending' && !unknown && (before.totalNodes === 0 || isStopped(blocked));
  return { ...before, state, servingNodes, currentNodes: 0, blocked, unserved, unknown };
}

function isUnknown(state: Delivery['state'], totalNodes: number, { silentNodes }: Situation): boolean {
  return state === 'pending' && totalNodes === 0 && silentNodes > 0;
}

/** Whether nodes told that they do not serve the site: nothing more is on its way. */
function isStopped(blocked: readonly Blocked[]): boolean {
  return blocked.some(({ kind }) => kind === 'site');
}

/** The delivery of a site with these versions of its entries: all that a node of the cluster can run. */
export function delivery(site: DeliveredSite, situation: Situation, intervals: readonly Interval[]): Delivery {
  const owner = siteOwner(site.id);
  const tried = intervals.some(({ track, to }) => track === 'C' && to === null);
  const views = { S: viewOf(intervals, 'S'), C: viewOf(intervals, 'C') };
  let [totalNodes, servingNodes, currentNodes] = [0, 0, 0];
  const blocked: Blocked[] = [];
  for (const group of situation.groups) {
    const { live, latest, versions } = views[group.track];
    const failed = group.failed.get(owner) ?? [];
    const lacked = once(live.flatMap((version) => lackingAt(group, version)));
    const hasLatest = group.healthy && latest !== null && group.revision >= latest;
    totalNodes += group.nodes;
    const runsLatest = hasLatest && !(tried && group.track === 'S');
    if (runsLatest && failed.length + lacked.length === 0) currentNodes += group.nodes;
    if (serves(group, versions, failed)) servingNodes += group.nodes;
    if (latest !== null && group.revision >= latest)
      blocked.push(...once(failed.map((failure) => failedAt(group, failure))));
    blocked.push(...lacked);
  }
  const state = stateOf(site, totalNodes, servingNodes, currentNodes);
  const unknown = isUnknown(state, totalNodes, situation);
  const settled = totalNodes === 0 || isStopped(blocked) || site.updatedAt.getTime() < Date.now() - UNSERVED_AFTER_MS;
  return {
    state,
    totalNodes,
    servingNodes,
    currentNodes,
    blocked: merged(blocked),
    unserved: state === 'pending' && settled && !unknown,
    unknown,
    canary: tried ? situation.canary : null,
  };
}

/** The versions of a site's entries as nodes of a track may run them. */
interface TrackView {
  live: Interval[];
  /** The last change of what they run; null: there was none. */
  latest: number | null;
  /** Of the site's own entry, newest first; what a canary has over it before the stable ones. */
  versions: Interval[];
}

function viewOf(intervals: readonly Interval[], track: Track): TrackView {
  const seen = intervals.filter((interval) => interval.track === 'S' || interval.track === track);
  const live = seen.filter(({ to }) => to === null);
  const over = new Set(live.filter((interval) => interval.track === 'C').map(nameOf));
  return {
    live: live.filter((interval) => !interval.removed && (interval.track === 'C' || !over.has(nameOf(interval)))),
    latest: seen.length === 0 ? null : Math.max(...seen.map(({ from, to }) => to ?? from)),
    versions: seen
      .filter(({ kind }) => kind === 'site')
      .sort((a, b) => (a.track === b.track ? b.from - a.from : a.track === 'C' ? -1 : 1)),
  };
}

function nameOf({ kind, id }: Interval): string {
  return `${kind} ${id}`;
}

/**
 * Whether the nodes serve the site: the version of their revision, or the one before it when they lack a capability for
 * that. A version that switches the site off does so on nodes that lack a capability for it, too.
 */
function serves(group: NodeGroup, versions: readonly Interval[], failed: readonly Failure[]): boolean {
  if (failed.some(({ kind, running }) => kind === 'site' && !running)) return false;
  const at = versions.findIndex(({ from, to }) => from <= group.revision && (to === null || group.revision < to));
  if (at < 0 || versions[at]!.disabled || versions[at]!.removed) return false;
  const running = versions.slice(at).find(({ features }) => lacking(group, features).length === 0);
  return running !== undefined && !running.disabled && !running.removed;
}

function lacking({ lacks }: NodeGroup, features: readonly string[]): string[] {
  return features.filter((feature) => lacks.includes(feature));
}

function lackingAt(
  group: NodeGroup,
  { kind, features }: Pick<Interval, 'kind'> & { features: readonly string[] },
): Blocked[] {
  const capabilities = lacking(group, features);
  if (capabilities.length === 0) return [];
  return [{ kind, reason: 'lacking', capabilities, message: '', count: group.nodes, nodes: group.named }];
}

function failedAt(group: NodeGroup, { kind, reason }: Failure): Blocked {
  return { kind, reason: 'failed', capabilities: [], message: reason, count: group.nodes, nodes: group.named };
}

const reasonOf = ({ kind, reason, capabilities, message }: Blocked) =>
  JSON.stringify([kind, reason, capabilities, message]);

/** One for each reason of a group's nodes: of a kind with many entries of a site they hold back each. */
function once(blocked: readonly Blocked[]): Blocked[] {
  return [...Map.groupBy(blocked, reasonOf).values()].map(([first]) => first!);
}

/** One for each reason, those of most nodes first. */
function merged(blocked: readonly Blocked[]): Blocked[] {
  const same = Map.groupBy(blocked, reasonOf);
  return [...same.values()]
    .map((some) => ({
      ...some[0]!,
      count: some.reduce((total, { count }) => total + count, 0),
      nodes: some.flatMap(({ nodes }) => nodes).slice(0, MAX_NAMED),
    }))
    .sort((a, b) => b.count - a.count)
    .slice(0, MAX_BLOCKED);
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
