import test from 'ava';
import type { Knex } from 'knex';
import { holdBanGuard, shareBanGuard } from '../../models/bans/ban-guard.ts';
import { LOCK_BAN_FEED } from '../../models/db/locks.ts';
import { bansInForce } from '../../models/overview/overview.ts';
import { systemCall } from '../../runtime/call.ts';
import { write } from '../../runtime/write.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let sql: Knex;
let clusterId: string;
let siteId: string;

test.before('start', async () => {
  running = await startTestConsole({
    env: { SVC_TRUSTED_PROXIES: '192.0.2.8/29', SVC_NODE_API_HOSTNAMES: '192.0.2.33,no.such.name.invalid' },
  });
  api = new Api(running);
  sql = api.sql;
  clusterId = await api.cluster('bans');
  siteId = (await api.site(clusterId, 'bans.example', { name: 'Bans' })).id;
});
test.after.always('stop', () => running?.stop());

let last = 0;
/** An address no other test uses. */
function address(): string {
  last += 1;
  return `198.18.${last >> 8}.${last & 255}`;
}

const platform = (cidr: string, more: Body = {}) => ({
  scope: 'platform',
  cidr,
  reason: 'abuse',
  durationSeconds: 3600,
  ...more,
});
const forSite = (cidr: string, more: Body = {}) => platform(cidr, { scope: 'site', siteId, ...more });
const create = (body: Body): Promise<Body> => api.ok('POST', '/bans', body);
const active = async (query: string): Promise<Body> => api.ok('GET', `/bans?${query}`);
const ids = (page: Body) => page.items.map((ban: Body) => ban.id);

/** What nodes of a cluster are told: ids changed after a number, with the cluster the change concerns. */
const changes = (after: string) => sql('ban_change').where('seq', '>', after).orderBy('seq');

test('a ban has every field of the specification', async (t) => {
  const cidr = address();
  const before = Date.now();
  const ban = await create(forSite(cidr, { reason: 'spam', durationSeconds: 60 }));
  t.deepEqual(Object.keys(ban).sort(), [
    'cidr',
    'createdAt',
    'createdBy',
    'distributed',
    'expiresAt',
    'id',
    'node',
    'reason',
    'scope',
    'seq',
    'siteId',
    'siteName',
    'source',
    'trigger',
    'unappliedNodes',
  ]);
  t.like(ban, {
    scope: 'site',
    cidr: `${cidr}/32`,
    reason: 'spam',
    source: 'manual',
    siteId,
    siteName: 'Bans',
    node: null,
    trigger: null,
    distributed: true,
    unappliedNodes: 0,
  });
  t.is(ban.createdBy.type, 'api_key');
  t.is(Date.parse(ban.expiresAt) - Date.parse(ban.createdAt), 60_000);
  t.true(Date.parse(ban.createdAt) >= before);
  t.regex(ban.seq, /^[0-9]+$/);
  t.deepEqual((await active(`address=${cidr}`)).items, [ban]);
});

test('a platform ban has no site', async (t) => {
  const ban = await create(platform(address()));
  t.like(ban, { scope: 'platform', siteId: null, siteName: null });
});

for (const [given, canonical] of [
  ['2001:DB8:5::1', '2001:db8:5::1/128'],
  ['2001:db8:6:7::9/64', '2001:db8:6:7::/64'],
  ['::ffff:198.19.0.1', '198.19.0.1/32'],
  ['198.19.1.77/24', '198.19.1.0/24'],
  ['198.20.0.0/16', '198.20.0.0/16'],
  ['2001:db8:7::/48', '2001:db8:7::/48'],
  ['::102:304', '::102:304/128'],
] as const) {
  test(`${given} is banned as ${canonical}`, async (t) => {
    const ban = await create(platform(given));
    t.is(ban.cidr, canonical);
    t.deepEqual(ids(await active(`address=${encodeURIComponent(canonical)}`)), [ban.id]);
  });
}

