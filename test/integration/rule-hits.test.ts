// How often rules matched: what nodes count, each batch once, and what the console answers of it.
import test from 'ava';
import { dropRuleWeeks, makeRuleWeeks } from '../../models/rules/rule-hours.ts';
import { moveAllRuleMinutes } from '../../models/rules/rule-minute.ts';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;
const { LOGGED, LIMITED, BLOCKED } = RuleEvent;

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const nowS = () => Math.floor(Date.now() / 1000 / MINUTE_S) * MINUTE_S;
const sql = () => running.running.runtime.pools.api;

interface Counted {
  rule: string;
  count: number;
  event?: RuleEvent;
  platform?: boolean;
}

/** A site with its node, which reports what it is told. */
class Counting {
  sequence = 0n;
  readonly siteId: string;
  readonly node: ReportingNode;
  readonly clusterId: string;

  private constructor(siteId: string, node: ReportingNode, clusterId: string) {
    this.siteId = siteId;
    this.node = node;
    this.clusterId = clusterId;
  }

  static async start(name: string, features = ['rule-log-v1']): Promise<Counting> {
    const clusterId = await api.cluster(name);
    const siteId: string = (await api.site(clusterId, `${name}.example`)).id;
    const node = await ReportingNode.enroll(running, clusterId, features);
    await node.beat();
    return new Counting(siteId, node, clusterId);
  }

  /** Answers the sequence that is acknowledged. */
  async report(at: number, counted: readonly Counted[], more: Body = {}): Promise<bigint> {
    const { siteId = this.siteId, sequence = ++this.sequence } = more;
    const rules = counted.map(({ rule, count, event = LOGGED, platform = false }) => ({
      ruleId: rule,
      platform,
      event,
      count: BigInt(count),
    }));
    const minutes = [{ siteId, minute: BigInt(at), requests: 1n, rules }];
    return (await this.node.connection.call('reportStats', { minutes, sequence })).acknowledged;
  }

  async logged(query = ''): Promise<(readonly [string, number])[]> {
    const { items } = await api.ok('GET', `/sites/${this.siteId}/rules/logged${query}`);
    return items.map(({ ruleId, requests }: Body) => [ruleId, requests]);
  }
}

const logRule = (name: string) => ({
  name,
  phase: 'waf-custom',
  expression: 'true',
  enabled: true,
  action: { kind: 'log' },
});

