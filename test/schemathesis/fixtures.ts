// What the hooks of schemathesis need to make every operation succeed: resources that exist, ways to make one that may
// be ended, and bodies that are accepted. `{n}` stands for a number that differs from call to call, `{a}` for two bytes
// of an address. A resource with a file in test/surface says there what its calls need.
import type { Api, Body } from '../helpers/resources.ts';
import { type Recipe, surfaces } from '../helpers/surfaces.ts';

/** One of the access keys that the calls are made with, in turns. */
export interface PoolKey {
  id: string;
  secret: string;
}

export interface Fixtures {
  keys: string[];
  /** Ids that no call may end, whatever it has read. */
  spared: string[];
  paths: Record<string, Record<string, string>>;
  fresh: Record<string, Recipe>;
  bodies: Record<string, unknown>;
  query: Record<string, Record<string, string>>;
}

/** Operations that an access key never gets a 2xx from, and why. */
export const NEVER_2XX: Record<string, string> = {
  'dns.binding.force': 'nothing is blocked where no node was ever healthy',
  'dns.test': 'no provider answers',
  'dns.zones': 'no provider answers',
  'accessKeys.create': 'only a console session may create keys',
  'system.setup': 'the console is set up already',
  'sites.tryOriginFromNode': 'no node of the console does tasks',
  'jobs.cancel': 'jobs end within a second',
  'alerts.channels.test': 'no service of theirs is there',
};

const recipe = (path: string, body: unknown, id: readonly string[] = ['id'], parameter = 'id'): Recipe => ({
  path,
  body,
  id,
  parameter,
});