// IPv4-mapped and wider than the mapped range: at an edge they would match nobody.
const WIDE_MAPPED = ['::ffff:198.19.0.1/95', '::ffff:c613:1/80', '::ffff:0:0/48', '::ffff:0:0/0'];

test('wrong input is refused with the field or its own code', async (t) => {
  const cidr = address();
  await api.badField(t, '/scope', 'POST', '/bans', platform(cidr, { scope: 'global' }));
  await api.badField(t, '/siteId', 'POST', '/bans', platform(cidr, { scope: 'site' }));
  await api.badField(t, '/siteId', 'POST', '/bans', platform(cidr, { siteId }));
  await api.badField(t, '/reason', 'POST', '/bans', platform(cidr, { reason: 'cc_ip_rate' }));
  await api.badField(t, '/reason', 'POST', '/bans', { ...platform(cidr), reason: undefined });
  await api.badField(t, '/durationSeconds', 'POST', '/bans', platform(cidr, { durationSeconds: 60.5 }));
  await api.badField(t, '/durationSeconds', 'POST', '/bans', platform(cidr, { durationSeconds: '60' }));
  await api.badField(t, '/cidr', 'POST', '/bans', platform(cidr, { cidr: 1 }));
  await api.badField(t, '/note', 'POST', '/bans', platform(cidr, { note: 'x' }));
  for (const durationSeconds of [59, 604_801, 0, -60, 1e300]) {
    await api.refused(t, [400, 'BAN_EXPIRY_OUT_OF_RANGE'], 'POST', '/bans', platform(cidr, { durationSeconds }));
  }
  for (const bad of ['', 'x', '1.2.3', '01.2.3.4', '1.2.3.4/33', 'fe80::1%eth0', '1.2.3.4 ', '*', ...WIDE_MAPPED]) {
    await api.refused(t, [400, 'BAN_INVALID_CIDR'], 'POST', '/bans', platform(bad));
  }
  for (const [short, min] of [
    ['198.18.0.0/15', 16],
    ['0.0.0.0/0', 16],
    ['2001:db8::/47', 48],
    ['::/0', 48],
    ['::ffff:0:0/96', 16],
  ] as const) {
    t.deepEqual(await api.refused(t, [400, 'BAN_PREFIX_TOO_SHORT'], 'POST', '/bans', platform(short)), { min });
  }
  const unknown = platform(cidr, { scope: 'site', siteId: 'nobody' });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'POST', '/bans', unknown);
  t.is((await active(`address=${cidr}`)).total, 0);
});

test('the shortest and the longest ban are allowed', async (t) => {
  for (const durationSeconds of [60, 604_800]) {
    const ban = await create(platform(address(), { durationSeconds }));
    t.is(Date.parse(ban.expiresAt) - Date.parse(ban.createdAt), durationSeconds * 1000);
  }
});

test('creating again renews: same id, other reason and expiry, audited as an update, sent again', async (t) => {
  const cidr = address();
  const first = await create(platform(cidr));
  const second = await create(platform(`${cidr}/32`, { reason: 'attack', durationSeconds: 7200 }));
  t.is(second.id, first.id);
  t.is(second.reason, 'attack');
  t.is(second.createdAt, first.createdAt);
  t.true(Date.parse(second.expiresAt) > Date.parse(first.expiresAt));
  t.true(BigInt(second.seq) > BigInt(first.seq));
  t.deepEqual(
    (await api.audit(first.id)).map(({ action }) => action),
    ['ban.create', 'ban.update'],
  );
  const sent = (await changes(first.seq)).filter((row) => row.ban_id === first.id);
  t.deepEqual(
    sent.map((row) => [row.seq, row.cluster_id]),
    [[second.seq, '']],
  );
});

test('global and site bans of one address are two bans', async (t) => {
  const cidr = address();
  const [global, own] = [await create(platform(cidr)), await create(forSite(cidr))];
  t.not(global.id, own.id);
  t.is((await active(`address=${cidr}`)).total, 2);
});

