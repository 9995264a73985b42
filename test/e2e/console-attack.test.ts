// The story of a bad hour in the Web UI: one site is flooded while the origin of another fails. An operator who opens the console
// finds both, sees why, and acts. The steps are counted and told.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { layoutFaults, screenshot, signedInVisit, startBrowsedConsole } from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';
import { rollUpTraffic } from '../helpers/rolled-up-traffic.ts';

const ATTACKER = '203.0.113.9';
const MINUTE_S = 60;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let node: ReportingNode;
let failingId: string;
let floodedId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  let clusterId: string;
  ({ clusterId, node, siteId: failingId } = await servedSite(running, api));
  floodedId = (await api.site(clusterId, 'news.example')).id;
  await node.beat(await node.onTarget());
});
test.after.always(async () => {
  node?.stop();
  await browser?.close();
  await running?.stop();
});

/** Two hours of both sites. For ten minutes the origin of the one is away and the other is flooded. */
async function badHour(): Promise<void> {
  const now = Math.floor(Date.now() / 1000 / MINUTE_S) * MINUTE_S;
  const counted = (counts: Record<string, number>) =>
    Object.entries(counts).map(([name, count]) => ({ name, count: BigInt(count) }));
  const minuteOf = (siteId: string, back: number, requests: number, failed: number, more: Record<string, number>) => ({
    siteId,
    minute: BigInt(now - back * MINUTE_S),
    requests: BigInt(requests),
    bytesSent: BigInt(requests * 20_000),
    bytesReceived: BigInt(requests * 500),
    statuses: [
      { code: 200, count: BigInt(requests - failed) },
      { code: 502, count: BigInt(failed) },
    ],
    counts: counted({ 'failed.origin-unreachable': failed, 'browser.chrome': requests, ...more }),
    latency: [0n, BigInt(requests)],
  });
  const minutes = Array.from({ length: 120 }, (_, back) => {
    const bad = back >= 2 && back < 12;
    return [
      minuteOf(failingId, back, 100, bad ? 100 : 0, {}),
      minuteOf(floodedId, back, bad ? 9000 : 50, 0, { 'blocked.waf': bad ? 4000 : 0 }),
    ];
  });
  await node.connection.call('reportStats', { minutes: minutes.flat(), sequence: 1n });
  await rollUpTraffic(running);
  await node.connection.call('reportSecurity', {
    hasState: true,
    sites: [{ siteId: floodedId, level: 2, paths: [] }],
    events: [
      {
        id: 'flood',
        siteId: floodedId,
        kind: SecurityEventKind.SITE_LEVEL,
        occurredAtMs: BigInt(Date.now() - 60_000),
        level: 2,
        previousLevel: 0,
        metric: 'site_qps',
        observed: 900,
        threshold: 100,
        topIps: [{ value: ATTACKER, count: 8000n }],
      },
      ...Array.from({ length: 6 }, (_, n) => ({
        id: `attack-${n}`,
        siteId: floodedId,
        kind: SecurityEventKind.WAF_MATCHED,
        occurredAtMs: BigInt(Date.now() - n * 1000),
        waf: {
          requestId: `request-${n}`,
          method: 'POST',
          path: '/login',
          address: ATTACKER,
          rules: [942_100],
          score: 10,
          threshold: 5,
          blocked: true,
          matches: [],
        },
      })),
    ],
  });
}

test('a flood and a failing origin are found, understood and acted on in a few clicks', async (t) => {
  await badHour();
  const { page, faults } = await signedInVisit(browser, running.origin, '/');
  const story = counting();

  // Which site fails, and since when: the list of sites shows the last day of each.
  await story.click(page.getByRole('link', { name: 'Sites', exact: true }));
  const row = page.getByRole('row').filter({ hasText: 'shop.example' });
  const spark = row.getByRole('img', { name: /requests in 24 hours, 1,000 of them failed/ });
  await spark.waitFor();
  await screenshot(page, 'attack-sites');
  await story.click(spark);
  await page.getByRole('region', { name: 'Failures by cause' }).getByText('Origin not reachable').waitFor();
  const chart = page.getByRole('slider', { name: 'Requests', exact: true });
  await chart.locator('canvas').waitFor();
  await screenshot(page, 'attack-statistics');
  const understood = story.done();

  // The origin has moved: its new address is saved.
  await story.click(page.getByRole('link', { name: 'Origins', exact: true }));
  await page.getByLabel('Address or host name', { exact: true }).first().fill('93.184.216.77');
  await story.click(page.getByRole('button', { name: 'Save', exact: true }).first());
  await eventually(async () => (await api.ok('GET', `/sites/${failingId}`)).origins[0].address === '93.184.216.77', {
    what: 'the saved origin',
  });

  // The flood: who it is, what else is known of the address, and a ban.
  await story.click(page.getByRole('link', { name: 'Incidents & Under Attack' }));
  await story.click(page.getByRole('link', { name: ATTACKER, exact: true }).first());
  await page.getByRole('heading', { name: 'WAF events of the last 24 hours' }).waitFor();
  await page.getByRole('slider', { name: 'WAF events of the last 24 hours' }).locator('canvas').waitFor();
  await page.getByText('POST /login').first().waitFor();
  t.deepEqual(await layoutFaults(page), []);
  await screenshot(page, 'attack-address');
  await story.click(page.getByRole('button', { name: 'Ban', exact: true }));
  const dialog = page.getByRole('dialog');
  await story.click(dialog.getByRole('button', { name: 'Ban', exact: true }));
  const ban = await eventually(async () => {
    const { items } = await api.ok('GET', '/bans?source=manual');
    return items.length > 0 && items[0];
  });
  t.is(ban.cidr, `${ATTACKER}/32`);
  const acted = story.done();
  t.true(understood.clicks <= 3, `${understood.clicks} clicks to the cause`);
  t.true(acted.clicks <= 8, `${acted.clicks} clicks to the ban`);
  t.log(`cause: ${understood.clicks} clicks, ${understood.seconds} s; ban: ${acted.clicks} clicks, ${acted.seconds} s`);
  t.deepEqual(faults(), []);

  const narrow = await signedInVisit(browser, running.origin, `/sites/${failingId}`, {
    language: 'zh-CN',
    theme: 'dark',
    width: 400,
  });
  await narrow.page.getByRole('slider', { name: '请求数', exact: true }).locator('canvas').waitFor();
  t.deepEqual(await layoutFaults(narrow.page), []);
  await screenshot(narrow.page, 'attack-site-zh-400');
  t.deepEqual(narrow.faults(), []);
});

/** Counts what an operator does. */
function counting() {
  const began = performance.now();
  let clicks = 0;
  return {
    click: async (what: ReturnType<Page['getByRole']>) => {
      clicks++;
      await what.click();
    },
    done: () => ({ clicks, seconds: Math.round((performance.now() - began) / 100) / 10 }),
  };
}
