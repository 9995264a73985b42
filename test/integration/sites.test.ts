import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import type { Knex } from 'knex';
import { DEFAULT_CACHE_SETTINGS } from '../../contract/resources/site-cache.ts';
import {
  BalancePolicy,
  DomainForm,
  SiteContentSchema,
  SiteRequestsSchema,
  SiteSchema,
} from '../../proto/gen/svc/config/v1/site_pb.js';
import { type Call, systemCall } from '../../runtime/call.ts';
import { setSiteEnabled } from '../../services/sites/set-site-enabled.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let sql: Knex;
let clusterId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  sql = api.sql;
  clusterId = await api.cluster('sites');
});
test.after.always('stop', () => running?.stop());

let last = 0;
/** A domain no other test uses. */
function domain(): string {
  last += 1;
  return `s${last}.example`;
}

const origin = { address: 'origin.example' };
const input = (more: Body = {}) => ({ clusterId, domains: [domain()], origins: [origin], ...more });
const create = async (more: Body = {}): Promise<Body> => (await api.ok('POST', '/sites', input(more))).site;
const compiled = async (id: string, cluster = clusterId) => {
  const body = await api.entry(cluster, 'site', id);
  return body && fromBinary(SiteSchema, body);
};

const HEALTH_CHECK = {
  enabled: false,
  path: '/',
  method: 'GET',
  expectedStatusMin: 200,
  expectedStatusMax: 399,
  host: '',
  intervalSeconds: 30,
  timeoutSeconds: 5,
  healthyThreshold: 2,
  unhealthyThreshold: 3,
};

/** Checks that no site may have, with the field at fault. */
const UNHEALTHY_CHECKS: [field: string, check: object][] = [
  ['path', { path: 'up' }],
  ['path', { path: '/a b' }],
  ['path', { path: '/a#b' }],
  ['path', { path: `/${'a'.repeat(1024)}` }],
  ['method', { method: 'POST' }],
  ['host', { host: 'a b' }],
  ['expectedStatusMin', { expectedStatusMin: 99 }],
  ['expectedStatusMax', { expectedStatusMax: 600 }],
  ['expectedStatusMax', { expectedStatusMin: 300, expectedStatusMax: 299 }],
  ['intervalSeconds', { intervalSeconds: 4 }],
  ['intervalSeconds', { intervalSeconds: 301 }],
  ['timeoutSeconds', { timeoutSeconds: 0 }],
  ['timeoutSeconds', { intervalSeconds: 60, timeoutSeconds: 61 }],
  ['timeoutSeconds', { intervalSeconds: 5, timeoutSeconds: 6 }],
  ['healthyThreshold', { healthyThreshold: 11 }],
  ['unhealthyThreshold', { unhealthyThreshold: 0 }],
  ['port', { port: 80 }],
];

test('a site is created with every default, audited and published', async (t) => {
  const name = domain();
  const answer = await api.call('POST', '/sites', { clusterId, domains: [name], origins: [{ address: '8.8.8.8' }] });
  t.is(answer.status, 201);
  const { site, revision } = answer.body;
  t.regex(revision, /^[0-9]+$/);
  t.is(answer.headers.get('x-svc-change'), `${clusterId}=${revision}`);
  const { id, createdAt, updatedAt, ...rest } = site;
  t.deepEqual(rest, {
    name,
    enabled: true,
    clusterId,
    clusterName: 'sites',
    domains: [name],
    origins: [
      {
        address: '8.8.8.8',
        scheme: 'http',
        port: 80,
        weight: 1,
        backup: false,
        hostHeader: '',
        sni: '',
        group: '',
      },
    ],
    originSettings: {
      sessionAffinity: { enabled: false, ttlSeconds: 3600 },
      policy: 'weighted_random',
      tlsVerify: true,
      websocket: true,
      keepalive: true,
      maxFails: 3,
      recoverySeconds: 30,
      tries: 3,
      statusRetry: true,
      connectTimeoutMs: 10_000,
      sendTimeoutMs: 60_000,
      readTimeoutMs: 60_000,
      keepaliveIdleSeconds: 60,
      keepaliveMaxRequests: 1000,
      activeHealthCheck: HEALTH_CHECK,
      protocol: 'http1',
      grpc: false,
    },
    cacheRules: [],
    cacheSettings: DEFAULT_CACHE_SETTINGS,
    contentSettings: {
      charset: { name: 'off', force: false, uppercase: false },
      requestBodyLimit: 104_857_600,
      pathNormalization: true,
      requestBuffering: true,
    },
    ports: { http: [80], https: [443] },
    delivery: {
      state: 'pending',
      totalNodes: 0,
      servingNodes: 0,
      currentNodes: 0,
      blocked: [],
      unserved: true,
      unknown: false,
      canary: null,
    },
  });
  t.is(createdAt, updatedAt);
  t.deepEqual(await api.ok('GET', `/sites/${id}`), site);
  t.deepEqual(
    (await api.audit(id)).map(({ action }) => action),
    ['site.create'],
  );
  const row = await sql('config_revision').where({ cluster_id: clusterId, number: revision }).first();
  t.like(row, { reason: 'site_created', params: { site: name, siteId: id } });
});