test('an expired ban is gone: creating makes a new one', async (t) => {
  const cidr = address();
  const first = await create(platform(cidr));
  await sql('ban')
    .where({ id: first.id })
    .update({ expires_at: new Date(Date.now() - 1000) });
  t.is((await active(`address=${cidr}`)).total, 0);
  await api.refused(t, [404, 'BAN_NOT_FOUND'], 'DELETE', `/bans/${first.id}`);
  const second = await create(platform(cidr));
  t.not(second.id, first.id);
  t.deepEqual(
    (await api.audit(second.id)).map(({ action }) => action),
    ['ban.create'],
  );
});

test('a lifted ban is gone, once', async (t) => {
  const cidr = address();
  const ban = await create(forSite(cidr));
  const answer = await api.call('DELETE', `/bans/${ban.id}`);
  t.is(answer.status, 200);
  t.regex(answer.headers.get('x-svc-change') ?? '', /^ban=[0-9]+:[0-9]+$/);
  await api.refused(t, [404, 'BAN_NOT_FOUND'], 'DELETE', `/bans/${ban.id}`);
  await api.refused(t, [404, 'BAN_NOT_FOUND'], 'DELETE', '/bans/nobody');
  t.is((await active(`address=${cidr}`)).total, 0);
  t.deepEqual(
    (await api.audit(ban.id)).map(({ action }) => action),
    ['ban.create', 'ban.delete'],
  );
  const sent = (await changes(ban.seq)).filter((row) => row.ban_id === ban.id);
  t.deepEqual(
    sent.map((row) => row.cluster_id),
    [clusterId],
  );
  t.not((await create(forSite(cidr))).id, ban.id);
});

test('no ban makes a revision', async (t) => {
  const cluster = await api.cluster('quiet');
  const site = (await api.site(cluster, 'quiet.example')).id;
  const ban = await create(forSite(address(), { siteId: site }));
  await api.ok('DELETE', `/bans/${ban.id}`);
  await api.ok('DELETE', `/bans/${(await create(platform(address()))).id}`);
  // Lists of other tests are published on every cluster.
  const own = (await api.reasons(cluster)).filter((reason) => reason !== 'rules_updated');
  t.deepEqual(own, ['cluster_created', 'site_created']);
});

test('a site ban concerns the nodes of its cluster, a global one all nodes', async (t) => {
  const [own, global] = [await create(forSite(address())), await create(platform(address()))];
  const rows = await sql('ban_change').whereIn('ban_id', [own.id, global.id]).orderBy('seq');
  t.deepEqual(
    rows.map((row) => [row.ban_id, row.cluster_id, row.seq]),
    [
      [own.id, clusterId, own.seq],
      [global.id, '', global.seq],
    ],
  );
  const head = await sql('ban_head').where({ cluster_id: clusterId }).first();
  t.true(BigInt(head.seq) >= BigInt(own.seq));
});

test('protected addresses are refused with the address', async (t) => {
  const other = await api.cluster('elsewhere');
  await api.node(clusterId, 'here', { addresses: ['198.51.100.1', '2001:db8:aaaa::1'] });
  await api.node(other, 'there', { addresses: ['198.51.100.65'] });
  const allow = await api.ok('POST', '/ip-lists', {
    name: 'trusted',
    kind: 'allow',
    entries: ['198.51.100.128/26', '2001:db8:bbbb::/64'],
  });
  await api.ok('POST', '/ip-lists', { name: 'unused', kind: 'collection', entries: ['198.51.100.200'] });
  const refused: readonly (readonly [Body, string])[] = [
    [platform('127.0.0.1'), '127.0.0.0/8'],
    [platform('127.5.0.0/16'), '127.0.0.0/8'],
    [platform('0.0.0.0'), '0.0.0.0/8'],
    [platform('::1'), '::1/128'],
    [platform('::'), '::/128'],
    [platform('::/48'), '::1/128'],
    [platform('::ffff:127.0.0.1'), '127.0.0.0/8'],
    [forSite('127.0.0.1'), '127.0.0.0/8'],
    [platform('198.51.100.1'), '198.51.100.1'],
    [platform('198.51.100.0/26'), '198.51.100.1'],
    [platform('198.51.100.65'), '198.51.100.65'],
    [forSite('198.51.100.1'), '198.51.100.1'],
    [platform('2001:db8:aaaa::/64'), '2001:db8:aaaa::1'],
    // A range that overlaps an allow list, from inside, exactly and from outside.
    [platform('198.51.100.130'), '198.51.100.128/26'],
    [forSite('198.51.100.128/26'), '198.51.100.128/26'],
    [platform('198.51.100.128/25'), '198.51.100.128/26'],
    [platform('2001:db8:bbbb::/48'), '2001:db8:bbbb::/64'],
  ];
  for (const [body, expected] of refused) {
    const data = await api.refused(t, [400, 'BAN_PROTECTED_ADDRESS'], 'POST', '/bans', body);
    t.deepEqual(data, { address: expected }, body.cidr);
  }
  // A site ban may cover a node of another cluster; a list that is no allow list protects nothing.
  await create(forSite('198.51.100.65'));
  await create(platform('198.51.100.200'));
  await api.ok('PUT', `/ip-lists/${allow.id}`, { kind: 'collection', entries: ['198.51.100.128/26'] });
  await create(platform('198.51.100.130'));
});

