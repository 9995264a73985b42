// The dossier of an address: everything that is known of it, and what a request from it meets now.
import test from 'ava';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;
let node: ReportingNode;

test.before('a cluster with a node that bans in its kernel, and a site', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('hong-kong');
  siteId = (await api.site(clusterId, 'shop.example', { name: 'Shop' })).id;
  node = await ReportingNode.enroll(running, clusterId, ['bans-v1', 'challenge-v1', 'kernel-ban-v1']);
  await node.beat();
  await eventually(async () => (await api.ok('GET', `/nodes/${node.id}`)).supportedFeatures.includes('kernel-ban-v1'));
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
});

let last = 0;
/** An address no other test uses. */
const address = () => `198.18.7.${++last}`;
const dossier = (of: string, query = ''): Promise<Body> => api.ok('GET', `/addresses/${of}${query}`);
const ban = (cidr: string, more: Body = {}): Promise<Body> =>
  api.ok('POST', '/bans', { scope: 'platform', cidr, reason: 'abuse', durationSeconds: 600, ...more });
const banAtSite = (cidr: string) => ban(cidr, { scope: 'site', siteId });
const list = (kind: string, ...entries: string[]): Promise<Body> =>
  api.ok('POST', '/ip-lists', { name: `${kind}_${++last}`, kind, entries });
const inCluster = (answer: Body, id = clusterId) => answer.clusters.find((each: Body) => each.clusterId === id);
const nodeState = (values: Body) => api.sql('node_state').where({ node_id: node.id }).update(values);
/** The node is online, however long ago it said so. */
const fresh = async (of: string, query = '') => {
  await nodeState({ last_seen_at: new Date() });
  return dossier(of, query);
};

