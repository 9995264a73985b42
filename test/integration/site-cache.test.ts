// Cache rules and cache settings of sites through /api/v1: what is taken and kept, and what nodes get of it.
import { createHmac } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_CACHE_SETTINGS } from '../../contract/resources/site-cache.ts';
import { SiteCacheSchema, SitePurgeMethodSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import { type Call, systemCall } from '../../runtime/call.ts';
import { setSiteEnabled } from '../../services/sites/set-site-enabled.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('cached');
});
test.after.always(() => running?.stop());

const domain = () => `cached-${made++}.example`;
const origins = [{ address: 'origin.example' }];
const create = async (more: Body = {}): Promise<Body> =>
  (await api.ok('POST', '/sites', { clusterId, domains: [domain()], origins, ...more })).site;
const update = async (id: string, fields: Body): Promise<Body> => (await api.ok('PATCH', `/sites/${id}`, fields)).site;
const refused = (id: string, fields: Body) => api.call('PATCH', `/sites/${id}`, fields);
const published = async (id: string) => {
  const body = await api.entry(clusterId, 'site-cache', id);
  return body && fromBinary(SiteCacheSchema, body);
};
const live = (kind: string, id: string) =>
  api.sql('config_entry').where({ cluster_id: clusterId, kind, resource_id: id, to_revision: null }).first();
let lists = 0;
const ipList = async (): Promise<Body> =>
  api.ok('POST', '/ip-lists', { name: `cache_list_${lists++}`, kind: 'collection', entries: ['192.0.2.1'] });

test('a site has no cache rules, the default settings, and no entry', async (t) => {
  const site = await create();
  t.deepEqual([site.cacheRules, site.cacheSettings], [[], DEFAULT_CACHE_SETTINGS]);
  t.like(await api.ok('GET', `/sites/${site.id}`), { cacheRules: [], cacheSettings: DEFAULT_CACHE_SETTINGS });
  t.falsy(await published(site.id));
  t.falsy(await api.sql('site_cache').where({ site_id: site.id }).first());
});

test('rules are created with a site, replaced as a whole and published in order', async (t) => {
  const site = await create({
    cacheRules: [{ priority: 20 }, { priority: 5, extensions: ['.CSS'], action: 'bypass' }],
  });
  const shown = site.cacheRules.map(({ priority, extensions, action }: Body) => [priority, extensions, action]);
  t.deepEqual(shown, [
    [5, ['css'], 'bypass'],
    [20, [], 'cache'],
  ]);
  t.deepEqual(
    (await published(site.id))!.rules.map(({ priority, bypass }) => [priority, bypass]),
    [
      [5, true],
      [20, false],
    ],
  );
  t.like(await live('site-cache', site.id), { features: ['cache-v1'] });
  const { revision } = await api.ok('PATCH', `/sites/${site.id}`, { name: 'Other name' });
  t.truthy(revision);
  const same = await api.ok('PATCH', `/sites/${site.id}`, { cacheRules: site.cacheRules });
  t.deepEqual([same.revision, same.site.cacheRules], [null, site.cacheRules]);
  const cleared = await update(site.id, { cacheRules: [] });
  t.deepEqual(cleared.cacheRules, []);
  t.falsy(await published(site.id));
});

test('an update keeps what the specification names, and resets the rest of the settings it replaces', async (t) => {
  const { id } = await create({
    cacheSettings: {
      rangeSlice: true,
      keepCacheTag: true,
      xCache: false,
      cacheKey: { query: 'ignore', headers: ['X-A'] },
    },
  });
  const kept = await update(id, { cacheSettings: { cacheKey: { query: 'exclude', queryParams: ['utm_*'] } } });
  t.deepEqual(kept.cacheSettings, {
    ...DEFAULT_CACHE_SETTINGS,
    cacheKey: { ...DEFAULT_CACHE_SETTINGS.cacheKey, query: 'exclude', queryParams: ['utm_*'] },
    keepCacheTag: true,
    xCache: false,
  });
  t.deepEqual((await update(id, { cacheRules: [{}] })).cacheSettings, kept.cacheSettings);
  t.like(await published(id), { keepCacheTag: true, hideXCache: true, rangeSlice: false });
  const audit: Body = await api.ok('GET', `/audit-logs?targetId=${id}`);
  t.deepEqual(audit.items[0].metadata.changed, ['cacheRules']);
});