/** Fills the console and answers what the hooks need; the key `revocableId` calls nothing. */
export async function makeFixtures(api: Api, keys: readonly PoolKey[], revocableId: string): Promise<Fixtures> {
  const clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  const { site } = { site: await api.site(clusterId, 'kept.example.net') };
  const nodeId = await api.node(clusterId, 'kept-node', { features: ['bans-v1', 'client-ip-v1'] });
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'kept' });
  const token = await api.ok('POST', '/enrollment-tokens', { clusterId });
  const account: Body = await api.ok('POST', '/service-accounts', { name: 'kept', scopes: [], enabled: true });
  const ban = { scope: 'platform', cidr: '9.9.{a}', reason: 'other', durationSeconds: 600 };
  const newSite = { clusterId, domains: ['s{n}.example.net'], origins: [{ address: 'origin.example' }] };
  const ofCluster = { clusterId };
  const thisSite = { id: site.id };
  const change = `${clusterId}=1`;
  const parts = [];
  for (const { calls } of await surfaces()) if (calls) parts.push(await calls(api));
  return {
    keys: keys.map(({ secret }) => secret),
    spared: keys.map(({ id }) => id),
    paths: {
      'accessKeys.revoke': { id: revocableId },
      'changes.get': { id: change },
      'changes.nodes': { id: change },
      'clusters.clientIp.get': ofCluster,
      'clusters.clientIp.set': ofCluster,
      'clusters.cache.get': ofCluster,
      'clusters.cache.set': ofCluster,
      'clusters.headerLimit.get': ofCluster,
      'clusters.headerLimit.set': ofCluster,
      'clusters.unknownHosts.get': ofCluster,
      'clusters.unknownHosts.set': ofCluster,
      'clusters.get': { id: clusterId },
      'clusters.update': { id: clusterId },
      'clusters.revisions': { id: clusterId },
      'clusters.revisionDiff': { id: clusterId, revision: '1' },
      'clusters.rollbackPreview': { id: clusterId },
      'clusters.rollback': { id: clusterId },
      'clusters.undoRevision': await undoable(api),
      'enrollmentTokens.get': { id: token.id ?? token.tokenId },
      'nodeGroups.update': { id: group.id },
      'nodes.get': { id: nodeId },
      'nodes.metrics': { id: nodeId },
      'nodes.cache.get': { id: nodeId },
      'nodes.cache.set': { id: nodeId },
      'nodes.update': { id: nodeId },
      'nodes.disable': { id: nodeId },
      'nodes.enable': { id: nodeId },
      'serviceAccounts.update': { id: account.id },
      'serviceAccounts.createKey': { id: account.id },
      'serviceAccounts.revokeKey': { id: account.id },
      'protection.get': thisSite,
      'protection.update': thisSite,
      'protection.rehearse': thisSite,
      'security.state': thisSite,
      'security.events': thisSite,
      'sites.get': thisSite,
      'sites.update': thisSite,
      'sites.setEnabled': thisSite,
      'sites.features': thisSite,
      'sites.launch': thisSite,
      'sites.originHealth': thisSite,
      'sites.standing': thisSite,
      ...merge(parts.map(({ paths }) => paths)),
    },
    fresh: {
      'bans.delete': recipe('/bans', ban),
      'clusters.delete': recipe('/clusters', { name: 'ended-{n}' }),
      'nodeGroups.delete': recipe('/node-groups', { clusterId, name: 'ended {n}' }),
      'serviceAccounts.delete': recipe('/service-accounts', { name: 'ended {n}', scopes: [], enabled: true }),
      'serviceAccounts.createKey': recipe('/service-accounts', { name: 'keyed {n}', scopes: [], enabled: true }),
      'serviceAccounts.revokeKey': recipe(
        `/service-accounts/${account.id}/keys`,
        { name: 'ended {n}' },
        ['key', 'id'],
        'keyId',
      ),
      'sites.delete': recipe('/sites', newSite, ['site', 'id']),
      ...merge(parts.map(({ fresh }) => fresh)),
    },
    bodies: {
      'bans.create': ban,
      'bans.preview': ban,
      'clusters.create': { name: 'made-{n}' },
      'clusters.update': { name: 'renamed-{n}' },
      'clusters.clientIp.set': { settings: { mode: 'direct' } },
      'clusters.cache.set': { maxSizeGb: 20, inactiveDays: 30 },
      'clusters.headerLimit.set': { fieldBytes: 16_384 },
      'clusters.rollback': { revision: '1' },
      'clusters.unknownHosts.set': {
        unknownHost: 'page',
        ipAccess: 'page',
        defaultSiteId: null,
        defaultCertificate: false,
      },
      'enrollmentTokens.create': { clusterId },
      'nodeGroups.create': { clusterId, name: 'made {n}' },
      'nodeGroups.update': { name: 'renamed {n}' },
      'nodes.update': { name: 'renamed {n}' },
      'nodes.cache.set': { maxSizeGb: 40 },
      'nodes.disable': {},
      'nodes.enable': {},
      'serviceAccounts.create': { name: 'made {n}', scopes: ['sites:read'], enabled: true },
      'serviceAccounts.update': { name: 'kept', scopes: ['sites:read'], enabled: true },
      'serviceAccounts.createKey': { name: 'made {n}' },
      'serviceAccounts.revokeKey': {},
      'settings.auditRetention.set': { days: 400 },
      'settings.ccTemplate.set': { siteQps: 1000 },
      'settings.ccTemplate.rehearse': { siteQps: 100 },
      'settings.protection.set': { underAttack: false, eventRetentionDays: 30 },
      'settings.bans.rehearse': { maxTotal: 1000 },
      'settings.bans.set': { maxTotal: 100_000, shareAutoBans: true },
      'settings.nodeChannel.set': { url: '' },
      'settings.originAllowList.set': { cidrs: ['10.0.0.0/8'] },
      'protection.rehearse': { cc: { enabled: true } },
      'protection.update': { underAttack: false, powDifficulty: 16, powHighDifficulty: 20 },
      'sites.create': newSite,
      'sites.update': { name: 'renamed {n}' },
      'sites.setEnabled': { enabled: true },
      ...merge(parts.map(({ bodies }) => bodies)),
    },
    query: {
      'clusters.rollbackPreview': { revision: '1' },
      'analytics.breakdown': { by: 'status', range: '24h' },
      'analytics.dimensions': { range: '24h' },
      'analytics.topRequests': { range: '24h' },
      'analytics.traffic': { range: '24h' },
      ...Object.fromEntries(
        ['query', 'histogram', 'export', 'top'].map((name) => [
          `logs.${name}`,
          { ...lastHour(), ...(name === 'top' && { field: 'path' }) },
        ]),
      ),
      ...Object.fromEntries(
        ['list', 'summary', 'sites', 'gaps', 'export'].map((name) => [
          `usage.${name}`,
          { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
        ]),
      ),
    },
  };
}

/** A range of which rows of request logs are kept. */
function lastHour(): Record<string, string> {
  const now = Date.now();
  return { from: new Date(now - 3_600_000).toISOString(), to: new Date(now).toISOString() };
}

/** A revision that can be undone, in a cluster of its own: no other call changes its fields later. */
async function undoable(api: Api): Promise<Record<string, string>> {
  const id = await api.cluster('undone');
  const site = await api.site(id, 'undone.example.net');
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Undone' });
  const { items } = await api.ok('GET', `/clusters/${id}/revisions?pageSize=1`);
  return { id, revision: items[0].revision };
}

function merge<T>(parts: readonly (Record<string, T> | undefined)[]): Record<string, T> {
  return Object.assign({}, ...parts);
}