test.serial('what is no address is refused at its field, and another spelling is the same address', async (t) => {
  for (const wrong of ['nonsense', '1.2.3', '010.0.0.1', '1.2.3.4.5', '::1::2', '1.2.3.4%25eth0'])
    await api.badField(t, '/address', 'GET', `/addresses/${wrong}`);
  await api.badField(t, '/prefix', 'GET', '/addresses/192.0.2.1?prefix=33');
  await api.badField(t, '/prefix', 'GET', '/addresses/2001:db8::1?prefix=129');
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/addresses/192.0.2.1?siteId=none');
  for (const [given, canonical, single] of [
    ['2001:DB8:0::1', '2001:db8::1', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['192.0.2.77?prefix=24', '192.0.2.0/24', false],
    ['2001%3Adb8%3A%3A1?prefix=64', '2001:db8::/64', false],
  ] as const) {
    const answer = await dossier(given);
    t.like(answer, { address: canonical, single });
  }
});

test.serial('of an address that nothing is known of every cluster says that it passes', async (t) => {
  const answer = await fresh(address());
  t.like(answer, { sites: [], bans: { items: [], total: 0 }, pastBans: [], lists: [], events: [] });
  t.true(answer.clusters.length >= 2);
  for (const cluster of answer.clusters) t.is(cluster.outcome, 'passes');
  t.like(inCluster(answer), { nodes: 1, kernelNodes: 0 });
});

test.serial('bans that cover it and bans inside it are told apart, those that ended are past', async (t) => {
  const one = address();
  const global = await ban(one, { reason: 'scanner' });
  const atSite = await banAtSite(one);
  const answer = await fresh(one);
  t.is(answer.bans.total, 2);
  t.deepEqual(
    answer.bans.items.map(({ id, covers, scope, siteName, by }: Body) => ({ id, covers, scope, siteName, by })),
    [
      { id: atSite.id, covers: true, scope: 'site', siteName: 'Shop', by: atSite.createdBy.name },
      { id: global.id, covers: true, scope: 'platform', siteName: null, by: global.createdBy.name },
    ],
  );
  t.like(inCluster(answer), { outcome: 'dropped', kernelNodes: 1, nodes: 1, ban: { id: global.id } });
  t.like(answer.sites[0], { siteId, siteName: 'Shop', outcome: 'dropped', ban: { id: global.id } });
  // A range around it: the bans concern a part of it, and what that part meets is not what the range meets.
  const around = await fresh(one, '?prefix=31');
  t.deepEqual(
    around.bans.items.map(({ covers }: Body) => covers),
    [false, false],
  );
  t.is(inCluster(around).outcome, 'passes');

  await api.ok('DELETE', `/bans/${global.id}`);
  const lifted = await fresh(one);
  t.is(lifted.bans.total, 1);
  t.like(lifted.pastBans, [{ id: global.id }]);
  t.truthy(lifted.pastBans[0].liftedAt);
  t.is(inCluster(lifted).outcome, 'passes');
  t.like(lifted.sites[0], { siteId, outcome: 'banned', ban: { id: atSite.id }, kernelNodes: 0 });
});

test.serial('one node without kernel bans makes the answer a 403 again; clusters differ', async (t) => {
  const one = address();
  await ban(one);
  const second = await api.node(clusterId, 'without-kernel', { features: ['bans-v1'] });
  t.like(inCluster(await fresh(one)), { outcome: 'banned', kernelNodes: 1, nodes: 2 });
  await api.sql('node').where({ id: second }).delete();
  const empty = await api.cluster('empty');
  t.like(inCluster(await dossier(one), empty), { outcome: 'banned', kernelNodes: 0, nodes: 0 });
});

test.serial('a ban that was not shared decides nothing: one node has it', async (t) => {
  const one = address();
  const { id } = await ban(one);
  await api.sql('ban').where({ id }).update({ distributed: false });
  const answer = await fresh(one);
  t.like(answer.bans.items, [{ id, distributed: false }]);
  t.is(inCluster(answer).outcome, 'passes');
});

test.serial('lists come with the entry that matters and decide after bans', async (t) => {
  const [one, two] = [address(), address()];
  const block = await list('block', one, '198.19.0.0/16');
  const collection = await list('collection', `${one}/32`);
  const blocked = await fresh(one, `?siteId=${siteId}`);
  t.deepEqual(blocked.lists, [
    { id: block.id, name: block.name, kind: 'block', entry: `${one}/32`, covers: true },
    { id: collection.id, name: collection.name, kind: 'collection', entry: `${one}/32`, covers: true },
  ]);
  t.like(blocked.sites, [{ siteId, seenAt: null, outcome: 'blocked', list: { id: block.id, entry: `${one}/32` } }]);
  t.like((await fresh('198.19.3.4')).lists, [{ entry: '198.19.0.0/16' }]);
  const banned = await ban(one);
  t.like(inCluster(await fresh(one)), { outcome: 'dropped', ban: { id: banned.id } });
  const allow = await list('allow', one);
  t.like(inCluster(await fresh(one)), { outcome: 'passes', ban: null, list: { id: allow.id } });
  t.is(inCluster(await fresh(two)).outcome, 'passes');
});

test.serial('Under Attack, a raised level and a disabled site are told by site', async (t) => {
  const one = address();
  const query = `?siteId=${siteId}`;
  const atSite = async () => (await fresh(one, query)).sites[0];
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true, underAttackChallenge: 'js' });
  t.like(await atSite(), { outcome: 'challenged', level: 'js', asks: 'site' });
  t.is(inCluster(await fresh(one)).outcome, 'passes');
  await node.connection.call('reportSecurity', {
    events: [],
    sites: [{ siteId, level: 3, paths: [] }],
    hasState: true,
  });
  t.like(await atSite(), { outcome: 'challenged', level: 'pow', asks: 'load' });
  await api.ok('PUT', '/settings/protection', { underAttack: true, underAttackChallenge: 'captcha' });
  t.like(await atSite(), { outcome: 'challenged', level: 'captcha', asks: 'platform' });
  t.like(inCluster(await fresh(one)), { outcome: 'challenged', level: 'captcha' });
  await api.ok('PUT', `/sites/${siteId}/enabled`, { enabled: false });
  t.is((await atSite()).outcome, 'disabled');
  await api.ok('PUT', `/sites/${siteId}/enabled`, { enabled: true });
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: false });
  await node.connection.call('reportSecurity', { events: [], sites: [], hasState: true });
  t.is((await atSite()).outcome, 'passes');
});

test.serial('a trusted proxy is never banned, and kernels see it instead of its visitors', async (t) => {
  const [proxy, visitor] = [address(), address()];
  await ban(proxy);
  await ban(visitor);
  await api.ok('PUT', `/clusters/${clusterId}/client-ip`, {
    settings: { mode: 'header', trustedCidrs: [proxy], header: 'x-real-ip' },
  });
  t.like(inCluster(await fresh(proxy)), { outcome: 'passes', trustedProxy: true, ban: null });
  t.like(inCluster(await fresh(visitor)), { outcome: 'banned', trustedProxy: false, kernelNodes: 0 });
  await api.ok('PUT', `/clusters/${clusterId}/client-ip`, { settings: { mode: 'proxy_protocol' } });
  const allow = await list('allow', visitor);
  t.like(inCluster(await fresh(visitor)), { outcome: 'passes', list: { id: allow.id } });
  // Whoever connects can name any address there: nobody vouches for it.
  await nodeState({ info: JSON.stringify({ proxyPeersUnset: true }) });
  t.like(inCluster(await fresh(visitor)), { outcome: 'banned', list: null });
  await nodeState({ info: '{}' });
  await api.ok('PUT', `/clusters/${clusterId}/client-ip`, { settings: { mode: 'direct' } });
});

