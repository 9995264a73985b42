// What a site that detects first is told: what block would have stopped, and what of it looks false.
import test from 'ava';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { compactBefore } from '../../services/usage/compaction.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const HOUR_S = 3600;
const HOUR_MS = HOUR_S * 1000;
const MINUTE_S = 60;

let running: TestConsole;
let api: Api;
let node: ReportingNode;
let clusterId: string;

test.before('a node', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('guided');
  node = await ReportingNode.enroll(running, clusterId, ['modsecurity-v1', 'rule-log-v1']);
  await node.beat();
});
test.after.always('stop', () => running?.stop());

const guidance = (siteId: string): Promise<Body> => api.ok('GET', `/sites/${siteId}/waf/guidance`);
const setMode = (siteId: string, mode: string) => api.ok('PATCH', `/sites/${siteId}/waf`, { mode });
const sql = () => running.running.runtime.pools.api;

let sequence = 0n;
async function count(siteId: string, hoursAgo: number, counts: Record<string, number>, rules: Body[] = []) {
  const minute = BigInt(Math.floor((Date.now() / 1000 - hoursAgo * HOUR_S) / MINUTE_S) * MINUTE_S);
  const named = Object.entries(counts).map(([name, count]) => ({ name, count: BigInt(count) }));
  await node.connection.call('reportStats', {
    sequence: ++sequence,
    minutes: [{ siteId, minute, requests: 100n, counts: named, rules }],
  } as never);
}

let events = 0;
const attack = (siteId: string, address: string, name: string, more: Body = {}): Body => ({
  id: `guided-${events++}`,
  siteId,
  kind: SecurityEventKind.WAF_MATCHED,
  occurredAtMs: BigInt(Date.now() - HOUR_MS),
  waf: {
    requestId: `request-${events}`,
    method: 'POST',
    path: '/editor',
    address,
    rules: [942_100],
    score: 5,
    threshold: 5,
    blocked: false,
    matches: [{ rule: 942_100, part: 'argument', name }],
    ...more,
  },
});
const report = (told: readonly Body[]) => node.connection.call('reportSecurity', { events: told } as never);

test.serial('guidance is ready once the mode has been detect for a day, whatever else was saved since', async (t) => {
  const { id } = await api.site(clusterId, 'ready.example');
  t.deepEqual(await guidance(id), {
    approximate: true,
    mode: 'off',
    detectingSince: null,
    ready: false,
    hours: 24,
    requests: 0,
    matched: 0,
    wouldBlock: 0,
    blocked: 0,
    rules: [],
    suspects: [],
  });
  const { updatedAt } = await setMode(id, 'detect');
  t.like(await guidance(id), { mode: 'detect', detectingSince: updatedAt, ready: false });
  const since = new Date(Date.now() - 25 * HOUR_MS);
  await sql()('site_waf').where({ site_id: id }).update({ mode_since: since });
  await api.ok('PATCH', `/sites/${id}/waf`, { paranoiaLevel: 2 });
  t.like(await guidance(id), { detectingSince: since.toISOString(), ready: true });
  await setMode(id, 'block');
  t.like(await guidance(id), { mode: 'block', detectingSince: null, ready: false });
  t.is((await setMode(id, 'detect')).updatedAt, (await guidance(id)).detectingSince);
  t.like(await api.call('GET', '/sites/nothing/waf/guidance'), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
});

test.serial('what was counted in the last day is summed, also after its minutes were moved to windows', async (t) => {
  const { id } = await api.site(clusterId, 'summed.example');
  const other = await api.site(clusterId, 'other.example');
  const rules = [{ ruleId: '942100', platform: false, event: RuleEvent.WAF_MATCHED, count: 9n }];
  await count(id, 1, { 'waf.matched': 9, 'waf.attack': 4 }, rules);
  await count(id, 10, { 'waf.matched': 5, 'waf.attack': 3, 'blocked.waf': 2 });
  await count(id, 10, {});
  await count(id, 30, { 'waf.matched': 50, 'waf.attack': 50, 'blocked.waf': 50 });
  await count(other.id, 1, { 'waf.matched': 70, 'waf.attack': 70 });
  const sums = { requests: 300, matched: 14, wouldBlock: 7, blocked: 2, rules: [{ ruleId: 942_100, requests: 9 }] };
  t.like(await guidance(id), sums);
  await compactBefore(running.running.runtime, new Date(Date.now() - 5 * HOUR_MS));
  t.like(await guidance(id), sums);
});

test.serial('what matched in attacks of several clients at one place looks false', async (t) => {
  const { id } = await api.site(clusterId, 'suspects.example');
  const clients = ['192.0.2.1', '192.0.2.2', '2001:db8::1'];
  await report([
    ...[...clients, clients[0]!, clients[0]!].map((client) => attack(id, client, 'content')),
    // A scanner, behind one network of IPv6.
    ...[1, 2, 3, 4, 5, 6].map((n) => attack(id, `2001:db8:0:1::${n}`, 'scanned')),
    // Too few requests; no attacks; of the day before.
    ...clients.map((client) => attack(id, client, 'seldom')),
    ...[...clients, ...clients].map((client) => attack(id, client, 'harmless', { score: 3 })),
    ...[...clients, ...clients].map((client) => ({
      ...attack(id, client, 'old'),
      occurredAtMs: BigInt(Date.now() - 25 * HOUR_MS),
    })),
  ]);
  t.deepEqual((await guidance(id)).suspects, [
    { ruleId: 942_100, path: '/editor', part: 'argument', name: 'content', events: 5, clients: 3 },
  ]);
});