test('filters: scope, site, source, address covering or inside; newest first; pages', async (t) => {
  const other = (await api.site(clusterId, 'filters.example')).id;
  const [a, b, c] = [
    await create(platform('203.0.113.0/24')),
    await create(platform('203.0.113.7', { scope: 'site', siteId: other })),
    await create(platform('203.0.113.128/25')),
  ];
  const find = async (query: string) => ids(await active(query));
  t.deepEqual(await find('address=203.0.113.0/24'), [c.id, b.id, a.id]);
  t.deepEqual(await find('address=203.0.113.7'), [b.id, a.id]);
  t.deepEqual(await find('address=203.0.113.200'), [c.id, a.id]);
  t.deepEqual(await find('address=203.0.113.0/25'), [b.id, a.id]);
  t.deepEqual(await find('address=203.0.113.0/24&scope=platform'), [c.id, a.id]);
  t.deepEqual(await find(`siteId=${other}`), [b.id]);
  t.deepEqual(await find('siteId=nobody'), []);
  t.deepEqual(await find('address=203.0.113.0/24&source=auto'), []);
  t.deepEqual(await find('address=203.0.113.0/24&pageSize=1&page=2'), [b.id]);
  t.is((await active('address=203.0.113.0/24&pageSize=1&page=2')).total, 3);
  t.deepEqual(await find('address=203.0.113.0/24&page=9'), []);
  for (const bad of ['x', '::ffff:1.2.3.4/95'])
    await api.refused(t, [400, 'BAN_INVALID_CIDR'], 'GET', `/bans?address=${encodeURIComponent(bad)}`);
  for (const [query, field] of [
    ['pageSize=0', '/pageSize'],
    ['pageSize=101', '/pageSize'],
    ['page=0', '/page'],
    ['scope=global', '/scope'],
    ['source=x', '/source'],
    ['unknown=1', '/unknown'],
  ]) {
    await api.badField(t, field!, 'GET', `/bans?${query}`);
  }
});

test('unappliedNodes counts online nodes only', async (t) => {
  const ban = await create(platform(address()));
  for (const [name, online] of [
    ['full-1', true],
    ['full-2', true],
    ['gone', false],
  ] as const) {
    const nodeId = await api.node(clusterId, name, { online });
    await sql('ban_unapplied').insert({ node_id: nodeId, ban_id: ban.id });
  }
  const page = await active(`address=${ban.cidr}`);
  t.is(page.items[0].unappliedNodes, 2);
  t.is((await create(platform(ban.cidr))).unappliedNodes, 2);
});

/** Resolves when the bans of a deleted site are lifted. */
const lifted = (site: string) =>
  eventually(async () => !(await sql('gone_site').where({ site_id: site }).first()), {
    what: 'the lifting of bans',
    timeoutMs: 60_000,
  });

