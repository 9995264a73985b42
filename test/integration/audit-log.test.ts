// The audit log: what an entry says, how the list is filtered and paged, how long entries stay (reference: RC§3.8).
import test from 'ava';
import { PROCEDURES } from '../../contract/index.ts';
import { ACTOR_TYPES } from '../../contract/resources/audit-logs.ts';
import { countDay } from '../../models/db/counted-logs.ts';
import { JOBS } from '../../services/housekeeping/jobs.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { QueryPlans } from '../helpers/query-plans.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { noteWrites } from '../helpers/writes.ts';

const ORIGIN = 'http://localhost:3000';
const DAY = 86_400_000;
const COLUMNS = { action: 'action', targetType: 'target_type', actorType: 'actor_type', targetId: 'target_id' };

let running: TestConsole;
let api: Api;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});

test.after.always(() => running?.stop());

const list = (query: string): Promise<Body> => api.ok('GET', `/audit-logs?${query}`);
const ids = ({ items }: Body): string[] => items.map(({ id }: Body) => id);

// What an entry says ----------------------------------------------------------------------------------------------------

test.serial('an entry names who, from where, what, on what and with which parameters', async (t) => {
  const headers = { 'user-agent': 'check/1.0' };
  const { body: region } = await api.call('POST', '/regions', { name: 'Here', code: 'here' }, headers);
  const { items, total } = await list('action=region.create');
  t.is(total, 1);
  const { id, occurredAt, actorId, ...entry } = items[0];
  t.regex(id, /^[0-9]+$/);
  t.false(Number.isNaN(Date.parse(occurredAt)));
  t.truthy(actorId);
  t.deepEqual(entry, {
    actorType: 'api_key',
    actorName: 'first key',
    ip: '127.0.0.1',
    userAgent: 'check/1.0',
    action: 'region.create',
    targetType: 'region',
    targetId: region.id,
    targetName: 'Here',
    targetExists: null,
    metadata: { code: 'here' },
  });
});

test.serial('entries are found by a part of the name of who acted, in any case, with their number', async (t) => {
  await api.sql('audit_entry').insert(
    ['Ana Lima', 'ana-robot', 'Ben', null].map((actor_name, index) => ({
      actor_type: 'user',
      actor_name,
      action: 'named.actor',
      occurred_at: new Date(Date.now() - index * 1000),
    })),
  );
  const of = async (actor: string) => {
    const { items, total } = await list(`action=named.actor&actor=${encodeURIComponent(actor)}&pageSize=1`);
    return [total, items[0]?.actorName];
  };
  t.deepEqual(await of('ANA'), [2, 'Ana Lima']);
  t.deepEqual(await of('robot'), [1, 'ana-robot']);
  t.deepEqual(await of('%'), [0, undefined]);
  await api.badField(t, '/actor', 'GET', `/audit-logs?actor=${'x'.repeat(101)}`);
  await api.sql('audit_entry').where({ action: 'named.actor' }).delete();
});

test.serial(
  'the actor is the operator in a session, a key, a service account or nobody who has signed in',
  async (t) => {
    await running.client.rpc('regions.create', { name: 'By session', code: 'session' });
    t.like((await list('targetType=region&actorType=user')).items[0], { actorType: 'user', targetName: 'By session' });
    const clusterId = await api.cluster('actors');
    const site = await api.site(clusterId, 'actors.example');
    const account = await api.ok('POST', '/service-accounts', { name: 'robot', scopes: ['sites:write'] });
    const { secret } = await api.ok('POST', `/service-accounts/${account.id}/keys`, {});
    await running.client.request(
      'PUT',
      `/api/v1/sites/${site.id}/enabled`,
      { enabled: false },
      { 'x-api-key': secret },
    );
    t.like((await list('actorType=service_account')).items, [
      { action: 'site.disable', actorId: account.id, actorName: 'robot', targetName: site.name },
    ]);
    t.like((await list('action=system.setup')).items[0], { targetType: 'system' });
    const wrong = { email: 'nobody@example.com', password: 'a wrong password' };
    t.is((await running.client.request('POST', '/api/auth/sign-in/email', wrong, { origin: ORIGIN })).status, 401);
    t.like((await list('actorType=anonymous')).items, [
      { action: 'auth.sign_in_failed', actorName: null, actorId: null },
    ]);
  },
);