test('the entry of a site carries what the edge needs', async (t) => {
  const name = domain();
  const site = await create({
    domains: [name, `*.${name}`, `.${name}`, `~${name.replace('.', '\\.')}`],
    origins: [
      { address: '2001:4860::1', scheme: 'https', weight: 7, hostHeader: 'a.com:81', sni: 'b.com' },
      { address: 'backup.example', port: 81, backup: true, group: 'g_1' },
    ],
    originSettings: { policy: 'round_robin', tries: 1, statusRetry: false },
    contentSettings: { requestBodyLimit: 0 },
  });
  const entry = (await compiled(site.id))!;
  t.deepEqual(
    entry.domains.map(({ form, name: text }) => [form, text]),
    [
      [DomainForm.EXACT, name],
      [DomainForm.WILDCARD, name],
      [DomainForm.SUFFIX, name],
      [DomainForm.PATTERN, name.replace('.', '\\.')],
    ],
  );
  t.like(entry.origins[0], {
    address: '2001:4860::1',
    port: 443,
    https: true,
    weight: 7,
    hostHeader: 'a.com:81',
    sni: 'b.com',
  });
  t.like(entry.origins[1], { address: 'backup.example', port: 81, https: false, backup: true, group: 'g_1' });
  t.like(entry.pool!, { policy: BalancePolicy.ROUND_ROBIN, tries: 1, statusRetry: false, websocket: true });
  t.is(entry.requestBodyLimit, 0n);
  t.is(entry.createdAtMs, BigInt(Date.parse(site.createdAt)));
  const row = await sql('config_entry')
    .where({ cluster_id: clusterId, kind: 'site', resource_id: site.id, to_revision: null })
    .first();
  t.deepEqual(row.features, ['domains-v2', 'rules-v2']);
});