test('deleting a site lifts its bans', async (t) => {
  const site = (await api.site(clusterId, 'leaving.example')).id;
  const made = [];
  for (let index = 0; index < 3; index++) made.push(await create(forSite(address(), { siteId: site })));
  const expired = await create(forSite(address(), { siteId: site }));
  await sql('ban')
    .where({ id: expired.id })
    .update({ expires_at: new Date(0) });
  await api.ok('DELETE', `/sites/${site}`);
  t.is((await api.audit(site)).at(-1)!.metadata.bans, 3);
  t.is((await active(`siteId=${site}`)).total, 0);
  await lifted(site);
  const rows = await sql('ban').where({ site_id: site }).whereNotNull('lifted_at');
  t.deepEqual(rows.map((row) => row.id).sort(), made.map((ban) => ban.id).sort());
  for (const row of rows) {
    t.truthy(await sql('ban_change').where({ ban_id: row.id, seq: row.seq, cluster_id: clusterId }).first());
  }
});

test.serial('a deletion waits for no other ban, and from then on nobody sees the bans of the site', async (t) => {
  const site = (await api.site(clusterId, 'unseen.example')).id;
  const made = await create(forSite(address(), { siteId: site }));
  const before = (await bansInForce(sql)).manual;
  await sql.transaction(async (trx) => {
    // Nobody lifts anything meanwhile.
    await trx.raw(LOCK_BAN_FEED);
    await api.ok('DELETE', `/sites/${site}`);
    t.is((await active(`siteId=${site}`)).total, 0);
    t.is((await active(`address=${made.cidr}`)).total, 0);
    t.is((await bansInForce(sql)).manual, before - 1);
    await api.refused(t, [404, 'BAN_NOT_FOUND'], 'DELETE', `/bans/${made.id}`);
    t.is((await sql('ban').where({ id: made.id }).first()).lifted_at, null);
  });
  await lifted(site);
  t.not((await sql('ban').where({ id: made.id }).first()).lifted_at, null);
});

test.serial('a site with 30,000 bans is deleted at once, and others are banned while these are lifted', async (t) => {
  const site = (await api.site(clusterId, 'crowded.example')).id;
  for (let part = 0; part < 10; part++) {
    await sql.raw(
      `insert into ban (scope, site_id, cluster_id, cidr, reason, source, node_id, expires_at, seq)
       select 'site', ?, ?, set_masklen(('10.51.0.0'::inet + n), 32), 'abuse', (array['manual', 'auto'])[1 + n % 2], 'n',
         now() + interval '1 h', nextval('ban_seq') from generate_series(1, 3000) m, lateral (select m + 3000 * ?::int) as p(n)`,
      [site, clusterId, part],
    );
  }
  await api.ok('DELETE', `/sites/${site}`);
  t.is((await api.audit(site)).at(-1)!.metadata.bans, 30_000);
  t.is((await active(`siteId=${site}`)).total, 0);
  await create(platform(address()));
  await lifted(site);
  const { rows } = await sql.raw(
    `select count(*)::int as told
       from ban b join ban_change c on c.ban_id = b.id and c.seq = b.seq and c.keep_until > b.expires_at
      where b.site_id = ? and b.lifted_at is not null and c.cluster_id = ?`,
    [site, clusterId],
  );
  t.is(rows[0].told, 30_000);
});

test('a preview warns of origins in the range and of people who are signed in from it', async (t) => {
  const origin = '93.184.216.34';
  const site = await api.site(clusterId, 'origin.example', {
    origins: [{ address: origin }, { address: 'o.example' }],
  });
  await api.site(clusterId, 'origin2.example', { origins: [{ address: origin }] });
  const person = address();
  await sql('session').update({ ip: person });
  const warnings = async (body: Body) => (await api.ok('POST', '/bans/preview', body)).warnings;
  t.deepEqual(await warnings(platform(origin)), [{ kind: 'origins', address: origin, count: 2 }]);
  t.deepEqual(await warnings(forSite(origin, { siteId: site.id })), [{ kind: 'origins', address: origin, count: 1 }]);
  t.deepEqual(await warnings(forSite(origin)), []);
  t.deepEqual(await warnings(platform(person)), [{ kind: 'sessions', address: person, count: 1 }]);
  t.deepEqual(await warnings(platform(address())), []);
});