test.serial('a target keeps the name it had then', async (t) => {
  const { id } = await api.ok('POST', '/regions', { name: 'Before', code: 'renamed' });
  await api.ok('PATCH', `/regions/${id}`, { name: 'After' });
  await api.ok('DELETE', `/regions/${id}`);
  const { items } = await list(`targetType=region&targetId=${id}`);
  t.deepEqual(
    items.map(({ action, targetName }: Body) => [action, targetName]),
    [
      ['region.delete', 'After'],
      ['region.update', 'After'],
      ['region.create', 'Before'],
    ],
  );
});

test.serial('every change of the settings is found by the type of its target', async (t) => {
  const changes: Record<string, [path: string, body: Body, target: string]> = {
    'settings.auditRetention.set': ['audit-retention', { days: 3649 }, 'audit_retention'],
    'settings.bans.set': ['bans', { maxTotal: 4321 }, 'bans'],
    'settings.ccTemplate.set': ['cc-template', { siteQps: 4321 }, 'cc_template'],
    'settings.errorPages.set': ['error-pages', { unknownHost: '<h1>Nobody here</h1>' }, 'error_pages'],
    'settings.logs.set': ['logs', { retentionDays: 29 }, 'logs'],
    'settings.nodeChannel.set': ['node-channel', { url: 'https://channel.example:8443' }, 'node_channel'],
    'settings.originAllowList.set': ['origin-allow-list', { cidrs: ['192.0.2.0/24'] }, 'origin_allow_list'],
    'settings.acmeDirectory.set': ['acme-directory', { url: null }, 'acme_directory'],
    'settings.protection.set': ['protection', { eventRetentionDays: 29 }, 'protection'],
    'settings.usage.set': ['usage', { retentionDays: 99 }, 'usage'],
  };
  const settings = [...PROCEDURES.values()].filter(({ name, audit }) => name.startsWith('settings.') && audit !== null);
  t.deepEqual(settings.map(({ name }) => name).sort(), Object.keys(changes).sort());
  const expected = new Map<string, string>();
  for (const { name, audit } of settings) {
    const [path, body, target] = changes[name]!;
    const before = await api.ok('GET', `/settings/${path}`);
    await api.ok('PUT', `/settings/${path}`, body);
    await api.ok(
      'PUT',
      `/settings/${path}`,
      Object.fromEntries(Object.keys(body).map((field) => [field, before[field]])),
    );
    expected.set(String(audit), target);
  }
  const { items } = await list('targetType=system_setting&pageSize=100');
  for (const [action, targetId] of expected) {
    const found = items.filter((entry: Body) => entry.action === action);
    t.deepEqual(
      found.map((entry: Body) => entry.targetId),
      [targetId, targetId],
      action,
    );
  }
});

test.serial('no secret is in it', async (t) => {
  const secrets = [running.client.accessKey];
  const { id: account } = await api.ok('POST', '/service-accounts', { name: 'secretive' });
  secrets.push((await api.ok('POST', `/service-accounts/${account}/keys`, {})).secret);
  secrets.push((await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'x' })).secret);
  const clusterId = await api.cluster('secretive');
  secrets.push((await api.ok('POST', '/enrollment-tokens', { clusterId })).token);
  secrets.push(running.setupToken!);
  const everything = JSON.stringify(await api.sql('audit_entry'));
  for (const secret of secrets) t.false(everything.includes(secret.slice(-20)));
});