test.serial('events and heavy addresses tell where a client was seen; an IPv6 one has a whole /64', async (t) => {
  const other = (await api.site(clusterId, 'other.example')).id;
  const now = Date.now();
  const event = (site: string, ago: number, more: Body): Body => ({
    id: `seen-${++last}`,
    siteId: site,
    kind: SecurityEventKind.IP_BANNED,
    occurredAtMs: BigInt(now - ago),
    level: 1,
    previousLevel: 1,
    metric: 'ip_qps',
    observed: 90,
    threshold: 50,
    ...more,
  });
  await node.connection.call('reportSecurity', {
    events: [
      event(siteId, 5000, { address: '2001:db8:7:1::/64' }),
      event(siteId, 3000, { address: '198.18.9.9' }),
      event(other, 120_000, {
        kind: SecurityEventKind.SITE_LEVEL,
        previousLevel: 0,
        topIps: [{ value: '198.18.9.9', count: 70n }],
      }),
    ],
  });
  const six = await fresh('2001:db8:7:1:2:3:4:5');
  t.like(six.events, [{ siteId, siteName: 'Shop', metric: 'ip_qps', observed: 90, threshold: 50 }]);
  t.is(six.events[0].node.id, node.id);
  t.deepEqual((await dossier('2001:db8:7:1::?prefix=64')).events, six.events);
  t.deepEqual((await dossier('2001:db8:7::?prefix=48')).events, []);
  const four = await dossier('198.18.9.9');
  t.is(four.events.length, 1);
  t.deepEqual(
    four.sites.map((site: Body) => site.siteId),
    [siteId, other],
  );
  t.deepEqual((await dossier('198.18.9.8')).sites, []);
});

test.serial('WAF events of an address are counted by hour and listed over all sites, found by an index', async (t) => {
  const one = '198.18.11.7';
  const matched = (ago: number, blocked: boolean, path = '/login'): Body => ({
    id: `matched-${++last}`,
    siteId,
    kind: SecurityEventKind.WAF_MATCHED,
    occurredAtMs: BigInt(Date.now() - ago),
    waf: {
      requestId: `request-${last}`,
      method: 'POST',
      path,
      address: one,
      rules: [942_100],
      score: 5,
      threshold: 5,
      blocked,
      matches: [],
    },
  });
  await node.connection.call('reportSecurity', {
    events: [matched(1000, true, '/admin'), matched(2000, false), matched(2 * 3_600_000, false)],
  });
  const { attacks } = await fresh(one);
  t.deepEqual([attacks.matched.length, attacks.matched.reduce((sum: number, n: number) => sum + n, 0)], [24, 3]);
  t.is(
    attacks.blocked.reduce((sum: number, n: number) => sum + n, 0),
    1,
  );
  t.like(attacks.items[0], {
    siteId,
    siteName: 'Shop',
    path: '/admin',
    method: 'POST',
    blocked: true,
    rules: [942_100],
  });
  t.is((await dossier('198.18.11.8')).attacks.items.length, 0);
  t.deepEqual((await dossier('198.18.11.0?prefix=24')).attacks.items, []);
  const { rows } = await api.sql.raw(
    `select count(*)::int as n from pg_index where indexrelid = 'security_event_waf_client'::regclass and indisvalid`,
  );
  t.is(rows[0].n, 1);
});

test.serial('addresses are located by the databases of the console; without one nothing is known', async (t) => {
  const found = await api.ok('GET', '/address-locations?addresses=192.0.2.1,2001:db8::/64');
  t.deepEqual(found, { available: false, locations: [] });
  t.like((await fresh('192.0.2.1')).location, { country: null, asn: null });
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/address-locations?addresses=shop.example');
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/address-locations');
});

test.serial('an address with very many bans is answered with a bounded part of them', async (t) => {
  const one = '198.18.10.1';
  await api.sql.raw(
    `insert into ban (scope, site_id, cluster_id, cidr, reason, source, node_id, expires_at, seq)
       select 'site', 'gone-' || n, ?, ?::cidr, 'cc_ip_rate', 'auto', 'n', now() + interval '1 hour', nextval('ban_seq')
         from generate_series(1, 200) n`,
    [clusterId, one],
  );
  const { bans, sites } = await fresh(one);
  t.deepEqual([bans.total, bans.items.length, sites.length], [200, 20, 0]);
});