test('the name defaults to the first domain, cut at 100 characters', async (t) => {
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example`;
  t.is((await create({ domains: [long] })).name, long.slice(0, 100));
  t.is((await create({ name: '  My shop ' })).name, 'My shop');
});

test('without a cluster id the oldest cluster serves the site; a missing one is refused', async (t) => {
  const site = await create({ clusterId: undefined });
  t.is(site.clusterName, 'default');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'POST', '/sites', input({ clusterId: 'nobody' }));
});

test('wrong fields are refused by name, and nothing is written', async (t) => {
  const settings = (more: Body) => input({ originSettings: more });
  const withOrigin = (more: Body) => input({ origins: [{ ...origin, ...more }] });
  const refused: readonly (readonly [string, Body])[] = [
    ['/domains', { clusterId, origins: [origin] }],
    ['/origins', { clusterId, domains: [domain()] }],
    ['/domains', input({ domains: [] })],
    ['/domains', input({ domains: Array.from({ length: 51 }, domain) })],
    ['/domains', input({ domains: Array.from({ length: 11 }, (_, index) => `~p${index}`) })],
    ['/domains/0', input({ domains: [1] })],
    ['/origins', input({ origins: [] })],
    ['/origins', input({ origins: Array.from({ length: 33 }, () => origin) })],
    ['/origins', withOrigin({ group: 'other' })],
    ['/origins', withOrigin({ backup: true })],
    ['/origins/0/address', input({ origins: [{}] })],
    ['/origins/0/address', withOrigin({ address: '' })],
    ['/origins/0/address', withOrigin({ address: '127.1' })],
    ['/origins/0/address', withOrigin({ address: 'a.com:80' })],
    ['/origins/0/address', withOrigin({ address: 'a'.repeat(254) })],
    ['/origins/0/port', withOrigin({ port: 0 })],
    ['/origins/0/port', withOrigin({ port: 65_536 })],
    ['/origins/0/port', withOrigin({ port: '80' })],
    ['/origins/0/scheme', withOrigin({ scheme: 'ftp' })],
    ['/origins/0/weight', withOrigin({ weight: 0 })],
    ['/origins/0/weight', withOrigin({ weight: 101 })],
    ['/origins/0/backup', withOrigin({ backup: 1 })],
    ['/origins/0/sni', withOrigin({ sni: '192.0.2.1' })],
    ['/origins/0/group', withOrigin({ group: 'A' })],
    ['/origins/0/group', withOrigin({ group: 'a'.repeat(33) })],
    ['/origins/0/s3', withOrigin({ s3: null })],
    ['/name', input({ name: '' })],
    ['/name', input({ name: '   ' })],
    ['/name', input({ name: 'a'.repeat(101) })],
    ['/name', input({ name: 'a\u0000b' })],
    ['/name', input({ name: null })],
    ['/contentSettings/requestBodyLimit', input({ contentSettings: { requestBodyLimit: -1 } })],
    ['/contentSettings/requestBodyLimit', input({ contentSettings: { requestBodyLimit: 10_737_418_241 } })],
    ['/contentSettings/requestBuffering', input({ contentSettings: { requestBuffering: 'off' } })],
    ['/originSettings/policy', settings({ policy: 'random' })],
    ['/originSettings/tries', settings({ tries: 0 })],
    ['/originSettings/tries', settings({ tries: 6 })],
    ['/originSettings/maxFails', settings({ maxFails: 0 })],
    ['/originSettings/maxFails', settings({ maxFails: 101 })],
    ['/originSettings/recoverySeconds', settings({ recoverySeconds: 0 })],
    ['/originSettings/recoverySeconds', settings({ recoverySeconds: 3601 })],
    ['/originSettings/connectTimeoutMs', settings({ connectTimeoutMs: 99 })],
    ['/originSettings/connectTimeoutMs', settings({ connectTimeoutMs: 120_001 })],
    ['/originSettings/sendTimeoutMs', settings({ sendTimeoutMs: 99 })],
    ['/originSettings/readTimeoutMs', settings({ readTimeoutMs: 3_600_001 })],
    ['/originSettings/keepaliveIdleSeconds', settings({ keepaliveIdleSeconds: 0 })],
    ['/originSettings/keepaliveMaxRequests', settings({ keepaliveMaxRequests: 100_001 })],
    ['/originSettings/statusRetry', settings({ statusRetry: 'yes' })],
    ...UNHEALTHY_CHECKS.map(([field, check]): [string, object] => [
      `/originSettings/activeHealthCheck/${field}`,
      settings({ activeHealthCheck: check }),
    ]),
    // Not configured by this version: refused by name instead of being ignored.
    ['/originSettings/sessionAffinity/enabled', settings({ sessionAffinity: { enabled: 1 } })],
    ['/originSettings/sessionAffinity/ttlSeconds', settings({ sessionAffinity: { ttlSeconds: 59 } })],
    ['/originSettings/sessionAffinity/ttlSeconds', settings({ sessionAffinity: { ttlSeconds: 604_801 } })],
    ['/originSettings/sessionAffinity/path', settings({ sessionAffinity: { path: '/' } })],
    ['/contentSettings/charset/name', input({ contentSettings: { charset: { name: 'utf-16' } } })],
    ['/contentSettings/charset/force', input({ contentSettings: { charset: { force: 'yes' } } })],
    ['/contentSettings/charset/encoding', input({ contentSettings: { charset: { encoding: 'gbk' } } })],
    ['/originSettings/protocol', settings({ protocol: 'http3' })],
    ['/originSettings/grpc', settings({ grpc: 'yes' })],
    ['/cacheRules/0/ttl', input({ cacheRules: [{ ttl: 60 }] })],
    ['/cacheSettings/ttl', input({ cacheSettings: { ttl: 60 } })],
    ['/ports/other', input({ ports: { other: [80] } })],
    ['/enabled', input({ enabled: false })],
  ];
  const count = async () => (await api.ok('GET', `/sites?clusterId=${clusterId}&pageSize=1`)).total;
  const before = await sql('site').whereLike('name', 'never%').select('id');
  for (const [field, body] of refused) await api.badField(t, field, 'POST', '/sites', { name: 'never', ...body });
  t.deepEqual(await sql('site').whereLike('name', 'never%').select('id'), before);
  t.true((await count()) >= 0);
});

test('fields are accepted at their limits', async (t) => {
  const many = Array.from({ length: 50 }, domain);
  const low = await create({
    domains: many,
    originSettings: {
      tries: 1,
      maxFails: 1,
      recoverySeconds: 1,
      connectTimeoutMs: 100,
      sendTimeoutMs: 100,
      readTimeoutMs: 100,
      keepaliveIdleSeconds: 1,
      keepaliveMaxRequests: 1,
    },
  });
  t.deepEqual(low.domains, many);
  const high = await create({
    name: 'a'.repeat(100),
    origins: Array.from({ length: 32 }, (_, index) => ({ ...origin, weight: 100, port: 65_535 - index })),
    contentSettings: { requestBodyLimit: 10_737_418_240 },
    originSettings: {
      tries: 5,
      maxFails: 100,
      recoverySeconds: 3600,
      connectTimeoutMs: 120_000,
      sendTimeoutMs: 3_600_000,
      readTimeoutMs: 3_600_000,
      keepaliveIdleSeconds: 3600,
      keepaliveMaxRequests: 100_000,
    },
  });
  t.is(high.origins.length, 32);
  const patterns = Array.from({ length: 10 }, (_, index) => `~limit${index}`);
  t.deepEqual((await create({ domains: patterns })).domains, patterns);
});

test('invalid domains and host headers have their own errors', async (t) => {
  for (const bad of ['a', 'a b.com', '1.2.3.4', '~A', '*.*.a.com']) {
    const data = await api.refused(t, [400, 'DOMAIN_INVALID'], 'POST', '/sites', input({ domains: [domain(), bad] }));
    t.deepEqual(data, { domain: bad, path: '/domains/1' });
  }
  for (const bad of ['a b', 'a/b', '[::1]', 'a:0', 'x'.repeat(260)]) {
    const body = input({ origins: [{ ...origin, hostHeader: bad }] });
    const data = await api.refused(t, [400, 'ORIGIN_HOST_HEADER_INVALID'], 'POST', '/sites', body);
    t.deepEqual(data, { hostHeader: bad, path: '/origins/0/hostHeader' });
  }
});

test('international names and underscores are taken in domains and host headers, and published as punycode', async (t) => {
  const name = domain();
  const hostHeader = 'München.example:8443';
  const domains = [`my_shop.${name}`, `_a.${name}`, `*.b_c.${name}`, `ü_d.${name}`];
  const site = await create({ domains, origins: [{ ...origin, hostHeader, sni: 'my_origin.example' }] });
  t.deepEqual(site.domains, [...domains.slice(0, 3), `xn--_d-wka.${name}`]);
  t.like(site.origins[0], { hostHeader: 'xn--mnchen-3ya.example:8443', sni: 'my_origin.example' });
  const entry = (await compiled(site.id))!;
  t.is(entry.origins[0]!.hostHeader, 'xn--mnchen-3ya.example:8443');
  t.deepEqual(
    entry.domains.map(({ name: text }) => text),
    [`my_shop.${name}`, `_a.${name}`, `b_c.${name}`, `xn--_d-wka.${name}`],
  );
});

test('domains are normalised, and unique per name and form on all clusters', async (t) => {
  const name = domain();
  const first = await create({ domains: [`HTTPS://${name.toUpperCase()}:443/x`, name, `*.${name}`] });
  t.deepEqual(first.domains, [name, `*.${name}`]);
  const elsewhere = await api.cluster('other');
  const taken = { clusterId: elsewhere, domains: [domain(), `*.${name}`, name], origins: [origin] };
  const data = await api.refused(t, [409, 'DOMAIN_IN_USE'], 'POST', '/sites', taken);
  t.deepEqual(data, { domains: [`*.${name}`, name] });
  // Another form of the same name is another domain.
  await create({ domains: [`.${name}`] });
  t.deepEqual(await api.reasons(elsewhere), ['cluster_created']);
  await api.ok('DELETE', `/sites/${first.id}`);
  await api.ok('POST', '/sites', taken);
});

test('two administrators racing for domains: one has them all, the other is told', async (t) => {
  const names = [domain(), domain(), domain()];
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      api.call('POST', '/sites', input({ domains: index % 2 ? names : [...names].reverse() })),
    ),
  );
  t.is(answers.filter(({ status }) => status === 201).length, 1);
  for (const { status, body } of answers.filter((answer) => answer.status !== 201)) {
    t.is(`${status} ${body.code}`, '409 DOMAIN_IN_USE');
    t.deepEqual([...body.data.domains].sort(), [...names].sort());
  }
});