test.serial('a change that does not happen leaves no entry, and no entry means no change', async (t) => {
  const before = (await list('pageSize=1')).total;
  await api.refused(t, [409, 'REGION_CODE_TAKEN'], 'POST', '/regions', { name: 'Twice', code: 'here' });
  t.is((await list('pageSize=1')).total, before);
  // The entry cannot be written: then neither is the region.
  await api.sql.raw(`alter table audit_entry add constraint broken check (action <> 'region.create') not valid`);
  const answer = await api.call('POST', '/regions', { name: 'Unaudited', code: 'unaudited' });
  await api.sql.raw('alter table audit_entry drop constraint broken');
  t.is(answer.status, 500);
  t.is(await api.sql('region').where({ code: 'unaudited' }).first(), undefined);
});

// The list --------------------------------------------------------------------------------------------------------------

/** Entries of one minute each, the newest first in the list; answers the minute's time. */
async function fill(count: number): Promise<(minute: number) => string> {
  const start = Date.UTC(2020, 0, 1);
  await api.sql('audit_entry').insert(
    Array.from({ length: count }, (_, minute) => ({
      occurred_at: new Date(start + minute * 60_000),
      actor_type: ACTOR_TYPES[minute % 6],
      actor_name: 'filler',
      action: minute % 2 === 0 ? 'filler.even' : 'filler.odd',
      target_type: minute % 3 === 0 ? 'filler_third' : 'filler',
      target_id: String(minute),
    })),
  );
  return (minute) => new Date(start + minute * 60_000).toISOString();
}

test.serial('filters are exact, add up, and the page follows the convention of lists', async (t) => {
  const minute = await fill(60);
  const until = `to=${minute(60)}`;
  t.is((await list(until)).total, 60);
  t.is((await list(until)).items.length, 50);
  t.is((await list(`${until}&page=2`)).items.length, 10);
  t.is((await list(`${until}&action=filler.even`)).total, 30);
  t.is((await list(`${until}&action=filler.even&targetType=filler_third`)).total, 10);
  t.is((await list(`${until}&action=filler.even&targetType=filler_third&actorType=user`)).total, 10);
  t.is((await list(`${until}&actorType=probe`)).total, 10);
  t.is((await list(`${until}&action=filler`)).total, 0);
  const newest = (await list(`${until}&pageSize=2`)).items;
  t.deepEqual(
    newest.map(({ targetId }: Body) => targetId),
    ['59', '58'],
  );
});

test.serial('from is part of the range, to is not', async (t) => {
  const at = (minute: number) => new Date(Date.UTC(2020, 0, 1) + minute * 60_000).toISOString();
  t.is((await list(`from=${at(10)}&to=${at(12)}`)).total, 2);
  t.is((await list(`from=${at(10)}&to=${at(10)}`)).total, 0);
  await api.badField(t, '/to', 'GET', `/audit-logs?from=${at(12)}&to=${at(10)}`);
  await api.badField(t, '/from', 'GET', '/audit-logs?from=yesterday');
  // Times that the contract accepts and PostgreSQL would not read.
  const strange = encodeURIComponent('0701-02-23T16:13:41.5632+23:46');
  t.is((await list(`from=${strange}&to=${strange}`)).total, 0);
  await api.badField(t, '/actorType', 'GET', '/audit-logs?actorType=operator');
});