test('what a cache cannot be is refused with its field or code', async (t) => {
  const { id, cacheSettings } = await create();
  for (const [code, fields, data] of [
    ['CACHE_RULE_PRIORITY_DUPLICATE', { cacheRules: [{ priority: 7 }, { priority: 7 }] }, { priority: 7 }],
    [
      'RULE_INVALID',
      { cacheRules: [{}, { expression: 'http.hots eq 1' }] },
      { rule: 1, field: '/cacheRules/1/expression' },
    ],
    ['IP_LIST_REFERENCE_UNKNOWN', { cacheRules: [{ expression: 'ip.src in $nobody' }] }, { lists: ['nobody'] }],
    ['PURGE_KEY_REQUIRED', { cacheSettings: { purgeMethod: { enabled: true } } }, {}],
  ] as const) {
    const { status, body } = await refused(id, fields);
    t.is(body.code, code);
    t.is(status, code === 'IP_LIST_REFERENCE_UNKNOWN' ? 404 : 400);
    if (Object.keys(data).length > 0) t.like(body.data, data);
  }
  const many = (length: number, item: (n: number) => unknown) => Array.from({ length }, (_, n) => item(n));
  for (const fields of [
    { priority: -1 },
    { priority: 10_001 },
    { expression: 'x'.repeat(16_385) },
    { pathPrefixes: ['images'] },
    { pathPrefixes: many(33, (n) => `/${n}`) },
    { paths: many(33, (n) => `/${n}`) },
    { extensions: ['a-b'] },
    { extensions: ['a'.repeat(17)] },
    { extensions: many(65, (n) => `e${n}`) },
    { statusCodes: [99] },
    { statusCodes: [600] },
    { statusCodes: many(17, (n) => 200 + n) },
    { minSizeBytes: -1 },
    { minSizeBytes: 2, maxSizeBytes: 1 },
    { action: 'store' },
    { edgeTtlSeconds: 31_536_001 },
    { originCacheControl: 'ignore' },
    { staleWhileRevalidateSeconds: 2_592_001 },
    { staleIfErrorSeconds: 2_592_001 },
    { browserTtlSeconds: 31_536_001 },
    { unknown: true },
  ]) {
    const { status, body } = await refused(id, { cacheRules: [fields] });
    t.deepEqual([status, body.code], [400, 'BAD_REQUEST'], JSON.stringify(fields).slice(0, 80));
  }
  t.is((await refused(id, { cacheRules: many(65, () => ({})) })).body.code, 'BAD_REQUEST');
  for (const fields of [
    { cacheKey: { query: 'some' } },
    { cacheKey: { queryParams: ['a*b'] } },
    { cacheKey: { queryParams: ['a&b'] } },
    { cacheKey: { queryParams: many(33, (n) => `p${n}`) } },
    { cacheKey: { headers: ['Cookie'] } },
    { cacheKey: { headers: ['host'] } },
    { cacheKey: { headers: ['a b'] } },
    { cacheKey: { headers: many(9, (n) => `x-${n}`) } },
    { cacheKey: { cookies: many(9, (n) => `c${n}`) } },
    { purgeMethod: { enabled: false, key: 'x'.repeat(15) } },
    { purgeMethod: { enabled: false, key: 'x'.repeat(257) } },
    { purgeMethod: { enabled: false, key: 'a key with spaces' } },
    { purgeMethod: { enabled: false, keySet: true } },
  ]) {
    const { status, body } = await refused(id, { cacheSettings: fields });
    t.deepEqual([status, body.code], [400, 'BAD_REQUEST'], JSON.stringify(fields).slice(0, 80));
  }
  t.like(await api.ok('GET', `/sites/${id}`), { cacheRules: [], cacheSettings });
});