test('PATCH changes the given fields and publishes once', async (t) => {
  const site = await create({ originSettings: { tries: 5, statusRetry: false, maxFails: 9 } });
  const added = domain();
  const { site: after, revision } = await api.ok('PATCH', `/sites/${site.id}`, {
    name: 'Renamed',
    domains: [added],
    origins: [{ address: '1.1.1.1', port: 8080 }],
    contentSettings: { requestBodyLimit: 1 },
  });
  t.regex(revision, /^[0-9]+$/);
  t.like(after, { name: 'Renamed', domains: [added], contentSettings: { requestBodyLimit: 1 } });
  t.is(after.origins[0].port, 8080);
  t.deepEqual(after.originSettings, site.originSettings);
  t.is(after.createdAt, site.createdAt);
  t.true(Date.parse(after.updatedAt) > Date.parse(site.updatedAt));
  const audit = (await api.audit(site.id)).at(-1)!;
  t.is(audit.action, 'site.update');
  t.deepEqual(audit.metadata.changed, ['name', 'domains', 'origins', 'contentSettings']);
  t.is((await compiled(site.id))!.name, 'Renamed');
  t.is((await sql('site_label').where({ site_id: site.id }).first()).name, 'Renamed');
  // The old domain is free again.
  await create({ domains: site.domains });
});

test('PATCH keeps omitted tries, statusRetry and sessionAffinity, and replaces the rest of originSettings', async (t) => {
  const sessionAffinity = { enabled: false, ttlSeconds: 600 };
  const given = { tries: 5, statusRetry: false, maxFails: 9, websocket: false, sessionAffinity: { ttlSeconds: 600 } };
  const site = await create({ originSettings: given });
  t.like(site.originSettings, { tries: 5, sessionAffinity });
  const patch = async (originSettings: Body) =>
    (await api.ok('PATCH', `/sites/${site.id}`, { originSettings })).site.originSettings;
  const kept = { tries: 5, statusRetry: false, sessionAffinity };
  t.like(await patch({ keepalive: false }), { ...kept, keepalive: false, maxFails: 3, websocket: true });
  t.like(await patch({ tries: 2 }), { ...kept, tries: 2, keepalive: true });
  t.deepEqual((await patch({ sessionAffinity: { enabled: true } })).sessionAffinity, {
    enabled: true,
    ttlSeconds: 600,
  });
  t.deepEqual((await patch({ maxFails: 4 })).sessionAffinity, { enabled: true, ttlSeconds: 600 });
  t.deepEqual((await patch({ sessionAffinity: { ttlSeconds: 60 } })).sessionAffinity, {
    enabled: true,
    ttlSeconds: 60,
  });
});

test('gRPC requires HTTP/2; PATCH keeps an omitted protocol and grpc; only a site with HTTP/2 needs its capability', async (t) => {
  const refused = async (method: string, path: string, originSettings: Body) => {
    const body = method === 'POST' ? input({ originSettings }) : { originSettings };
    const data = await api.refused(t, [400, 'ORIGIN_GRPC_REQUIRES_HTTP2'], method, path, body);
    t.is(data.path, '/originSettings/grpc');
  };
  await refused('POST', '/sites', { grpc: true });
  const site = await create({ originSettings: { protocol: 'http2', grpc: true, maxFails: 9 } });
  const state = async () => {
    const row = await sql('config_entry').where({ kind: 'site', resource_id: site.id, to_revision: null }).first();
    const { http2, grpc } = (await compiled(site.id))!.pool!;
    return { features: row.features, http2, grpc };
  };
  const patch = async (originSettings: Body) =>
    (await api.ok('PATCH', `/sites/${site.id}`, { originSettings })).site.originSettings;
  t.deepEqual(await state(), { features: ['origin-http2-v1'], http2: true, grpc: true });
  t.like(await patch({ keepalive: false }), { protocol: 'http2', grpc: true, maxFails: 3 });
  await refused('PATCH', `/sites/${site.id}`, { protocol: 'http1' });
  t.like(await patch({ grpc: false }), { protocol: 'http2', grpc: false });
  t.like(await patch({ protocol: 'http1' }), { protocol: 'http1', grpc: false });
  t.deepEqual(await state(), { features: [], http2: false, grpc: false });
  await refused('PATCH', `/sites/${site.id}`, { grpc: true });

  // A site that was saved before the settings came.
  await sql('site')
    .where({ id: site.id })
    .update({ origin_settings: sql.raw("origin_settings - 'protocol' - 'grpc'") });
  t.like((await api.ok('GET', `/sites/${site.id}`)).originSettings, { protocol: 'http1', grpc: false });
});

test('only a site with session affinity needs its capability', async (t) => {
  const site = await create({ originSettings: { sessionAffinity: { enabled: true, ttlSeconds: 7200 } } });
  const entry = async () => {
    const row = await sql('config_entry').where({ kind: 'site', resource_id: site.id, to_revision: null }).first();
    const { pool } = fromBinary(SiteSchema, (await api.entry(clusterId, 'site', site.id))!);
    return { features: row.features, ttl: pool!.affinityTtlSeconds };
  };
  t.deepEqual(await entry(), { features: ['session-affinity-v1'], ttl: 7200 });
  await api.ok('PATCH', `/sites/${site.id}`, { originSettings: { sessionAffinity: { enabled: false } } });
  t.deepEqual(await entry(), { features: [], ttl: 0 });

  // A site that was saved before the setting came.
  await sql('site')
    .where({ id: site.id })
    .update({ origin_settings: sql.raw("origin_settings - 'sessionAffinity'") });
  const before = await api.ok('GET', `/sites/${site.id}`);
  t.deepEqual(before.originSettings.sessionAffinity, { enabled: false, ttlSeconds: 3600 });
});