test.serial('a total is exact whatever days are counted already, with every filter', async (t) => {
  const { sql } = api;
  const now = new Date();
  /** Totals of the API beside plain counts. */
  const agree = async (when: string) => {
    const at = (hours: number) => new Date(now.getTime() - hours * 3_600_000);
    for (const where of [
      {},
      { action: 'counted.a' },
      { targetType: 'counted' },
      { actorType: 'node' },
      { action: 'counted.b', targetType: 'counted', actorType: 'node' },
      { action: 'counted.a', targetType: 'counted', targetId: '1' },
    ]) {
      for (const [from, to] of [
        [undefined, undefined],
        [at(100), undefined],
        [undefined, at(30)],
        [at(75), at(3)],
        [at(50), at(49)],
        [at(24), at(24)],
      ] as const) {
        const [row] = await sql('audit_entry')
          .where(
            Object.fromEntries(
              Object.entries(where).map(([name, value]) => [COLUMNS[name as keyof typeof COLUMNS], value]),
            ),
          )
          .where('occurred_at', '>=', from ?? new Date(0))
          .where('occurred_at', '<', to ?? new Date('9000-01-01'))
          .count();
        const range = { ...(from && { from: from.toISOString() }), ...(to && { to: to.toISOString() }) };
        const { total } = await list(new URLSearchParams({ pageSize: '1', ...where, ...range }).toString());
        t.is(total, Number(row!.count), `${when}: ${JSON.stringify({ ...where, ...range })}`);
      }
    }
  };
  const write = (hours: number, count: number) =>
    sql.raw(
      `insert into audit_entry (occurred_at, actor_type, action, target_type, target_id)
       select ?::timestamptz - n * interval '1 minute', case n % 2 when 0 then 'node' else 'user' end,
           case n % 3 when 0 then 'counted.a' else 'counted.b' end, case n % 4 when 0 then null else 'counted' end, n::text
         from generate_series(1, ?) n`,
      [new Date(now.getTime() - hours * 3_600_000), count],
    );
  await write(0, 6000);
  await agree('nothing is counted');
  // As far back as the oldest entry of the other tests, day by day.
  while (await countDay(sql, 'audit_entry', new Date(now.getTime() - 2 * DAY)));
  t.true((await sql('audit_day').where({ action: 'counted.a' })).length > 0);
  await agree('some days are counted');
  await write(80, 50);
  await agree('entries came late');
  await sql('audit_entry')
    .where({ action: 'counted.b' })
    .where('occurred_at', '<', new Date(now.getTime() - 3 * DAY))
    .delete();
  await agree('entries of counted days are deleted');
  while (await countDay(sql, 'audit_entry', now));
  await agree('all days but this one are counted');
  await sql('audit_entry').where('action', 'like', 'counted.%').delete();
  t.is((await sql('audit_day').where('action', 'like', 'counted.%')).length, 0);
});

