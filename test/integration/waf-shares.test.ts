// Where the WAF suddenly takes far more of a site's requests for attacks, one event tells of it, and the overview while it lasts.
import test from 'ava';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { watchWafShares } from '../../services/waf/shares.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Overview } from '../helpers/overview.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let running: TestConsole;
let api: Api;
let overview: Overview;
let clusterId: string;
let node: ReportingNode;
/** The newest minute that is looked at, with room after it. */
const newest = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 90 * MINUTE_MS;

test.before('a node', async () => {
  running = await startTestConsole({ env: withoutJobs() });
  api = new Api(running);
  overview = new Overview(api);
  clusterId = await api.cluster('watched');
  node = await ReportingNode.enroll(running, clusterId, ['modsecurity-v1', 'rule-log-v1']);
  await node.beat();
});
test.after.always('stop', () => running?.stop());

interface Minutes {
  requests: number;
  attacks: number;
  /** Whether they are stopped. */
  blocked?: boolean;
}

let sequence = 0n;
/** Each of some minutes, from so many before the newest one on. */
async function tell(siteId: string, before: number, length: number, { requests, attacks, blocked }: Minutes) {
  const rules = [{ ruleId: '942100', platform: false, event: RuleEvent.WAF_MATCHED, count: BigInt(attacks) }];
  const counts = [{ name: blocked ? 'blocked.waf' : 'waf.attack', count: BigInt(attacks) }];
  const minutes = Array.from({ length }, (_, at) => ({
    siteId,
    minute: BigInt(newest / 1000 - (before - at) * 60),
    requests: BigInt(requests),
    ...(attacks > 0 ? { counts, rules } : {}),
  }));
  await node.connection.call('reportStats', { sequence: ++sequence, minutes } as never);
}

async function inspected(name: string, modeAge = DAY_MS): Promise<string> {
  const { id } = await api.site(clusterId, name);
  await api.ok('PATCH', `/sites/${id}/waf`, { mode: 'detect' });
  await api
    .sql('site_waf')
    .where({ site_id: id })
    .update({ mode_since: new Date(Date.now() - modeAge) });
  return id;
}

/** Twice at once, as two processes may. */
async function watch(minutesLater = 0): Promise<void> {
  const now = new Date(newest + (minutesLater + 2) * MINUTE_MS);
  await Promise.all([1, 2].map(() => watchWafShares(running.running.runtime, now)));
}
const events = (siteId: string, query = ''): Promise<Body> => api.ok('GET', `/sites/${siteId}/security/events${query}`);

test.serial(
  'a jump is told once, while it lasts the overview names the site, and the next one is told later',
  async (t) => {
    const id = await inspected('jumping.example');
    await tell(id, 64, 60, { requests: 100, attacks: 2 });
    await watch(-5);
    t.is((await events(id)).total, 0);
    await tell(id, 4, 5, { requests: 200, attacks: 60, blocked: true });
    await watch();
    await watch();
    const { items, total } = await events(id, '?kind=waf_share');
    t.is(total, 1);
    t.like(items[0], {
      node: null,
      kind: 'waf_share',
      level: 'normal',
      previousLevel: 'normal',
      metric: 'waf_share',
      observed: 30,
      threshold: 7,
      address: null,
      path: null,
      topIps: [],
    });
    t.is((await events(id)).total, 1);
    const item = await overview.shown('sites_waf_share');
    t.like(item, { level: 'watch', clusterId, count: 1, named: [{ type: 'site', id, reason: null }] });

    // It goes on, and ends.
    await tell(id, -1, 5, { requests: 200, attacks: 60 });
    await watch(5);
    t.is((await events(id)).total, 1);
    await watch(10);
    await overview.gone('sites_waf_share');
    // Too soon for another; then not.
    await tell(id, -11, 5, { requests: 200, attacks: 190 });
    await watch(15);
    t.is((await events(id)).total, 1);
    await tell(id, -21, 5, { requests: 200, attacks: 190 });
    await watch(25);
    t.is((await events(id)).total, 2);
  },
);

test.serial('neither little traffic, nor what is as before, nor a young mode is told', async (t) => {
  const few = await inspected('few.example');
  await tell(few, 64, 60, { requests: 1, attacks: 0 });
  await tell(few, 4, 5, { requests: 9, attacks: 9 });
  const busy = await inspected('busy.example');
  await tell(busy, 64, 60, { requests: 10_000, attacks: 2 });
  await tell(busy, 4, 5, { requests: 10_000, attacks: 400 });
  const scanned = await inspected('scanned.example');
  await tell(scanned, 64, 60, { requests: 100, attacks: 40 });
  await tell(scanned, 4, 5, { requests: 200, attacks: 190 });
  const young = await inspected('young.example', 0);
  const off = await inspected('off.example');
  await tell(young, 4, 5, { requests: 200, attacks: 60 });
  await tell(off, 4, 5, { requests: 200, attacks: 0 });
  await watch();
  for (const id of [few, busy, scanned, young, off]) t.is((await events(id)).total, 0, id);
});
