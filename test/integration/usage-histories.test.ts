// Random histories of nodes against the rules of the specification, through PostgreSQL and two processes that take batches.
import test from 'ava';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { StatsIngest } from '../../services/node-channel/stats-ingest.ts';
import { compactBefore } from '../../services/usage/compaction.ts';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { CountingNode, expectedSums, histories, type Step } from '../helpers/usage-history.ts';

const HISTORIES = 8;
const WINDOW_S = 300;

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteIds: string[];
let ingests: StatsIngest[];

test.before('start', async () => {
  // Its own jobs would do roll-ups between the steps.
  running = await startTestConsole({ env: { ROLE: 'app', SVC_TRANSPORTER: 'none' } });
  api = new Api(running);
  clusterId = await api.cluster('histories');
  siteIds = await Promise.all(['a.example', 'b.example'].map(async (domain) => (await api.site(clusterId, domain)).id));
  await api.ok('PUT', '/settings/usage', { offlineThresholdMinutes: 1440 });
  const { runtime } = running.running;
  ingests = [1, 2].map(() => new StatsIngest({ ...runtime, metrics: new Registry() }, 1));
});
test.after.always('stop', async () => {
  await Promise.all((ingests ?? []).map((ingest) => ingest.stop()));
  await running?.stop();
});