test.serial('an entry that is written while its day is counted is counted once', async (t) => {
  const { sql } = api;
  const day = new Date(Date.UTC(2018, 0, 1));
  await sql('audit_day').delete();
  await sql('counted_log').where({ log: 'audit_entry' }).update({ until: day });
  const entry = { occurred_at: day, actor_type: 'system', action: 'counted.once' };
  const trx = await sql.transaction();
  await trx('audit_entry').insert(entry);
  const counting = countDay(sql, 'audit_entry', new Date(day.getTime() + DAY));
  await eventually(async () => {
    const { rows } = await sql.raw(
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'lock table%'`,
    );
    return rows.length > 0;
  });
  const late = sql('audit_entry')
    .insert(entry)
    .then(() => undefined);
  await trx.commit();
  await Promise.all([counting.catch(() => countDay(sql, 'audit_entry', new Date(day.getTime() + DAY))), late]);
  t.is((await list('action=counted.once')).total, 2);
  t.deepEqual(
    (await sql('audit_day').where({ action: 'counted.once' })).map(({ entries }: Body) => Number(entries)),
    [2],
  );
  await sql('audit_entry').where({ action: 'counted.once' }).delete();
});

test.serial('pages of entries of the same moment neither repeat nor miss one', async (t) => {
  const moment = new Date(Date.UTC(2019, 0, 1));
  await api
    .sql('audit_entry')
    .insert(Array.from({ length: 25 }, () => ({ occurred_at: moment, actor_type: 'system', action: 'filler.same' })));
  const seen = [];
  for (const page of [1, 2, 3]) seen.push(...ids(await list(`action=filler.same&pageSize=10&page=${page}`)));
  t.is(new Set(seen).size, 25);
  t.deepEqual(
    seen,
    seen.toSorted((a, b) => Number(b) - Number(a)),
  );
});

test.serial('facets name every action, target type and actor type there is, once and in order', async (t) => {
  const facets = await api.ok('GET', '/audit-logs/facets');
  for (const [facet, column] of [
    ['actions', 'action'],
    ['targetTypes', 'target_type'],
    ['actorTypes', 'actor_type'],
  ] as const) {
    const rows = await api.sql('audit_entry').distinct(column).whereNotNull(column);
    t.deepEqual(facets[facet], rows.map((row) => row[column]).sort(), facet);
  }
});

test.serial('the list and the facets look at the entries they show, however many there are', async (t) => {
  // In parts: each statement of the pool has its limit in time.
  for (let part = 0; part < 10; part++) {
    await api.sql.raw(
      `insert into audit_entry (occurred_at, actor_type, action, target_type, target_id)
       select now() - n * interval '1 second', 'system', 'many.' || n % 20, 'kind_' || n % 10, n::text
         from generate_series(?::int + 1, ?::int + 10000) n`,
      [part * 10_000, part * 10_000],
    );
  }
  await api.sql.raw('analyze audit_entry');
  const plans = new QueryPlans(api, running);
  await plans.connect();
  t.teardown(() => plans.end());
  for (const path of [
    '/audit-logs',
    '/audit-logs?action=many.7',
    '/audit-logs?targetType=kind_3',
    '/audit-logs?actorType=system',
    '/audit-logs?targetType=kind_3&targetId=3',
    '/audit-logs?action=many.7&from=2026-01-01T00:00:00Z',
    '/audit-logs/facets',
  ]) {
    const read = await plans.rowsRead(path, (sql) => sql.includes('audit_entry') && !sql.includes('count('));
    t.true(read.length > 0);
    for (const rows of read) t.true(rows <= 200, `${path} read ${rows} rows`);
  }
});

// Retention -------------------------------------------------------------------------------------------------------------

test.serial('entries are kept for ten years unless the setting says otherwise', async (t) => {
  t.deepEqual(await api.ok('GET', '/settings/audit-retention'), { days: 3650 });
  await api.badField(t, '/days', 'PUT', '/settings/audit-retention', { days: 29 });
  await api.badField(t, '/days', 'PUT', '/settings/audit-retention', { days: 3651 });
  t.deepEqual(await api.ok('PUT', '/settings/audit-retention', { days: 90 }), { days: 90 });
  t.deepEqual(await api.ok('GET', '/settings/audit-retention'), { days: 90 });
  const before = (await list('action=system.audit_retention_update')).total;
  const [entry] = (await list('action=system.audit_retention_update')).items;
  t.deepEqual(entry.metadata, { before: 3650, after: 90 });
  await api.ok('PUT', '/settings/audit-retention', { days: 90 });
  t.is((await list('action=system.audit_retention_update')).total, before);
});

test.serial('older entries are deleted, all of them, and nothing else', async (t) => {
  const purge = JOBS.find(({ name }) => name === 'purge-audit-log')!;
  const runtime = running.running.runtime;
  await api.sql('audit_entry').where('action', 'like', 'many.%').delete();
  await api.sql.raw(`
    insert into audit_entry (occurred_at, actor_type, action)
    select now() - make_interval(days => 91), 'system', 'aged.old' from generate_series(1, 5001)`);
  await api.sql.raw(`
    insert into audit_entry (occurred_at, actor_type, action)
    values (now() - make_interval(days => 89), 'system', 'aged.young')`);
  while (await countDay(api.sql, 'audit_entry', new Date()));
  const written = await noteWrites(api.sql);
  await purge.run(runtime, new AbortController().signal);
  t.is((await list('action=aged.old')).total, 0);
  t.is((await list('action=aged.young')).total, 1);
  t.deepEqual([...new Set(await written())].sort(), ['audit_day', 'audit_entry']);
});