test('the key of PURGE is kept as a keyed hash, and never returned', async (t) => {
  const key = 'secret-key-of-purge';
  const { id, cacheSettings } = await create({ cacheSettings: { purgeMethod: { enabled: true, key } } });
  t.deepEqual(cacheSettings.purgeMethod, { enabled: true, keySet: true });
  const { key_digest: digest } = await api.sql('site_purge_method').where({ site_id: id }).first();
  const { secret } = await api.sql('purge_secret').where({ cluster_id: clusterId }).first();
  const place = { table: 'purge_secret', column: 'secret', row: clusterId };
  const opened = running.running.runtime.sealer.open(secret, place);
  t.deepEqual(digest, createHmac('sha256', opened).update(`${id}\n${key}`).digest());
  const body = await api.entry(clusterId, 'site-purge-method', id);
  t.deepEqual(Buffer.from(fromBinary(SitePurgeMethodSchema, body!).keyDigest), digest);
  t.like(await live('site-purge-method', id), { features: ['purge-method-v1', 'site-content-v1'] });

  const off = await update(id, { cacheSettings: { purgeMethod: { enabled: false } } });
  t.deepEqual(off.cacheSettings.purgeMethod, { enabled: false, keySet: true });
  t.falsy(await api.entry(clusterId, 'site-purge-method', id));
  const on = await update(id, { cacheSettings: { purgeMethod: { enabled: true } } });
  t.deepEqual(on.cacheSettings.purgeMethod, { enabled: true, keySet: true });
  t.deepEqual((await update(id, { cacheSettings: {} })).cacheSettings.purgeMethod, { enabled: true, keySet: true });
  await update(id, { cacheSettings: { purgeMethod: { enabled: true, key: 'another-key-of-purge' } } });
  const replaced = await api.entry(clusterId, 'site-purge-method', id);
  t.notDeepEqual(replaced, body);
});

test('an IP list of a cache rule cannot be deleted, and its usage names the rule', async (t) => {
  const list = await ipList();
  const site = await create({ cacheRules: [{ priority: 7, expression: `ip.src in $${list.name}` }] });
  t.like(await live('site-cache', site.id), { features: ['cache-v1', 'rules-v2'], refs: [`list:${list.id}`] });
  const usage = await api.ok('GET', `/ip-lists/${list.id}/usage`);
  const user = { kind: 'cache_rule', id: site.id, name: `${site.name}: 7`, site: { id: site.id, name: site.name } };
  t.deepEqual(usage, { items: [user], total: 1 });
  t.like(await api.call('DELETE', `/ip-lists/${list.id}`), {
    status: 409,
    body: { code: 'IP_LIST_IN_USE', data: { users: [user.name] } },
  });
  await update(site.id, { cacheRules: [] });
  await api.ok('DELETE', `/ip-lists/${list.id}`);
});

test('a rollback puts cache rules back, and is refused once a list of theirs is gone', async (t) => {
  const list = await ipList();
  const own = await api.cluster('rolled');
  const { id } = await create({ clusterId: own });
  const listed = await api.ok('PATCH', `/sites/${id}`, { cacheRules: [{ expression: `ip.src in $${list.name}` }] });
  const plain = await api.ok('PATCH', `/sites/${id}`, { cacheRules: [{ edgeTtlSeconds: 60 }] });
  const roll = (revision: string) => api.call('POST', `/clusters/${own}/rollback`, { revision, restoreSettings: true });
  t.like(await roll(listed.revision), { status: 200 });
  t.like(await api.ok('GET', `/sites/${id}`), { cacheRules: listed.site.cacheRules });
  t.is((await api.ok('GET', `/ip-lists/${list.id}/usage`)).total, 1);
  t.is((await roll(plain.revision)).status, 200);
  t.like(await api.ok('GET', `/sites/${id}`), { cacheRules: plain.site.cacheRules });
  await api.ok('DELETE', `/ip-lists/${list.id}`);
  t.like(await roll(listed.revision), { status: 409, body: { code: 'ROLLBACK_RESOURCE_UNAVAILABLE' } });
});

test('a machine enables no site whose cache a node lacks; features name what is missing', async (t) => {
  const other = await api.cluster('uncached');
  await api.node(other, 'old', { features: ['site-content-v1'] });
  const { site } = await api.ok('POST', '/sites', {
    clusterId: other,
    domains: [domain()],
    origins,
    cacheRules: [{}],
    cacheSettings: { purgeMethod: { enabled: true, key: 'secret-key-of-purge' } },
  });
  const missing = { available: false, reason: 'nodes' };
  t.like(await api.ok('GET', `/sites/${site.id}/features`), { cache: missing, purgeMethod: missing });
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  const call: Call = { ...systemCall('test'), actor: { type: 'service_account', id: 'x', name: 'x' } };
  const error = await t.throwsAsync(() =>
    setSiteEnabled(running.running.runtime, { id: site.id, enabled: true }, call),
  );
  const data = { features: 'cache-v1,purge-method-v1', nodes: 'old' };
  t.like(error, { type: 'NODE_CAPABILITY_REQUIRED', data } as object);
});