test('a preview warns of addresses of the console and of proxies, which a ban may cover', async (t) => {
  const warnings = async (body: Body) => (await api.ok('POST', '/bans/preview', body)).warnings;
  const own = { kind: 'console', address: '192.0.2.33', count: 1 };
  const proxies = { kind: 'proxies', address: '192.0.2.8/29', count: 1 };
  t.deepEqual(await warnings(platform('192.0.2.33')), [own]);
  t.deepEqual(await warnings(platform('192.0.2.9')), [proxies]);
  t.deepEqual(await warnings(platform('192.0.2.0/24')), [own, proxies]);
  t.deepEqual(await warnings(forSite('192.0.2.0/24')), [own, proxies]);
  const other = await api.cluster('behind-proxies');
  const settings = { mode: 'header', trustedCidrs: ['192.0.2.128/25'], header: 'x-client' };
  await api.ok('PUT', `/clusters/${other}/client-ip`, { settings });
  t.deepEqual(await warnings(platform('192.0.2.200')), [{ kind: 'proxies', address: '192.0.2.128/25', count: 1 }]);
  t.deepEqual(await warnings(platform('192.0.2.0/24')), [own, { ...proxies, count: 2 }]);
  // Nodes of another cluster do not have the ban.
  t.deepEqual(await warnings(forSite('192.0.2.200')), []);
  // They are warned of, not refused.
  t.is((await create(platform('192.0.2.9'))).cidr, '192.0.2.9/32');
});

test('a preview knows where origins are after every save of a site', async (t) => {
  const warnings = async (cidr: string) =>
    (await api.ok('POST', '/bans/preview', platform(cidr))).warnings.map(({ count }: Body) => count);
  const site = await api.site(clusterId, 'moving.example', {
    origins: [{ address: '93.184.217.1' }, { address: '93.184.217.1', port: 8080 }, { address: '2606:2800:21f::1' }],
  });
  t.deepEqual(await warnings('93.184.217.0/24'), [1]);
  t.deepEqual(await warnings('2606:2800:21f::/48'), [1]);
  await api.ok('PATCH', `/sites/${site.id}`, { origins: [{ address: '93.184.218.1' }, { address: 'moved.example' }] });
  t.deepEqual(await warnings('93.184.217.0/24'), []);
  t.deepEqual(await warnings('2606:2800:21f::/48'), []);
  t.deepEqual(await warnings('93.184.218.1'), [1]);
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Moved' });
  t.deepEqual(await warnings('93.184.218.0/24'), [1]);
  // What is refused moves nothing.
  const refused = { origins: [{ address: '93.184.219.1' }], expectedUpdatedAt: '2020-01-01T00:00:00Z' };
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', `/sites/${site.id}`, refused);
  t.deepEqual(await warnings('93.184.219.1'), []);
  await api.ok('DELETE', `/sites/${site.id}`);
  t.deepEqual(await warnings('93.184.218.1'), []);
});

test('a preview tells what creating would do and writes nothing', async (t) => {
  const cidr = address();
  const ban = await create(platform(cidr));
  const counts = async () => [
    (
      await sql('ban')
        .where({ cidr: `${cidr}/32` })
        .count()
    )[0],
    (await sql('audit_entry').where({ target_id: ban.id }).count())[0],
  ];
  const before = await counts();
  t.like(await api.ok('POST', '/bans/preview', platform(cidr)), {
    cidr: `${cidr}/32`,
    addresses: '1',
    renews: { id: ban.id, expiresAt: ban.expiresAt },
    refusal: null,
    coveredBans: 1,
  });
  t.deepEqual((await api.ok('POST', '/bans/preview', platform('127.0.0.1'))).refusal, {
    code: 'BAN_PROTECTED_ADDRESS',
    data: { address: '127.0.0.0/8' },
  });
  t.is((await api.ok('POST', '/bans/preview', platform('127.0.0.1'))).warnings[0].kind, 'own_address');
  t.is((await api.ok('POST', '/bans/preview', platform('2001:db8:77::/48'))).addresses, (2n ** 80n).toString());
  for (const bad of ['x', '::ffff:1.2.3.4/95'])
    t.is((await api.ok('POST', '/bans/preview', platform(bad))).refusal.code, 'BAN_INVALID_CIDR', bad);
  t.is((await api.ok('POST', '/bans/preview', platform('10.0.0.0/8'))).refusal.code, 'BAN_PREFIX_TOO_SHORT');
  t.deepEqual(await counts(), before);
});