test('a charset is published as it is sent, by an entry of its own, and kept when omitted', async (t) => {
  const site = await create();
  const entry = async () => {
    const body = await api.entry(clusterId, 'site-content', site.id);
    return body && fromBinary(SiteContentSchema, body);
  };
  t.is(await entry(), undefined);
  for (const [charset, saved, sent] of [
    [{ name: 'gbk' }, { name: 'gbk', force: false, uppercase: false }, { charset: 'gbk', forceCharset: false }],
    [{ force: true }, { name: 'gbk', force: true, uppercase: false }, { charset: 'gbk', forceCharset: true }],
    [{ uppercase: true }, { name: 'gbk', force: true, uppercase: true }, { charset: 'GBK', forceCharset: true }],
    [undefined, { name: 'gbk', force: true, uppercase: true }, { charset: 'GBK', forceCharset: true }],
    [{ name: 'off' }, { name: 'off', force: true, uppercase: true }, undefined],
  ] as const) {
    const contentSettings = { requestBodyLimit: 1, ...(charset && { charset }) };
    const after = (await api.ok('PATCH', `/sites/${site.id}`, { contentSettings })).site;
    t.deepEqual(after.contentSettings.charset, saved);
    t.like((await entry()) ?? { charset: undefined }, sent ?? { charset: undefined });
  }
  const made = await create({ contentSettings: { charset: { name: 'utf-8' } } });
  const row = await sql('config_entry').where({ kind: 'site-content', resource_id: made.id }).first();
  t.deepEqual(row.features, ['site-content-v1']);
});

test('PATCH keeps an omitted activeHealthCheck and its omitted fields; only a site with checks needs the capability', async (t) => {
  const host = 'check.example:8080';
  const activeHealthCheck = { enabled: true, path: '/up?deep=1', method: 'HEAD', host: 'Check.example:8080' };
  const site = await create({ originSettings: { maxFails: 9, activeHealthCheck } });
  const saved = { ...HEALTH_CHECK, ...activeHealthCheck, host };
  t.deepEqual(site.originSettings.activeHealthCheck, saved);
  const needed = async () =>
    (await sql('config_entry').where({ kind: 'site', resource_id: site.id, to_revision: null }).first()).features;
  const patch = async (originSettings: object) =>
    (await api.ok('PATCH', `/sites/${site.id}`, { originSettings })).site.originSettings;
  t.deepEqual(await needed(), ['active-health-v1']);
  const { $typeName: _, ...told } = (await compiled(site.id))!.pool!.activeHealthCheck!;
  t.deepEqual(told, {
    path: '/up?deep=1',
    head: true,
    expectedStatusMin: 200,
    expectedStatusMax: 399,
    host,
    intervalSeconds: 30,
    timeoutSeconds: 5,
    healthyThreshold: 2,
    unhealthyThreshold: 3,
  });
  t.like(await patch({ keepalive: false }), { maxFails: 3, activeHealthCheck: saved });
  const slower = { ...saved, intervalSeconds: 60 };
  t.deepEqual((await patch({ activeHealthCheck: { intervalSeconds: 60 } })).activeHealthCheck, slower);
  // Judged with the fields that are kept.
  await api.badField(t, '/originSettings/activeHealthCheck/timeoutSeconds', 'PATCH', `/sites/${site.id}`, {
    originSettings: { activeHealthCheck: { intervalSeconds: 5, timeoutSeconds: 6 } },
  });
  t.deepEqual((await patch({ activeHealthCheck: { enabled: false } })).activeHealthCheck, {
    ...slower,
    enabled: false,
  });
  t.deepEqual(await needed(), []);
  t.is((await compiled(site.id))!.pool!.activeHealthCheck, undefined);
  // As a site of before was saved.
  await sql.raw(`update site set origin_settings = origin_settings - 'activeHealthCheck' where id = ?`, [site.id]);
  t.deepEqual((await api.ok('GET', `/sites/${site.id}`)).originSettings.activeHealthCheck, HEALTH_CHECK);
});

test('path normalization and request buffering are on for a new site and kept when omitted', async (t) => {
  const entry = async (id: string) => {
    const body = await api.entry(clusterId, 'site-requests', id);
    const { pathNormalization, streamBodies } = fromBinary(SiteRequestsSchema, body ?? new Uint8Array());
    return { there: body !== undefined, pathNormalization, streamBodies };
  };
  const site = await create();
  let saved = site.contentSettings;
  t.like(await entry(site.id), { pathNormalization: true, streamBodies: false });
  for (const [patch, there] of [
    [{ pathNormalization: false }, false],
    [{ requestBodyLimit: 5 }, false],
    [{ requestBuffering: false }, true],
    [{ requestBodyLimit: 6 }, true],
    [{ pathNormalization: true }, true],
    [{ requestBuffering: true }, true],
    [{ pathNormalization: false }, false],
  ] as const) {
    saved = { ...saved, ...patch };
    const { contentSettings } = (await api.ok('PATCH', `/sites/${site.id}`, { contentSettings: patch })).site;
    t.deepEqual(contentSettings, saved);
    const { pathNormalization, requestBuffering } = saved;
    t.deepEqual(await entry(site.id), { there, pathNormalization, streamBodies: !requestBuffering });
  }
  t.false((await entry((await create({ contentSettings: { pathNormalization: false } })).id)).there);

  await sql('site')
    .where({ id: site.id })
    .update({ content_settings: JSON.stringify({ requestBodyLimit: 7 }) });
  const before = (await api.ok('GET', `/sites/${site.id}`)).contentSettings;
  const charset = { name: 'off', force: false, uppercase: false };
  t.deepEqual(before, { charset, requestBodyLimit: 7, pathNormalization: false, requestBuffering: true });
});

