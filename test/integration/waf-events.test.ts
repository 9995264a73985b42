// Requests in which rules of the WAF matched: what nodes tell of them, each once, and what the console lists.
import test from 'ava';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { QueryPlans } from '../helpers/query-plans.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const HOUR = 3_600_000;

let running: TestConsole;
let api: Api;
let node: ReportingNode;
let siteId: string;
let foreign: string;

test.before('a site and its node', async () => {
  running = await startTestConsole();
  api = new Api(running);
  const clusterId = await api.cluster('inspected');
  siteId = (await api.site(clusterId, 'inspected.example')).id;
  foreign = (await api.site(await api.cluster('elsewhere'), 'foreign.example')).id;
  node = await ReportingNode.enroll(running, clusterId, ['modsecurity-v1']);
  await node.beat();
});
test.after.always('stop', () => running?.stop());

let count = 0;
const event = (waf: Body | undefined, more: Body = {}): Body => ({
  id: `boot-${count++}`,
  siteId,
  kind: SecurityEventKind.WAF_MATCHED,
  occurredAtMs: BigInt(Date.now() - HOUR / 2),
  waf,
  ...more,
});
const matched = (more: Body = {}): Body => ({
  requestId: `request-${count}`,
  method: 'POST',
  path: '/editor',
  address: '2001:db8::1',
  rules: [942_100, 942_190],
  score: 10,
  threshold: 5,
  blocked: true,
  matches: [{ rule: 942_100, part: 'argument', name: 'content' }],
  ...more,
});
const report = (events: readonly Body[]) => node.connection.call('reportSecurity', { events } as never);
const list = (query = '', id = siteId) => api.ok('GET', `/sites/${id}/waf/events${query}`);
const ids = async (query = ''): Promise<string[]> =>
  (await list(query)).items.map(({ requestId }: Body) => requestId).sort();

test.serial(
  'what a node tells is listed once, without any value, and is none of the events of mitigation',
  async (t) => {
    const events = [event(matched({ requestId: 'one' }))];
    await report(events);
    await report(events);
    const { items, total } = await list();
    t.is(total, 1);
    t.like(items[0], { node: { id: node.id } });
    const { id, node: _node, occurredAt, ...rest } = items[0];
    t.is(occurredAt, new Date(Number(events[0]!.occurredAtMs)).toISOString());
    t.is(typeof id, 'string');
    t.deepEqual(rest, {
      requestId: 'one',
      method: 'POST',
      path: '/editor',
      address: '2001:db8::1',
      rules: [942_100, 942_190],
      score: 10,
      threshold: 5,
      blocked: true,
      matches: [{ ruleId: 942_100, part: 'argument', name: 'content', value: null, points: null }],
      rulesSeen: null,
      matchesSeen: null,
    });
    t.deepEqual(await api.ok('GET', `/sites/${siteId}/security/events`), { items: [], total: 0 });
  },
);