test('log rules of the site and of the platform are listed by how often they matched, with their names', async (t) => {
  const site = await Counting.start('named');
  const { rules } = await api.ok('PUT', `/sites/${site.siteId}/rules`, {
    rules: [logRule('Scrapers'), logRule('Gone')],
  });
  const [scrapers, gone] = rules.map(({ id }: Body) => id);
  const platform = await api.ok('PUT', '/platform-rules', { rules: [logRule('Everywhere')] });
  const everywhere: string = platform.rules[0].id;
  await site.report(nowS(), [
    { rule: scrapers, count: 5 },
    { rule: gone, count: 9 },
    { rule: everywhere, platform: true, count: 7 },
    // An id of the site's rules is none of the platform's.
    { rule: scrapers, platform: true, count: 1 },
    { rule: 'blocks', event: BLOCKED, count: 100 },
  ]);
  await api.ok('PUT', `/sites/${site.siteId}/rules`, { rules: [rules[0]] });
  const answer = await api.ok('GET', `/sites/${site.siteId}/rules/logged`);
  t.deepEqual(answer, {
    approximate: true,
    items: [
      { ruleId: gone, name: null, platform: false, requests: 9 },
      { ruleId: everywhere, name: 'Everywhere', platform: true, requests: 7 },
      { ruleId: scrapers, name: 'Scrapers', platform: false, requests: 5 },
      { ruleId: scrapers, name: null, platform: true, requests: 1 },
    ],
    unsupportedNodes: 0,
  });
  t.is((await site.logged('?limit=2')).length, 2);
  t.is((await api.call('GET', `/sites/${site.siteId}/rules/logged?limit=51`)).status, 400);
  t.is((await api.call('GET', `/sites/${site.siteId}/rules/logged?range=2h`)).status, 400);
  for (const path of ['logged', 'hits']) {
    t.like(await api.call('GET', `/sites/nothing/rules/${path}`), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
  }
});

test('a batch that is sent again counts once, also after its hour was summed', async (t) => {
  const site = await Counting.start('once');
  const old = nowS() - 5 * HOUR_S;
  await site.report(old, [{ rule: 'r', count: 4 }]);
  const sum = async () => {
    const now = new Date();
    await moveAllRuleMinutes(sql(), new Date(now.getTime() - 2 * HOUR_S * 1000), await makeRuleWeeks(sql(), now));
  };
  await sum();
  t.is(await site.report(old, [{ rule: 'r', count: 4 }], { sequence: site.sequence }), site.sequence);
  const next = ++site.sequence;
  site.node.reconnect();
  await Promise.all([1, 2].map(() => site.report(old, [{ rule: 'r', count: 1 }], { sequence: next })));
  t.deepEqual(await site.logged(), [['r', 5]]);
  await Promise.all([sum(), sum()]);
  t.deepEqual(await site.logged(), [['r', 5]]);
  t.is((await api.sql('rule_minute').where({ site_id: site.siteId })).length, 0);
  t.like(await api.sql('rule_hour').where({ site_id: site.siteId }), [{ requests: '5' }]);
});

test('a range counts what is in it, by the minute lately and by the hour before', async (t) => {
  const site = await Counting.start('ranges');
  const now = nowS();
  const ages = [30 * MINUTE_S, 3 * HOUR_S, 20 * HOUR_S, 3 * DAY_S, 20 * DAY_S, 40 * DAY_S];
  for (const [index, age] of ages.entries()) await site.report(now - age, [{ rule: 'r', count: 10 ** index }]);
  const expected = { '1h': 1, '6h': 11, '24h': 111, '7d': 1111, '30d': 11_111 };
  for (const _ of ['as minutes', 'as hours']) {
    for (const [range, count] of Object.entries(expected)) {
      t.deepEqual(await site.logged(`?range=${range}`), [['r', count]], range);
    }
    t.deepEqual(await site.logged(), [['r', 111]]);
    const date = new Date();
    await moveAllRuleMinutes(sql(), new Date((now - 2 * HOUR_S) * 1000), await makeRuleWeeks(sql(), date));
  }
  t.deepEqual(
    (await api.sql('rule_minute').where({ site_id: site.siteId })).map(({ requests }) => requests),
    ['1'],
  );
});

test('beside each rule stands what became of requests; rules of the platform count over all sites', async (t) => {
  const site = await Counting.start('beside');
  const other = await Counting.start('other');
  const now = nowS();
  await site.report(now, [
    { rule: 'limits', event: LIMITED, count: 3 },
    { rule: 'limits', event: LOGGED, count: 1 },
    { rule: 'beside-platform', platform: true, count: 2 },
  ]);
  for (const each of [site, other]) {
    const rules = [{ rule: 'beside-platform', event: BLOCKED, platform: true, count: 4 }];
    await each.report(now - 3 * HOUR_S, rules, { siteId: '' });
  }
  t.deepEqual(await api.ok('GET', `/sites/${site.siteId}/rules/hits`), {
    approximate: true,
    items: [
      { ruleId: 'limits', event: 'limited', requests: 3 },
      { ruleId: 'limits', event: 'logged', requests: 1 },
    ],
    unsupportedNodes: 0,
  });
  const ofPlatform = async (query = '') =>
    (await api.ok('GET', `/platform-rules/hits${query}`)).items.filter(
      ({ ruleId }: Body) => ruleId === 'beside-platform',
    );
  t.deepEqual(await ofPlatform(), [{ ruleId: 'beside-platform', event: 'blocked', requests: 8 }]);
  t.deepEqual(await ofPlatform('?range=1h'), []);
});

test('rules of the WAF are listed by how often they matched, and are none of the rules of the site', async (t) => {
  const site = await Counting.start('inspected');
  const event = RuleEvent.WAF_MATCHED;
  await site.report(nowS(), [
    { rule: '942100', event, count: 5 },
    { rule: '941100', event, count: 2 },
    ...['901001', '949110', '959100', '980130', 'own'].map((rule) => ({ rule, event, count: 100 })),
    { rule: '920100', count: 100 },
  ]);
  await site.report(nowS() - 3 * HOUR_S, [{ rule: '941100', event, count: 4 }]);
  const top = (query = '') => api.ok('GET', `/sites/${site.siteId}/waf/rules${query}`);
  const [sql, script] = [
    { ruleId: 942_100, requests: 5 },
    { ruleId: 941_100, requests: 6 },
  ];
  t.deepEqual(await top(), { approximate: true, items: [script, sql] });
  t.deepEqual((await top('?limit=1')).items, [script]);
  t.deepEqual((await top('?range=1h')).items, [sql, { ...script, requests: 2 }]);
  t.deepEqual((await api.ok('GET', `/sites/${site.siteId}/rules/hits`)).items, [
    { ruleId: '920100', event: 'logged', requests: 100 },
  ]);
  for (const query of ['limit=0', 'limit=51', 'range=2h'])
    t.is((await api.call('GET', `/sites/${site.siteId}/waf/rules?${query}`)).status, 400);
  t.like(await api.call('GET', '/sites/nothing/waf/rules'), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
});

test('statistics list what matched most: of a site with its WAF, and global rules on all sites', async (t) => {
  const site = await Counting.start('all-rules');
  const { rules } = await api.ok('PUT', `/sites/${site.siteId}/rules`, { rules: [logRule('Bots')] });
  const [own, global] = [rules[0].id, 'statistics-global'];
  const waf = { event: RuleEvent.WAF_MATCHED };
  await site.report(nowS(), [
    { rule: own, count: 4 },
    { rule: global, count: 3, platform: true },
    { rule: '942100', count: 9, ...waf },
    { rule: '949110', count: 99, ...waf },
    { rule: 'gone', count: 2, event: BLOCKED },
  ]);
  await site.report(nowS(), [{ rule: global, count: 7_000_000, platform: true, event: BLOCKED }], { siteId: '' });
  const old = nowS() - 3 * HOUR_S;
  await site.report(old, [{ rule: own, count: 5 }]);
  const top = (query: string) => api.ok('GET', `/analytics/top-rules?${query}`);
  const linesOf = async (query: string) =>
    (await top(query)).items.map(({ kind, name, result, requests }: Body) => [kind, name, result, requests]);
  const recent = [
    ['waf', null, 'matched', 9],
    ['site', 'Bots', 'logged', 4],
    ['platform', null, 'logged', 3],
    ['site', null, 'blocked', 2],
  ];
  t.deepEqual(await linesOf(`siteId=${site.siteId}&range=1h`), recent);
  t.deepEqual((await linesOf(`siteId=${site.siteId}`)).find(([, name]: Body) => name === 'Bots')[3], 9);
  t.is((await top(`siteId=${site.siteId}&limit=1`)).items.length, 1);
  const span = (seconds: number) => new Date(seconds * 1000).toISOString();
  t.deepEqual(await linesOf(`siteId=${site.siteId}&from=${span(old - 60)}&to=${span(old + 60)}`), [
    ['site', 'Bots', 'logged', 5],
  ]);
  t.deepEqual((await linesOf('range=1h'))[0], ['platform', null, 'blocked', 7_000_000]);
  const year = await top(`siteId=${site.siteId}&range=365d`);
  t.true(Date.parse(year.from) > Date.now() - 31 * 86_400_000, 'rules are kept for 30 days');
  await api.refused(t, [400, 'ANALYTICS_PERIOD_INVALID'], 'GET', `/analytics/top-rules?from=${span(old)}`);
});

test('counts of sites of other clusters are left out, those of deleted ones stay', async (t) => {
  const site = await Counting.start('own');
  const foreign = await Counting.start('foreign');
  await site.report(nowS(), [{ rule: 'r', count: 1 }], { siteId: foreign.siteId });
  await site.report(nowS(), [{ rule: 'r', count: 1 }], { siteId: 'nothing' });
  t.deepEqual(await foreign.logged(), []);
  await api.ok('DELETE', `/sites/${site.siteId}`);
  await site.report(nowS(), [{ rule: 'r', count: 2 }]);
  const rows = await api.sql('rule_minute').whereIn('site_id', [site.siteId, 'nothing']);
  t.deepEqual(
    rows.map(({ requests }) => requests),
    ['2'],
  );
});

test('active nodes that cannot count are said', async (t) => {
  const site = await Counting.start('old', ['bans-v1']);
  const newer = await ReportingNode.enroll(running, site.clusterId, ['rule-log-v1']);
  await newer.beat();
  t.like(await api.ok('GET', `/sites/${site.siteId}/rules/logged`), { items: [], unsupportedNodes: 1 });
  t.true((await api.ok('GET', '/platform-rules/hits')).unsupportedNodes >= 1);
  await api.ok('POST', `/nodes/${site.node.id}/disable`);
  t.like(await api.ok('GET', `/sites/${site.siteId}/rules/hits`), { unsupportedNodes: 0 });
});

test.serial('weeks of which nothing is shown any more are dropped', async (t) => {
  const now = new Date();
  const floor = await makeRuleWeeks(sql(), now);
  const later = new Date(now.getTime() + 70 * DAY_S * 1000);
  t.true(floor.getTime() <= now.getTime() - 31 * DAY_S * 1000);
  const dropped = await dropRuleWeeks(sql(), later);
  t.true(dropped.length >= 5, dropped.join());
  t.deepEqual(await dropRuleWeeks(sql(), later), []);
  await makeRuleWeeks(sql(), now);
  t.deepEqual(await dropRuleWeeks(sql(), now), []);
});
