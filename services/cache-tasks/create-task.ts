import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { CacheTask, cacheTasks, sitePurge } from '../../contract/resources/cache-tasks.ts';
import { type AuditRecord, recordAudit } from '../../models/audit/audit-entry.ts';
import { type CacheTaskRow, insertCacheTask, insertTaskPlace, type TaskPlace } from '../../models/cache/cache-task.ts';
import { addPrefetches } from '../../models/cache/prefetch-node.ts';
import { addPurge, type Purge, type PurgeTarget } from '../../models/cache/purge.ts';
import { type PurgeNodes, readPurgeNodes } from '../../models/cache/purge-nodes.ts';
import { type HostSite, sitesById, sitesOfHosts } from '../../models/cache/purge-sites.ts';
import { holdSites } from '../../models/sites/hold-sites.ts';
import { PurgeScope } from '../../proto/gen/svc/node/v1/purges_pb.js';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { type GivenTask, givenTask } from './given-task.ts';
import { isPrefetch, presentTask, readPrefetches } from './present-task.ts';

const CREATED = { status: 201 };
const SHOWN = 10;

/** Throws the contract's errors. */
export async function createCacheTask(
  runtime: Runtime,
  input: Input<typeof cacheTasks.create>,
  call: Call,
): Promise<CacheTask> {
  const given = givenTask(input);
  return write(runtime, call, CREATED, async (tx) => {
    const sites = await sitesOfTask(tx, given);
    return addTask(tx, given, sites, ({ id, targets, sites }) => ({
      action: isPrefetch(given) ? 'cache.prefetch' : 'cache.purge',
      target: { type: 'cache_task', id, name: given.type },
      metadata: { type: given.type, targets: targets.length, sites: sites.slice(0, SHOWN).map(({ name }) => name) },
    }));
  });
}

/** Purges all of a site. Throws SITE_NOT_FOUND, SITE_DISABLED. */
export async function purgeSite(
  runtime: Runtime,
  { id }: Input<typeof sitePurge.purgeAll>,
  call: Call,
): Promise<CacheTask> {
  const given = givenTask({ type: 'site', siteIds: [id] });
  return write(runtime, call, CREATED, async (tx) => {
    const sites = await sitesOfTask(tx, given);
    return addTask(tx, given, sites, (task) => ({
      action: 'site.purge_all',
      target: { type: 'site', id, name: task.sites[0]!.name },
      metadata: { taskId: task.id },
    }));
  });
}

/** Sites by hosts, and those that were named. */
interface TaskSites {
  byHost: ReadonlyMap<string, readonly HostSite[]>;
  named: readonly HostSite[];
}

async function sitesOfTask({ sql }: Tx, given: GivenTask): Promise<TaskSites> {
  const { urls, hosts, siteIds } = given;
  const byHost = await sitesOfHosts(sql, [...hosts, ...urls.map(({ host }) => host)]);
  const without = urls.filter(({ host }) => !byHost.has(host)).map(({ text }) => text);
  if (without.length > 0) fail('CACHE_TASK_URL_INVALID', { urls: without.slice(0, SHOWN) });
  const unknown = hosts.filter((host) => !byHost.has(host));
  if (unknown.length > 0) fail('CACHE_TASK_HOST_UNKNOWN', { hosts: unknown.slice(0, SHOWN) });
  const named = await sitesById(sql, siteIds);
  if (named.length < siteIds.length) fail('SITE_NOT_FOUND');
  const all = [...named, ...[...byHost.values()].flat()];
  const disabled = all.find(({ enabled }) => !enabled);
  if (disabled) fail('SITE_DISABLED', { siteId: disabled.id, site: disabled.name });
  return { byHost, named };
}

type Audited = Pick<CacheTaskRow, 'id' | 'targets' | 'sites'>;

async function addTask(
  tx: Tx,
  given: GivenTask,
  { byHost, named }: TaskSites,
  auditOf: (task: Audited) => AuditRecord,
): Promise<CacheTask> {
  const { type, variants, maxUrls } = given;
  const sites = [...new Map([...named, ...[...byHost.values()].flat()].map((site) => [site.id, site])).values()];
  const siteIds = sites.map(({ id }) => id);
  if (!(await holdSites(tx.sql, siteIds))) fail('SITE_NOT_FOUND');
  // In one order, so that two tasks never wait for each other's cluster.
  const clusterIds = [...new Set(sites.map(({ clusterId }) => clusterId))].sort();
  const nodes = new Map<string, PurgeNodes>();
  for (const clusterId of clusterIds) nodes.set(clusterId, await readPurgeNodes(tx.sql, clusterId));
  const asked = {
    type,
    targets: targetsOf(given, named),
    sites: sites.map(({ id, name }) => ({ id, name })),
    variants,
    maxUrls,
    source: 'user' as const,
    createdByName: tx.call.actor.name,
  };
  const id = await insertCacheTask(tx.sql, asked, tx.now);
  const { action, target, metadata } = auditOf({ id, ...asked });
  await recordAudit(tx, action, target, metadata);
  const places: TaskPlace[] = [];
  for (const clusterId of clusterIds) {
    const place: TaskPlace = isPrefetch(given)
      ? { clusterId, epoch: 0n, sequence: 0n, nodes: null }
      : { clusterId, ...(await addPurge(tx, clusterId, purgeIn(clusterId, given, { byHost, named }))), nodes: null };
    await insertTaskPlace(tx.sql, id, place);
    if (isPrefetch(given)) await addPrefetches(tx.sql, id, clusterId);
    places.push(place);
  }
  const row = { id, ...asked, createdAt: tx.now, finishedAt: null, places };
  return presentTask(row, { nodes, prefetches: await readPrefetches(tx.sql, [row]) }, tx.now);
}

function targetsOf({ type, urls, hosts, tags }: GivenTask, named: readonly HostSite[]): string[] {
  if (type === 'host') return hosts;
  if (type === 'tag') return tags;
  return type === 'site' ? named.map(({ name }) => name) : urls.map(({ text }) => text);
}

/** The part of a purge that concerns a cluster. */
function purgeIn(clusterId: string, { type, urls, hosts, tags }: GivenTask, { byHost, named }: TaskSites): Purge {
  const here = (sites: readonly HostSite[]) => sites.filter((site) => site.clusterId === clusterId);
  const target = (scope: PurgeScope, host: string, path: string, query: string): PurgeTarget[] =>
    here(byHost.get(host) ?? []).map(({ id }) => ({ scope, siteId: id, host, path, query }));
  const scope = type === 'prefix' ? PurgeScope.PREFIX : PurgeScope.URL;
  return {
    siteIds: here(named).map(({ id }) => id),
    tags,
    targets: [
      ...urls.flatMap(({ host, path, query }) => target(scope, host, path, query)),
      ...hosts.flatMap((host) => target(PurgeScope.HOST, host, '', '')),
    ],
  };
}