test.serial('the list is narrowed by range, outcome, rule, request, path and client', async (t) => {
  await report([
    event(
      matched({
        requestId: 'two',
        blocked: false,
        rules: [941_100],
        matches: [],
        path: '/Login',
        address: '192.0.2.7',
      }),
    ),
    event(matched({ requestId: 'old' }), { occurredAtMs: BigInt(Date.now() - 3 * HOUR) }),
    event(matched({ requestId: 'elsewhere' }), { siteId: foreign }),
  ]);
  t.deepEqual(await ids(), ['old', 'one', 'two']);
  t.deepEqual(await ids('?range=1h'), ['one', 'two']);
  t.deepEqual(await ids('?blocked=false'), ['two']);
  t.deepEqual(await ids('?blocked=true&range=1h'), ['one']);
  t.deepEqual(await ids('?ruleId=941100'), ['two']);
  t.deepEqual(await ids('?requestId=old'), ['old']);
  t.deepEqual(await ids('?path=/edit'), ['old', 'one']);
  t.deepEqual(await ids('?path=/login'), []);
  t.deepEqual(await ids('?path=/Lo&address=192.0.2.0/24'), ['two']);
  t.deepEqual(await ids('?address=192.0.2.70'), []);
  t.deepEqual(await ids('?address=2001:DB8:0::1'), ['old', 'one']);
  t.like(await list('?pageSize=1&page=3'), { total: 3, items: [{ requestId: 'old' }] });
  t.deepEqual(await list('', foreign), { items: [], total: 0 });
  for (const query of [
    'range=2h',
    'blocked=maybe',
    'ruleId=1',
    `requestId=${'x'.repeat(129)}`,
    'pageSize=101',
    'path=a',
    'address=a',
  ])
    t.is((await api.call('GET', `/sites/${siteId}/waf/events?${query}`)).status, 400, query);
  t.like(await api.call('GET', '/sites/nothing/waf/events'), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
});

test.serial('of an exclusion it is said how many events it would have silenced', async (t) => {
  await report([
    event(
      matched({
        path: '/editor/new',
        rules: [942_100],
        score: 5,
        matches: [{ rule: 942_100, part: 'argument', name: 'items.7.Text' }],
      }),
    ),
    event(matched({ rules: [941_100], matches: [{ rule: 941_100, part: 'cookie', name: 'content' }] })),
  ]);
  const counts = ({ events, matched }: Body) => [events, matched];
  const preview = async (exclusion: Body) =>
    counts(await api.ok('POST', `/sites/${siteId}/waf/exclusions/preview`, { exclusions: [exclusion] }));
  const sql = { ruleId: 942_100 };
  const rows: [Body, number | null, number | null][] = [
    [sql, 1, 3],
    [{ ...sql, path: '/editor' }, 0, 2],
    [{ ...sql, path: '/editor', pathPrefix: true }, 1, 3],
    [{ ...sql, part: 'argument', name: 'CONTENT' }, 0, 2],
    [{ ...sql, part: 'cookie', name: 'content' }, 0, 0],
    [{ ...sql, part: 'argument', name: 'items.*.text' }, 1, 1],
    [{ ...sql, part: 'argument', name: 'items.*' }, 0, 0],
    [{ tag: 'attack-sqli', part: 'argument', name: 'content' }, 0, 2],
    [{ tag: 'attack-sqli' }, 3, 3],
    [{ tag: 'attack-xss' }, 2, 2],
    [{ tag: 'paranoia-level/1' }, null, null],
    [{ ruleId: 920_100 }, 0, 0],
  ];
  for (const [exclusion, ...expected] of rows)
    t.deepEqual(await preview(exclusion), expected, JSON.stringify(exclusion));
  await api.ok('PATCH', `/sites/${siteId}/waf`, { exclusions: rows.map(([exclusion]) => exclusion) });
  const hits = await api.ok('GET', `/sites/${siteId}/waf/exclusions/hits`);
  t.deepEqual(
    hits.items.map(counts),
    rows.map(([, ...expected]) => expected),
  );
  t.like(hits, { approximate: true, looked: 5 });
  t.like(hits.items[1].exclusion, { ruleId: 942_100, tag: null, path: '/editor', part: 'all' });
  const refused = (exclusion: Body) =>
    api.call('POST', `/sites/${siteId}/waf/exclusions/preview`, { exclusions: [exclusion] });
  t.like(await refused({ ruleId: 949_110 }), { status: 400, body: { code: 'WAF_RULE_NOT_EXCLUDABLE' } });
  t.like(await refused({ tag: 'nothing' }), { status: 400, body: { code: 'BAD_REQUEST' } });
  t.like(await refused({ part: 'all' }), { status: 400, body: { code: 'BAD_REQUEST' } });
  t.is((await api.call('GET', '/sites/nothing/waf/exclusions/hits')).status, 404);
});

test.serial('with the points of each match it is said what stays an attack, and because of what', async (t) => {
  const other = (await api.site(await api.cluster('counted'), 'counted.example')).id;
  const clusterId = (await api.ok('GET', `/sites/${other}`)).clusterId;
  const exact = await ReportingNode.enroll(running, clusterId, ['modsecurity-v1']);
  const places = [
    { rule: 942_100, part: 'argument', name: 'content', points: 10 },
    { rule: 942_100, part: 'argument', name: 'title', points: 5 },
    { rule: 942_190, part: 'argument', name: 'content', points: 5 },
  ];
  const seen = { score: 25, rulesSeen: 2, matchesSeen: 4, matches: places };
  await exact.connection.call('reportSecurity', { events: [event(matched(seen), { siteId: other })] } as never);
  t.like((await list('', other)).items[0], { rulesSeen: 2, matchesSeen: 4 });
  t.deepEqual(
    (await list('', other)).items[0].matches.map(({ points }: Body) => points),
    [10, 5, 5],
  );
  const exclusions = places.map(({ rule, part, name }) => ({ ruleId: rule, part, name, path: '/editor' }));
  const preview = (chosen: Body[]) => api.ok('POST', `/sites/${other}/waf/exclusions/preview`, { exclusions: chosen });
  t.like(await preview(exclusions.slice(0, 2)), {
    events: 0,
    matched: 1,
    attacks: 1,
    remaining: [{ ruleId: 942_190, part: 'argument', name: 'content', events: 1 }],
  });
  // A fourth match was not kept, and weighs as much as an attack.
  t.like(await preview(exclusions), { events: 0, attacks: 1, remaining: [] });
  t.is((await api.call('POST', `/sites/${other}/waf/exclusions/preview`, { exclusions: [] })).status, 400);
});

test.serial('masked values are shown while the site wants them', async (t) => {
  const match = { rule: 942_100, part: 'argument', name: 'q' };
  const values = ["x' or '0'='0", 'x'.repeat(100), ''];
  await report([event(matched({ requestId: 'masked', matches: values.map((value) => ({ ...match, value })) }))]);
  const told = async () => (await list('?requestId=masked')).items[0].matches.map(({ value }: Body) => value);
  t.deepEqual(await told(), [null, null, null]);
  await api.ok('PATCH', `/sites/${siteId}/waf`, { eventValues: true });
  t.deepEqual(await told(), ["x' or '0'='0", 'x'.repeat(64), null]);
  await api.ok('PATCH', `/sites/${siteId}/waf`, { eventValues: false });
  t.deepEqual(await told(), [null, null, null]);
});

test.serial('what makes no sense is left out, and texts are cut', async (t) => {
  await report([
    event(undefined),
    event(matched({ requestId: 'no-rules', rules: [] })),
    event(matched({ requestId: 'no-such-rule', rules: [1, 2 ** 32 - 1] })),
    event(
      matched({
        requestId: 'most',
        address: 'nobody',
        path: `/${'x'.repeat(5000)}`,
        score: 2 ** 32 - 1,
        rules: Array.from({ length: 40 }, (_, n) => 942_000 + n),
        matches: [
          ...['argument', 'toString', 'value'].map((part) => ({ rule: 942_100, part, name: 'x'.repeat(1000) })),
          { rule: 5, part: 'all', name: '' },
        ],
      }),
    ),
  ]);
  t.deepEqual(await ids('?requestId=no-rules'), []);
  t.deepEqual(await ids('?requestId=no-such-rule'), []);
  const { items } = await list('?requestId=most');
  t.like(items[0], { address: null, score: 1_000_000 });
  t.is(items[0].path.length, 2048);
  t.is(items[0].rules.length, 16);
  t.deepEqual(items[0].matches, [
    { ruleId: 942_100, part: 'argument', name: 'x'.repeat(256), value: null, points: null },
  ]);
});

test.serial('a filter reads the few events that it finds of 20,000', async (t) => {
  const many = (await api.site(await api.cluster('noisy'), 'noisy.example')).id;
  await api.sql.raw(
    `insert into security_event (occurred_at, node_id, site_id, kind, level, previous_level, top_ips, top_paths, waf)
     select now() - n * interval '1 second', 'n', ?, 'waf_matched', 0, 0, '[]', '[]', jsonb_build_object(
         'requestId', 'noise-' || n, 'method', 'GET', 'path', '/page/' || n, 'address', '2001:db8::' || to_hex(n % 60000),
         'rules', jsonb_build_array(900000 + n % 1000), 'score', 5, 'threshold', 5, 'blocked', false,
         'matches', '[]'::jsonb) from generate_series(1, 20000) n`,
    [many],
  );
  await api.sql.raw('vacuum analyze security_event');
  const plans = new QueryPlans(api, running);
  await plans.connect();
  for (const filter of ['requestId=noise-19000', 'path=/page/19999', 'address=2001:db8::4e1f', 'ruleId=900999']) {
    const { total } = await list(`?${filter}`, many);
    t.true(total > 0 && total <= 20, `${filter}: ${total}`);
    const read = await plans.rowsRead(`/sites/${many}/waf/events?${filter}`, (sql) => sql.includes('security_event'));
    t.is(read.length, 2);
    t.true(
      read.every((rows) => rows < 100),
      `${filter}: ${read}`,
    );
  }
  await plans.end();
});