test('a create waits for a writer of protected addresses and sees what it wrote', async (t) => {
  const { runtime } = running.running;
  const cidr = address();
  let creating: Promise<Body> | undefined;
  await write(runtime, systemCall('test'), {}, async (tx) => {
    await holdBanGuard(tx.sql);
    creating = api.call('POST', '/bans', platform(cidr));
    await eventually(async () => {
      const { rows } = await sql.raw(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%ban_check%'`,
      );
      return rows.length > 0;
    });
    const [{ id }] = await tx.sql('ip_list').insert({ name: 'raced', kind: 'allow', entry_count: 1 }).returning('id');
    await tx.sql('ip_list_entry').insert({ ip_list_id: id, chunk: 0, cidr: `${cidr}/32` });
  });
  const answer = await creating!;
  t.is(answer.body.code, 'BAN_PROTECTED_ADDRESS');
  t.deepEqual(answer.body.data, { address: `${cidr}/32` });
});

test.serial('whoever creates bans comes after a writer of protected addresses that waits', async (t) => {
  const { runtime } = running.running;
  const waiting = async (count: number) =>
    eventually(async () => {
      const { rows } = await sql.raw(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%ban_guard%'`,
      );
      return rows.length === count;
    });
  const order: string[] = [];
  const inTurn = (name: string, take: typeof holdBanGuard) =>
    write(runtime, systemCall('test'), {}, async (tx) => {
      await take(tx.sql);
      order.push(name);
    });
  let others: Promise<unknown> | undefined;
  await write(runtime, systemCall('test'), {}, async (tx) => {
    await shareBanGuard(tx.sql);
    const writer = inTurn('writer', holdBanGuard);
    await waiting(1);
    others = Promise.all([writer, inTurn('creator', shareBanGuard)]);
    await waiting(2);
    order.push('first creator');
  });
  await others;
  t.deepEqual(order, ['first creator', 'writer', 'creator']);
});

test('parallel creates of one address make one ban', async (t) => {
  const cidr = address();
  const made: Body[] = await Promise.all(Array.from({ length: 20 }, () => create(platform(cidr))));
  t.is(new Set(made.map((ban) => ban.id)).size, 1);
  t.is((await active(`address=${cidr}`)).total, 1);
  const actions = (await api.audit(made[0].id)).map(({ action }) => action);
  // A busy console's 503 is sent again, and is an update then like any other.
  t.true(actions.length >= 20);
  t.deepEqual(actions, ['ban.create', ...new Array(actions.length - 1).fill('ban.update')]);
});

