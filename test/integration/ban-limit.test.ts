import test from 'ava';
import type { Knex } from 'knex';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let sql: Knex;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  sql = api.sql;
});
test.after.always('stop', () => running?.stop());

const ban = (cidr: string) => ({ scope: 'platform', cidr, reason: 'abuse', durationSeconds: 3600 });
const create = (cidr: string) => api.call('POST', '/bans', ban(cidr));
const activeBans = async () => (await api.ok('GET', '/bans?source=manual&pageSize=1')).total;

/** Bans as creates would have left them, without a request each. */
async function fill(count: number, first = '203.1.0.0', expiresAt = new Date(Date.now() + 3_600_000)): Promise<void> {
  await sql.raw(
    `insert into ban (scope, cidr, reason, source, expires_at, seq)
     select 'platform', set_masklen((?::inet + n), 32), 'abuse', 'manual', ?, nextval('ban_seq')
       from generate_series(1, ?) n`,
    [first, expiresAt, count],
  );
}

test.beforeEach('start empty', async () => {
  await sql('ban').delete();
  await api.ok('PUT', '/settings/bans', { maxTotal: 100, shareAutoBans: true });
});

test.serial('settings have defaults, keep what is omitted and are audited once', async (t) => {
  await sql('setting').where({ key: 'bans' }).delete();
  t.deepEqual(await api.ok('GET', '/settings/bans'), { maxTotal: 10_000, shareAutoBans: true });
  t.deepEqual(await api.ok('PUT', '/settings/bans', { maxTotal: 200 }), { maxTotal: 200, shareAutoBans: true });
  t.deepEqual(await api.ok('PUT', '/settings/bans', { shareAutoBans: false }), { maxTotal: 200, shareAutoBans: false });
  const count = async () => (await sql('audit_entry').where({ action: 'system.bans_update' })).length;
  const before = await count();
  await api.ok('PUT', '/settings/bans', { maxTotal: 200, shareAutoBans: false });
  t.is(await count(), before);
  await api.ok('PUT', '/settings/bans', { maxTotal: 100_000 });
  t.is(await count(), before + 1);
  for (const body of [{ maxTotal: 99 }, { maxTotal: 100_001 }, { maxTotal: '100' }, { maxTotal: 100.5 }]) {
    await api.badField(t, '/maxTotal', 'PUT', '/settings/bans', body);
  }
  await api.badField(t, '/shareAutoBans', 'PUT', '/settings/bans', { shareAutoBans: 'yes' });
  await api.badField(t, '/other', 'PUT', '/settings/bans', { other: 1 });
  t.deepEqual(await api.ok('GET', '/settings/bans'), { maxTotal: 100_000, shareAutoBans: false });
});

test.serial('at the limit creating is refused with the limit, renewing is exempt', async (t) => {
  await fill(99);
  t.is((await create('203.2.0.1')).status, 200);
  const refused = await create('203.2.0.2');
  t.is(refused.status, 409);
  t.is(refused.body.code, 'BAN_PLATFORM_LIMIT');
  t.deepEqual(refused.body.data, { limit: 100 });
  t.is((await create('203.2.0.1')).status, 200);
  t.is(await activeBans(), 100);
});

test.serial('site and global bans count together; expired, lifted and automatic ones do not', async (t) => {
  const site = await api.site(await api.cluster('limit'), 'limit.example');
  await fill(98);
  await fill(50, '203.8.0.0', new Date(Date.now() - 1000));
  await sql.raw(
    `insert into ban (scope, cidr, reason, source, expires_at, seq)
     select 'platform', set_masklen(('203.9.0.0'::inet + n), 32), 'unknown_host_scan', 'auto', now() + interval '1 h',
       nextval('ban_seq') from generate_series(1, 20) n`,
  );
  const own = await api.call('POST', '/bans', { ...ban('203.2.0.1'), scope: 'site', siteId: site.id });
  t.is(own.status, 200);
  t.is((await create('203.2.0.2')).status, 200);
  t.is((await create('203.2.0.3')).body.code, 'BAN_PLATFORM_LIMIT');
  await api.ok('DELETE', `/bans/${own.body.id}`);
  t.is((await create('203.2.0.3')).status, 200);
  t.is((await create('203.2.0.4')).body.code, 'BAN_PLATFORM_LIMIT');
});

test.serial('100 parallel creates make exactly as many bans as there is room', async (t) => {
  await fill(60);
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => create(`203.3.0.${index}`)));
  const statuses = answers.map(({ status, body }) => (status === 200 ? '200' : `${status} ${body.code}`));
  t.is(statuses.filter((status) => status === '200').length, 40);
  t.is(statuses.filter((status) => status === '409 BAN_PLATFORM_LIMIT').length, 60);
  t.is(await activeBans(), 100);
});

test.serial('far from the limit nothing is counted, and the limit holds all the same', async (t) => {
  await api.ok('PUT', '/settings/bans', { maxTotal: 1000 });
  await create('203.4.0.1');
  const counted = async () => (await sql('ban_count').first()) as Body;
  const before = await counted();
  for (let index = 2; index < 12; index++) await create(`203.4.0.${index}`);
  t.deepEqual(await counted(), before);
  await fill(985);
  const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => create(`203.5.0.${index}`)));
  t.is(await activeBans(), 1000);
  t.is(answers.filter(({ status }) => status === 200).length, 4);
});

test.serial('a sequence that has jumped only makes the console count', async (t) => {
  await sql.raw(`select setval('ban_seq', nextval('ban_seq') + 1000000000)`);
  t.is((await create('203.6.0.1')).status, 200);
  t.is(await activeBans(), 1);
});

test.serial('lowering the limit lifts nothing and ends creating', async (t) => {
  await api.ok('PUT', '/settings/bans', { maxTotal: 200 });
  await fill(150);
  await api.ok('PUT', '/settings/bans', { maxTotal: 120 });
  t.is(await activeBans(), 150);
  t.deepEqual((await create('203.7.0.1')).body.data, { limit: 120 });
});