test('PATCH with nothing new writes nothing', async (t) => {
  const site = await create();
  const { name, domains, origins, originSettings, contentSettings } = site;
  for (const body of [{}, { name, domains, origins, originSettings, contentSettings }]) {
    const answer = await api.call('PATCH', `/sites/${site.id}`, body);
    t.deepEqual(answer.body, { site, revision: null });
    t.is(answer.headers.get('x-svc-change'), null);
  }
  t.is((await api.audit(site.id)).length, 1);
});

test('PATCH refuses what it cannot change, a stale view, a missing site', async (t) => {
  const site = await create();
  const path = `/sites/${site.id}`;
  await api.badField(t, '/clusterId', 'PATCH', path, { clusterId });
  await api.badField(t, '/enabled', 'PATCH', path, { enabled: false });
  await api.badField(t, '/expectedUpdatedAt', 'PATCH', path, { expectedUpdatedAt: 'yesterday' });
  const stale = { name: 'x', expectedUpdatedAt: '2020-01-01T00:00:00.000Z' };
  const data = await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, stale);
  t.deepEqual(data, { updatedAt: site.updatedAt });
  await api.ok('PATCH', path, { name: 'x', expectedUpdatedAt: site.updatedAt });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, { name: 'y', expectedUpdatedAt: site.updatedAt });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PATCH', '/sites/nobody', { name: 'x' });
  const taken = await create();
  const inUse = await api.refused(t, [409, 'DOMAIN_IN_USE'], 'PATCH', path, { domains: taken.domains });
  t.deepEqual(inUse, { domains: taken.domains });
  t.deepEqual((await api.ok('GET', path)).domains, site.domains);
});

test('enabling and disabling: revision and audit once per change, none for the same value', async (t) => {
  const site = await create();
  const path = `/sites/${site.id}/enabled`;
  const disabled = await api.ok('PUT', path, { enabled: false, expectedUpdatedAt: site.updatedAt });
  t.false(disabled.site.enabled);
  t.is(disabled.site.delivery.state, 'disabled');
  t.truthy(disabled.revision);
  const entry = (await compiled(site.id))!;
  t.true(entry.disabled);
  t.is(entry.domains.length, 1);
  t.deepEqual(entry.origins, []);
  // The same value: nothing happens, and expectedUpdatedAt is not compared.
  const again = await api.ok('PUT', path, { enabled: false, expectedUpdatedAt: '2020-01-01T00:00:00Z' });
  t.deepEqual(again, { site: disabled.site, revision: null });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', path, { enabled: true, expectedUpdatedAt: site.updatedAt });
  const enabled = await api.ok('PUT', path, { enabled: true });
  t.true(enabled.site.enabled);
  t.false((await compiled(site.id))!.disabled);
  t.deepEqual(
    (await api.audit(site.id)).map(({ action }) => action),
    ['site.create', 'site.disable', 'site.enable'],
  );
  const reasons = await sql('config_revision').where({ cluster_id: clusterId }).whereJsonObject('params', {
    site: site.name,
    siteId: site.id,
  });
  t.deepEqual(reasons.map((row) => row.reason).sort(), ['site_created', 'site_disabled', 'site_enabled']);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PUT', '/sites/nobody/enabled', { enabled: true });
  await api.badField(t, '/enabled', 'PUT', path, {});
  await api.badField(t, '/enabled', 'PUT', path, { enabled: 'true' });
});

test('ten parallel disables make one revision', async (t) => {
  const site = await create();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false })),
  );
  t.is(answers.filter(({ revision }) => revision !== null).length, 1);
});

test('a deleted site is gone from lists, domains and the configuration', async (t) => {
  const site = await create();
  const { revision } = await api.ok('DELETE', `/sites/${site.id}`);
  t.regex(revision, /^[0-9]+$/);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', `/sites/${site.id}`);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'DELETE', `/sites/${site.id}`);
  t.is(await compiled(site.id), undefined);
  t.is((await api.audit(site.id)).at(-1)!.action, 'site.delete');
  const row = await sql('config_revision').where({ cluster_id: clusterId, number: revision }).first();
  t.is(row.reason, 'site_deleted');
  await create({ domains: site.domains });
});

test('list: search over name and any domain, cluster, newest first, pages', async (t) => {
  const cluster = await api.cluster('listed');
  const make = async (name: string, domains: string[]) => (await create({ clusterId: cluster, name, domains })).id;
  const a = await make('Alpha 100%', ['alpha.listed.example', '*.beta.listed.example']);
  const b = await make('Bravo_x', ['münchen.listed.example']);
  const c = await make('Charlie', ['alpha-two.listed.example']);
  const find = async (query: string) => {
    const page = await api.ok('GET', `/sites?clusterId=${cluster}&${query}`);
    t.is(page.total >= page.items.length, true);
    return page.items.map((site: Body) => site.id);
  };
  t.deepEqual(await find(''), [c, b, a]);
  t.deepEqual(await find('search=ALPHA'), [c, a]);
  t.deepEqual(await find('search=beta.listed'), [a]);
  t.deepEqual(await find(`search=${encodeURIComponent('münchen')}`), [b]);
  t.deepEqual(await find('search=xn--'), [b]);
  t.deepEqual(await find(`search=${encodeURIComponent('100%')}`), [a]);
  t.deepEqual(await find(`search=${encodeURIComponent('%')}`), [a]);
  t.deepEqual(await find('search=_x'), [b]);
  t.deepEqual(await find(`search=${encodeURIComponent('\\')}`), []);
  t.deepEqual(await find('search=nothing'), []);
  t.deepEqual(await find('pageSize=1&page=2'), [b]);
  t.deepEqual(await find('pageSize=2&page=2'), [a]);
  t.is((await api.ok('GET', `/sites?clusterId=${cluster}&pageSize=1`)).total, 3);
  await api.badField(t, '/search', 'GET', `/sites?search=${'a'.repeat(101)}`);
  await api.badField(t, '/pageSize', 'GET', '/sites?pageSize=101');
  await api.badField(t, '/page', 'GET', '/sites?page=0');
  await api.badField(t, '/order', 'GET', '/sites?order=name');
});