test('creates that arrive together have outcomes and audit entries of their own', async (t) => {
  const listed = address();
  await api.ok('POST', '/ip-lists', { name: 'together', kind: 'allow', entries: [listed] });
  const known = await create(platform(address()));
  const fresh = Array.from({ length: 30 }, () => address());
  const call = (body: Body) => api.call('POST', '/bans', body, { 'idempotency-key': `together-${body.cidr}` });
  const bodies = [
    platform(listed),
    forSite(address(), { siteId: 'nobody' }),
    platform(known.cidr, { reason: 'spam' }),
    ...fresh.map((cidr, index) => (index % 2 ? platform(cidr) : forSite(cidr))),
  ];
  const [refused, unknown, renewed, ...made] = await Promise.all(bodies.map(call));
  t.is(refused!.body.code, 'BAN_PROTECTED_ADDRESS');
  t.is(unknown!.body.code, 'SITE_NOT_FOUND');
  t.like(renewed!.body, { id: known.id, reason: 'spam' });
  t.deepEqual(
    made.map(({ body }) => body.cidr),
    fresh.map((cidr) => `${cidr}/32`),
  );
  const numbers = [renewed!, ...made].map(({ body, headers }) => {
    t.regex(headers.get('x-svc-change') ?? '', new RegExp(`^ban=[0-9]+:${body.seq}$`));
    return body.seq;
  });
  t.is(new Set(numbers).size, numbers.length);
  for (const { body } of made)
    t.deepEqual(
      (await api.audit(body.id)).map(({ action }) => action),
      ['ban.create'],
    );
  const again = await Promise.all(bodies.map(call));
  t.deepEqual(
    again.map(({ body }) => body),
    [refused!, unknown!, renewed!, ...made].map(({ body }) => body),
  );
  for (const { headers } of again) t.is(headers.get('idempotent-replayed'), 'true');
});

test('a create that has to wait for its site holds no other up', async (t) => {
  const site = (await api.site(clusterId, 'waiting.example')).id;
  const { runtime } = running.running;
  let waiting: Promise<Body> | undefined;
  await write(runtime, systemCall('test'), {}, async (tx) => {
    await tx.sql('site').where({ id: site }).forUpdate();
    waiting = api.call('POST', '/bans', forSite(address(), { siteId: site }));
    const others = Array.from({ length: 5 }, () => create(platform(address())));
    t.is((await Promise.all(others)).length, 5);
  });
  t.is((await waiting!).status, 200);
});

test('a site deleted while it is banned for leaves no active ban', async (t) => {
  const cluster = await api.cluster('racing');
  for (let round = 0; round < 5; round++) {
    const site = (await api.site(cluster, `racing${round}.example`)).id;
    const bodies = Array.from({ length: 6 }, () => forSite(address(), { siteId: site }));
    const [deleted, ...answers] = await Promise.all([
      api.call('DELETE', `/sites/${site}`),
      ...bodies.map((body) => api.call('POST', '/bans', body)),
    ]);
    t.is(deleted!.status, 200);
    for (const { status, body } of answers) t.true(status === 200 || body.code === 'SITE_NOT_FOUND');
    t.is((await active(`siteId=${site}`)).total, 0);
    await lifted(site);
    const { rows } = await sql.raw('select 1 from ban where site_id = ? and lifted_at is null', [site]);
    t.is(rows.length, 0);
  }
});

test('renewing and lifting at the same time: a ban or none, and the feed says which', async (t) => {
  for (let round = 0; round < 5; round++) {
    const cidr = address();
    const { id } = await create(platform(cidr));
    const [lifted, renewed] = await Promise.all([
      api.call('DELETE', `/bans/${id}`),
      api.call('POST', '/bans', platform(cidr, { reason: 'spam' })),
    ]);
    t.is(lifted.status, 200);
    t.is(renewed.status, 200);
    const { items } = await active(`address=${cidr}`);
    // Renewed first and then lifted, or lifted first and then made anew.
    t.deepEqual(
      items.map((ban: Body) => ban.id),
      renewed.body.id === id ? [] : [renewed.body.id],
    );
    for (const ban of await sql('ban').where({ cidr: `${cidr}/32` })) {
      const last = await sql('ban_change').where({ ban_id: ban.id }).max('seq as seq').first();
      t.is(last?.seq, ban.seq);
    }
  }
});

test('a repeated request with its key makes one ban and no renewal', async (t) => {
  const body = platform(address());
  const headers = { 'idempotency-key': `ban-${body.cidr}` };
  const first = await api.call('POST', '/bans', body, headers);
  const second = await api.call('POST', '/bans', body, headers);
  t.deepEqual(second.body, first.body);
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.is((await api.audit(first.body.id)).length, 1);
});
