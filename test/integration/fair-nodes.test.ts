// One node with a correct certificate does its worst: the reports of every other node arrive, and none is refused.
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { whileBusy } from '../../bench/fleet/enroll-nodes.ts';
import { doItsWorst, reportedBan } from '../../bench/fleet/hostile-node.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs } from '../helpers/fleet.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

const HONEST = Number(process.env.HONEST_NODES ?? 5);
const WORST_MS = Number(process.env.WORST_SECONDS ?? 10) * 1000;
const EVERY_MS = 500;
const MINUTE = BigInt(Math.floor(Date.now() / 60_000) * 60);

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('fair');
  siteId = (await api.site(clusterId, 'fair.example')).id;
});
test.after.always('stop', () => running?.stop());

/** What an honest node reports in one round: one ban and ten requests. */
async function reportRound(node: ReportingNode, index: number, round: number): Promise<void> {
  const { connection } = node;
  const counts = { sequence: BigInt(round), minutes: [{ siteId, minute: MINUTE, requests: 10n }] };
  await Promise.all([
    whileBusy(() => node.beat()),
    whileBusy(() => connection.call('reportBans', { bans: [reportedBan(siteId, `45.${index}.1.${round}/32`)] })),
    whileBusy(() => connection.call('reportSecurity', { events: [], sites: [], hasState: true })),
    whileBusy(() => connection.call('reportStats', counts)),
  ]);
}

test.serial(
  'beside a node that does its worst, every ban and count of the others arrives and none is refused',
  async (t) => {
    const honest: ReportingNode[] = [];
    while (honest.length < HONEST) honest.push(await ReportingNode.enroll(running, clusterId));
    const hostile = await ReportingNode.enroll(running, clusterId);
    t.teardown(() => {
      for (const node of [...honest, hostile]) node.stop();
    });
    await Promise.all([...honest, hostile].map((node) => node.beat()));
    const stop = new AbortController();
    t.teardown(() => stop.abort());
    const { done, refusals } = doItsWorst(() => connectAs(running, hostile.identity), siteId, stop.signal);
    const ends = performance.now() + WORST_MS;
    let rounds = 0;
    while (performance.now() < ends) {
      rounds += 1;
      await t.notThrowsAsync(Promise.all(honest.map((node, index) => reportRound(node, index, rounds))));
      await sleep(EVERY_MS);
    }
    await eventually(async () => (await api.ok('GET', `/nodes/${hostile.id}`)).authError?.startsWith('OVER_BUDGET_'), {
      what: 'the status of the node over its budget',
    });
    stop.abort();
    await done;
    t.true(
      [...refusals].some((message) => message.includes('over its budget')),
      [...refusals].join('\n'),
    );
    const { rows: bans } = await api.sql.raw("select count(*)::int from ban where cidr << '45.0.0.0/8'");
    t.is(bans[0].count, HONEST * rounds);
    const { rows: counts } = await api.sql.raw('select sum(requests)::int as sum from usage_minute where site_id = ?', [
      siteId,
    ]);
    t.is(counts[0].sum, HONEST * rounds * 10);
    for (const node of honest) t.is((await api.ok('GET', `/nodes/${node.id}`)).authError, null);
  },
);