test('delivery follows the nodes, within a second', async (t) => {
  const cluster = await api.cluster('delivery');
  const site = await create({ clusterId: cluster });
  const first = (await sql('cluster_head').where({ cluster_id: cluster }).first()) as Body;
  const nodes = [
    await api.node(cluster, 'n1'),
    await api.node(cluster, 'n2'),
    await api.node(cluster, 'off', { online: false }),
    await api.node(cluster, 'disabled', { status: 'disabled' }),
  ];
  const report = (node: number, revision: string | number, more: Body = {}) =>
    sql('node_state')
      .where({ node_id: nodes[node] })
      .update({ epoch: first.epoch, revision, ...more });
  const reaches = async (expected: Body) => {
    const probe = async () => {
      const { delivery } = await api.ok('GET', `/sites/${site.id}`);
      return Object.entries(expected).every(([field, value]) => delivery[field] === value);
    };
    t.true(await eventually(probe, { what: `the delivery ${JSON.stringify(expected)}` }));
  };
  await reaches({ state: 'pending', totalNodes: 2, servingNodes: 0, currentNodes: 0 });
  await report(0, first.revision);
  await reaches({ state: 'partial', totalNodes: 2, servingNodes: 1, currentNodes: 1 });
  await report(1, first.revision);
  await reaches({ state: 'live', totalNodes: 2, servingNodes: 2, currentNodes: 2 });
  await report(1, first.revision, { data_plane_healthy: false });
  await reaches({ state: 'partial', servingNodes: 2, currentNodes: 1 });
  await report(1, first.revision, { data_plane_healthy: true, epoch: 1 });
  await reaches({ state: 'partial', servingNodes: 1, currentNodes: 1 });
  await report(1, first.revision);
  await reaches({ state: 'live' });
  const patched = await api.ok('PATCH', `/sites/${site.id}`, { name: 'Next' });
  t.like(patched.site.delivery, { state: 'partial', totalNodes: 2, servingNodes: 2, currentNodes: 0 });
  await reaches({ state: 'partial', servingNodes: 2, currentNodes: 0 });
  // A node that could not apply the new version and serves the old one; a node that serves none.
  const failed = (running: boolean) => JSON.stringify([{ kind: 'site', id: site.id, running, reason: 'x' }]);
  const { revision } = (await sql('cluster_head').where({ cluster_id: cluster }).first()) as Body;
  await report(0, revision, { failed: failed(true) });
  await report(1, revision);
  await reaches({ state: 'partial', servingNodes: 2, currentNodes: 1 });
  await report(0, revision, { failed: failed(false) });
  await reaches({ state: 'partial', servingNodes: 1, currentNodes: 1 });
  await report(0, revision, { failed: '[]' });
  await reaches({ state: 'live' });
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  await reaches({ state: 'disabled', servingNodes: 2, currentNodes: 0 });
  const head = (await sql('cluster_head').where({ cluster_id: cluster }).first()) as Body;
  await report(0, head.revision);
  await reaches({ state: 'disabled', servingNodes: 1, currentNodes: 1 });
});

test('whoever is told that a node has the change, and reads at once, sees so', async (t) => {
  const cluster = await api.cluster('told');
  const site = await create({ clusterId: cluster });
  const { epoch, revision } = (await sql('cluster_head').where({ cluster_id: cluster }).first()) as Body;
  const nodes = [await api.node(cluster, 'told-1'), await api.node(cluster, 'told-2')];
  const ways = {
    get: async () => (await api.ok('GET', `/sites/${site.id}`)).delivery.currentNodes,
    list: async () => (await api.ok('GET', `/sites?clusterId=${cluster}`)).items[0].delivery.currentNodes,
  };
  for (const [name, seen] of Object.entries(ways)) {
    await sql('node_state').whereIn('node_id', nodes).update({ epoch, revision: 0 });
    await eventually(async () => (await seen()) === 0);
    for (const [index, id] of nodes.entries()) {
      await sql('node_state').where({ node_id: id }).update({ revision });
      t.is(await seen(), index + 1, name);
    }
  }
});

test('features tell what the nodes lack', async (t) => {
  const cluster = await api.cluster('features');
  const site = await create({ clusterId: cluster });
  const node = await api.node(cluster, 'n1', { features: ['bans-v1'] });
  const features = await api.ok('GET', `/sites/${site.id}/features`);
  t.deepEqual(Object.keys(features).sort(), [
    'activeHealthCheck',
    'brotli',
    'cache',
    'clientCertificates',
    'clientIp',
    'crs',
    'crsBuiltInExceptions',
    'crsExclusions',
    'edgePorts',
    'errorPages',
    'http3',
    'https',
    'logs',
    'originHttp2',
    'prefetchVariants',
    'purgeByTag',
    'purgeMethod',
    'rulesV2',
    'rulesV3',
    'sessionAffinity',
    'siteContent',
    'zstd',
  ]);
  t.deepEqual(features.clientIp, { available: false, reason: 'nodes' });
  t.deepEqual(features.brotli, { available: false, reason: 'nodes' });
  await sql('node_state')
    .where({ node_id: node })
    .update({
      features: ['active-health-v1', 'brotli-v1', 'client-ip-v1', 'modsecurity-v1', 'origin-http2-v1', 'rules-v2'],
    });
  const after = await api.ok('GET', `/sites/${site.id}/features`);
  t.deepEqual(after.clientIp, { available: true, reason: null });
  t.deepEqual(after.brotli, { available: true, reason: null });
  t.deepEqual(after.crs, { available: true, reason: null });
  t.deepEqual(after.crsExclusions, { available: false, reason: 'nodes' });
  t.deepEqual(after.activeHealthCheck, { available: true, reason: null });
  t.deepEqual(after.originHttp2, { available: true, reason: null });
  t.deepEqual(after.rulesV2, { available: true, reason: null });
  t.deepEqual(after.rulesV3, { available: false, reason: 'nodes' });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/features');
});