test('whatever comes late, twice or out of order: usage is what was stored, each batch once', async (t) => {
  let turn = 0;
  await fc.assert(
    fc.asyncProperty(histories, fc.infiniteStream(fc.nat({ max: 1 })), async (steps, choose) => {
      // Hours of its own: nothing of one history meets another.
      const from = Math.floor(Date.now() / 3_600_000) * 3600 - 3600 * (2 + turn++);
      await play(from, steps, () => ingests[choose.next().value!]!);
    }),
    // Names of what failed cost as much as the failure; the seed plays it again.
    { numRuns: HISTORIES, endOnFailure: true },
  );
  t.pass();

  async function play(from: number, steps: readonly Step[], console: () => StatsIngest): Promise<void> {
    await api.sql('node').update({ status: 'disabled' });
    await api.sql('usage_state').update({ complete_until: null });
    const enroll = async (name: string) => {
      const id = await api.node(clusterId, `${name}-${from}`);
      await api
        .sql('node')
        .where({ id })
        .update({ enrolled_at: new Date(from * 1000) });
      return new CountingNode(id, clusterId, from);
    };
    const nodes = await Promise.all(['a', 'b', 'c'].map(enroll));
    const all = [...nodes];
    const compactions: Promise<void>[] = [];
    for (const step of steps) {
      if (!('node' in step)) {
        if (step.what === 'roll_up') await rollUpUsage(running.running.runtime);
        // Beside what follows.
        else compactions.push(compactBefore(running.running.runtime, new Date((from + 3600) * 1000)));
        continue;
      }
      const node = nodes[step.node]!;
      if (step.what === 'count') {
        const { site, minute, requests, bytes } = step;
        node.count({ siteId: siteIds[site]!, minute: from + minute * 60, requests, bytes });
      } else if (step.what === 'drain') node.drain();
      else if (step.what === 'drop') node.drop();
      else if (step.what === 'enroll') {
        await api.sql('node').where({ id: node.nodeId }).update({ status: 'disabled' });
        nodes[step.node] = await enroll(`again-${all.length}`);
        all.push(nodes[step.node]!);
      } else await node.send(console(), step.what === 'jump' ? 'newest' : 'oldest', step.what !== 'lose');
    }
    // What is left comes late to windows that were moved.
    compactions.push(compactBefore(running.running.runtime, new Date((from + 3600) * 1000)));
    await Promise.all(compactions);
    for (const node of nodes) {
      node.drain();
      for (let attempt = 0; node.spooled > 0 && attempt < 100; attempt++) await node.send(console(), 'oldest', true);
      t.is(node.spooled, 0);
    }
    await rollUpUsage(running.running.runtime);
    await compare(from, all, nodes);
  }

  async function compare(from: number, all: readonly CountingNode[], active: readonly CountingNode[]): Promise<void> {
    const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
    const { items, completeUntil } = await api.ok('GET', `/usage?from=${iso(from)}&to=${iso(from + 3600)}&limit=5000`);
    t.deepEqual(
      Object.fromEntries(
        items.map(({ siteId, windowStart, requests, bytesSent }: Body) => [
          `${Date.parse(windowStart) / 1000} ${siteId}`,
          { requests: Number(requests), bytes: Number(bytesSent) },
        ]),
      ),
      Object.fromEntries(expectedSums(all)),
    );
    await compareSums(from, all);
    const least = Math.min(...active.map(({ watermark }) => watermark!));
    t.is(Date.parse(completeUntil) / 1000, Math.floor(least / WINDOW_S) * WINDOW_S);
    // Again with nothing new, of what is compacted: nothing changes.
    const { lastSeq } = await api.ok('GET', '/usage/changes?limit=5000');
    await compactBefore(running.running.runtime, new Date((from + 3600) * 1000));
    const windows = Array.from({ length: 12 }, (_, index) => ({ window_start: iso(from + index * WINDOW_S) }));
    await api.sql('usage_dirty').insert(windows);
    await rollUpUsage(running.running.runtime);
    t.deepEqual((await api.ok('GET', `/usage/changes?afterSeq=${lastSeq}`)).items, []);
  }

  /** What pages show of the hour: sums by window and by site, of all sites and of one. */
  async function compareSums(from: number, all: readonly CountingNode[]): Promise<void> {
    const range = `from=${new Date(from * 1000).toISOString()}&to=${new Date((from + 3600) * 1000).toISOString()}`;
    const expected = [...expectedSums(all)].map(([key, sums]) => {
      const [window = '', site = ''] = key.split(' ');
      return { window: Number(window), site, ...sums };
    });
    const sumOf = (rows: typeof expected) => ({
      requests: rows.reduce((sum, { requests }) => sum + requests, 0),
      bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    });
    const shown = ({ requests, bytesSent }: Body) => ({ requests: Number(requests), bytes: Number(bytesSent) });
    const windows = Array.from({ length: 12 }, (_, index) => from + index * WINDOW_S);
    for (const site of [null, ...siteIds]) {
      const { points, totals } = await api.ok('GET', `/usage/summary?${range}${site ? `&siteId=${site}` : ''}`);
      const rows = expected.filter((row) => site === null || row.site === site);
      const byWindow = windows.map((window) => sumOf(rows.filter((row) => row.window === window)));
      t.deepEqual(points.map(shown), byWindow);
      t.deepEqual(shown(totals), sumOf(rows));
    }
    const { items } = await api.ok('GET', `/usage/sites?${range}`);
    for (const site of siteIds) {
      const listed = items.find(({ id }: Body) => id === site) ?? { requests: '0', bytesSent: '0' };
      t.deepEqual(shown(listed), sumOf(expected.filter((row) => row.site === site)));
    }
    t.deepEqual((await api.sql.raw(DIFFERING_TOTALS)).rows, []);
  }
});

/** Sums over all sites that are not those of the sites. */
const DIFFERING_TOTALS = `
  select * from (
    select 300 as seconds, window_start as at, sum(requests) as r, sum(bytes_sent) as s, sum(bytes_received) as b
      from usage_record group by 2
    union all select 3600, starts_at, sum(requests), sum(bytes_sent), sum(bytes_received) from usage_hour group by 2
    union all select 86400, starts_at, sum(requests), sum(bytes_sent), sum(bytes_received) from usage_day group by 2) e
  full join usage_total t on t.seconds = e.seconds and t.starts_at = e.at
   where (t.requests, t.bytes_sent, t.bytes_received) is distinct from (e.r, e.s, e.b)`;