test('origins of other groups travel along, and need nodes that know of groups', async (t) => {
  const cluster = await api.cluster('grouped');
  const plain = { address: 'a.example' };
  const site = await create({ clusterId: cluster, origins: [plain, { address: 'b.example', group: 'blue' }] });
  const needed = async () =>
    (await sql('config_entry').where({ kind: 'site', resource_id: site.id, to_revision: null }).first()).features;
  t.deepEqual(await needed(), ['rules-v2']);
  const { origins } = fromBinary(SiteSchema, (await api.entry(cluster, 'site', site.id))!);
  t.deepEqual(
    origins.map(({ address, group }) => [address, group]),
    [
      ['a.example', ''],
      ['b.example', 'blue'],
    ],
  );
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  t.deepEqual(await needed(), []);
  await api.node(cluster, 'old', { features: ['bans-v1'] });
  const { runtime } = running.running;
  const call: Call = { ...systemCall('test'), actor: { type: 'service_account', id: 'x', name: 'x' } };
  const error = await t.throwsAsync(() => setSiteEnabled(runtime, { id: site.id, enabled: true }, call));
  t.like(error, { type: 'NODE_CAPABILITY_REQUIRED', data: { features: 'rules-v2', nodes: 'old' } } as object);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: true });
  await api.ok('PATCH', `/sites/${site.id}`, { origins: [plain] });
  t.deepEqual(await needed(), []);
});

test('a service account may not publish what a node cannot follow; an operator may', async (t) => {
  const cluster = await api.cluster('capable');
  const site = await create({ clusterId: cluster, domains: ['.capable.example'] });
  const nodes: string[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
    nodes.push(await api.node(cluster, name, { features: ['bans-v1'] }));
  }
  const { runtime } = running.running;
  const call: Call = { ...systemCall('test'), actor: { type: 'service_account', id: 'x', name: 'x' } };
  t.false((await setSiteEnabled(runtime, { id: site.id, enabled: false }, call)).site.enabled, 'off needs nothing');
  const error = await t.throwsAsync(() => setSiteEnabled(runtime, { id: site.id, enabled: true }, call));
  t.like(error, {
    type: 'NODE_CAPABILITY_REQUIRED',
    data: { features: 'domains-v2', nodes: 'a,b,c,d,e,+2' },
  } as object);
  t.false((await api.ok('GET', `/sites/${site.id}`)).enabled);
  t.true((await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: true })).site.enabled);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  await sql('node_state')
    .whereIn('node_id', nodes)
    .update({ features: ['domains-v2'] });
  t.true((await setSiteEnabled(runtime, { id: site.id, enabled: true }, call)).site.enabled);
});

test('enabling a site asks for what its rules, redirects and protection need, too', async (t) => {
  const cluster = await api.cluster('whole');
  const { site, revision: created } = await api.ok('POST', '/sites', input({ clusterId: cluster }));
  const path = `/sites/${site.id}`;
  const rule = { name: 'Deny', phase: 'waf-custom', expression: 'true', action: { kind: 'block' } };
  const needing: [capability: string, save: () => Promise<Body>, undo: () => Promise<Body>][] = [
    [
      'rules-v1',
      () => api.ok('PUT', `${path}/rules`, { rules: [{ ...rule, enabled: true }] }),
      () => api.ok('PUT', `${path}/rules`, { rules: [rule] }),
    ],
    [
      'rules-v2',
      () => api.ok('PUT', `${path}/bulk-redirects`, { redirects: [{ source: '/old', target: '/new' }] }),
      () => api.ok('PUT', `${path}/bulk-redirects`, { redirects: [] }),
    ],
    [
      'challenge-v1',
      () => api.ok('PATCH', `${path}/protection`, { underAttack: true }),
      () => api.ok('PATCH', `${path}/protection`, { underAttack: false }),
    ],
  ];
  await api.node(cluster, 'old', { features: ['bans-v1'] });
  const { runtime } = running.running;
  const call = (): Call => ({ ...systemCall('test'), actor: { type: 'service_account', id: 'x', name: 'x' } });
  const set = (enabled: boolean) => setSiteEnabled(runtime, { id: site.id, enabled }, call());
  const refusedFor = async (...capabilities: string[]) => {
    const error = await t.throwsAsync(() => set(true), undefined, capabilities.join());
    t.like(error, {
      type: 'NODE_CAPABILITY_REQUIRED',
      data: { features: capabilities.join(), nodes: 'old' },
    } as object);
  };
  await set(false);
  for (const [capability, save, undo] of needing) {
    await save();
    await refusedFor(capability);
    await undo();
    t.true((await set(true)).site.enabled, `without what needs ${capability}`);
    await set(false);
  }
  for (const [, save] of needing) await save();
  await refusedFor('challenge-v1', 'rules-v1', 'rules-v2');
  // After a rollback nodes have no rules, and get with the site those that are saved.
  await api.ok('POST', `/clusters/${cluster}/rollback`, { revision: created });
  t.deepEqual(await api.entries(cluster, 'site-rules'), []);
  await refusedFor('challenge-v1', 'rules-v1');
  t.true((await api.ok('PUT', `${path}/enabled`, { enabled: true })).site.enabled, 'an operator may');
});

test('a repeated request with its key creates one site and answers the same', async (t) => {
  const body = input();
  const headers = { 'idempotency-key': `site-${body.domains[0]}` };
  const first = await api.call('POST', '/sites', body, headers);
  const second = await api.call('POST', '/sites', body, headers);
  t.is(first.status, 201);
  t.is(second.status, 201);
  t.deepEqual(second.body, first.body);
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.is(second.headers.get('x-svc-change'), first.headers.get('x-svc-change'));
});
