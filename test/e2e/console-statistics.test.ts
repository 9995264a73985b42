// Statistics in the Web UI: what nodes counted, drawn and listed, of all sites and of one.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { TopList } from '../../proto/gen/svc/node/v1/node_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  layoutFaults,
  screenshot,
  showTheme,
  signedInVisit,
  startBrowsedConsole,
} from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';
import { rollUpTraffic } from '../helpers/rolled-up-traffic.ts';

const MINUTE_S = 60;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let node: ReportingNode;
let clusterId: string;
let siteId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  ({ clusterId, node, siteId } = await servedSite(running, api));
});
test.after.always(async () => {
  node?.stop();
  await browser?.close();
  await running?.stop();
});

const counted = (counts: Record<string, number>) =>
  Object.entries(counts).map(([name, count]) => ({ name, count: BigInt(count) }));

const TOPS: readonly (readonly [TopList, string, number])[] = [
  [TopList.URL, 'shop.example/cart', 0.5],
  [TopList.URL, `shop.example/products/${'long-name-'.repeat(12)}`, 0.2],
  [TopList.ADDRESS, '198.51.100.7', 0.3],
  [TopList.ADDRESS, '2001:db8:1111:2222:3333:4444:5555:6666', 0.1],
  [TopList.COUNTRY, 'DE', 0.6],
  [TopList.NETWORK, '64500 Example Network', 0.4],
  [TopList.REFERRER, 'news.example', 0.2],
];

/** Three hours of traffic; in the last half hour the origin times out. */
async function served(): Promise<void> {
  const now = Math.floor(Date.now() / 1000 / MINUTE_S) * MINUTE_S;
  const minutes = Array.from({ length: 180 }, (_, back) => {
    const failed = back < 30 && back >= 10 ? 20 : 0;
    const requests = 200 + ((back * 37) % 50);
    return {
      siteId,
      minute: BigInt(now - back * MINUTE_S),
      requests: BigInt(requests),
      bytesSent: BigInt(requests * 40_000),
      bytesReceived: BigInt(requests * 600),
      cacheHits: BigInt(requests - 60),
      cacheMisses: 40n,
      statuses: [
        { code: 200, count: BigInt(requests - failed - 5) },
        { code: 404, count: 5n },
        { code: 504, count: BigInt(failed) },
      ],
      counts: counted({
        'failed.origin-timeout': failed,
        'origin-latency.6': 30,
        'origin-latency.15': failed,
        'browser.chrome': requests - 20,
        'browser.crawler': 20,
        'os.windows': requests - 20,
        'os.other': 20,
        'device.desktop': requests - 20,
        'device.crawler': 20,
        'http.2': requests,
        'tls.1.3': requests,
        'blocked.waf': 3,
      }),
      latency: [0n, BigInt(requests - 40), 0n, 20n, 0n, 0n, 20n],
      rules: [
        { ruleId: '942100', platform: false, event: 7, count: 3n },
        { ruleId: 'deleted', platform: false, event: 3, count: 2n },
      ],
      tops: TOPS.map(([list, key, share]) => ({
        list,
        key,
        requests: BigInt(Math.floor(requests * share)),
        bytesSent: BigInt(Math.floor(requests * 40_000 * share)),
      })),
    };
  });
  await node.connection.call('reportStats', { minutes, sequence: 1n });
  await rollUpTraffic(running);
}

/** The table of the chart of requests. */
async function shownRows(page: Page): Promise<{ head: string[]; times: string[] }> {
  const table = page.getByRole('table', { name: 'Requests', exact: true });
  const fold = page.locator('figure', { has: page.getByRole('slider', { name: 'Requests', exact: true }) });
  if (!(await table.isVisible())) await fold.getByRole('button', { name: 'Show as table' }).click();
  await table.waitFor();
  return {
    head: await table.locator('thead th').allInnerTexts(),
    times: await table.locator('tbody tr td:first-child').allInnerTexts(),
  };
}

test('a failing origin is seen and its cause found, of all sites and of one', async (t) => {
  const { page, faults } = await signedInVisit(browser, running.origin, '/traffic/statistics', { theme: 'system' });
  await page.getByText('No traffic in this period.').waitFor();
  await served();
  await page.reload();
  await page.getByRole('slider', { name: 'Requests', exact: true }).locator('canvas').waitFor();
  await page.getByRole('region', { name: 'Failures by cause' }).getByText('Origin timed out').waitFor();
  await page
    .getByRole('region', { name: 'Sites with the most requests' })
    .getByRole('link', { name: 'shop.example' })
    .waitFor();
  await page.getByRole('region', { name: 'Browsers' }).getByText('Chrome').waitFor();
  await page.getByRole('region', { name: 'Top URLs' }).getByText('shop.example/cart').waitFor();
  await page
    .getByRole('region', { name: 'Top client addresses' })
    .getByRole('link', { name: '198.51.100.7' })
    .waitFor();
  await page.getByRole('region', { name: 'Countries' }).getByText('Germany (DE)').waitFor();
  await page.getByRole('region', { name: 'Networks' }).getByText('AS64500 Example Network').waitFor();
  await page.getByRole('region', { name: 'Referrers' }).getByText('news.example').waitFor();
  // One picker for every chart; the address keeps it.
  await page.getByRole('combobox', { name: 'Period', exact: true }).press('Enter');
  await page.getByRole('option', { name: '6 hours' }).click();
  await page.waitForURL(/range=6h/);
  await page.getByRole('combobox', { name: 'Status', exact: true }).press('Enter');
  await page.getByRole('option', { name: '5xx' }).click();
  await page.waitForURL(/status=status5xx/);
  // A part is zoomed into with the pointer, compared with the time before, and left again with Back.
  const requests = page.getByRole('slider', { name: 'Requests', exact: true });
  const box = (await requests.locator('.u-over').boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.6, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  await page.getByText('Zoomed to').waitFor();
  await page.locator('.period').getByText('Compare with the period before').click();
  await page.waitForURL(/compare=1/);
  const part = await shownRows(page);
  t.true(part.times.length > 60, 'the part has points of a minute');
  t.deepEqual(part.head, ['Time', 'Value', 'Period before']);
  await screenshot(page, 'statistics-zoomed');
  // With the keyboard the same, and out again.
  await requests.focus();
  for (const key of ['Home', 'ArrowRight', 'Shift+PageUp', 'Shift+PageUp']) await page.keyboard.press(key);
  await requests.locator('xpath=..').getByText('selected', { exact: false }).waitFor();
  const before = page.url();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href !== before);
  await page.getByRole('button', { name: 'Show whole period' }).click();
  await page.waitForURL((url) => !url.searchParams.has('from'));
  // The zone is the browser's until the address says another.
  await page.getByRole('combobox', { name: 'Time zone', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'UTC', exact: true }).click();
  await page.waitForURL(/zone=utc/);
  await eventually(async () => (await shownRows(page)).times.every((time) => time.endsWith('UTC')), {
    what: 'times of UTC',
  });
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `statistics-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);

  const chinese = await signedInVisit(browser, running.origin, `/sites/${siteId}/statistics?range=7d`, {
    language: 'zh-CN',
  });
  await chinese.page.getByRole('slider', { name: '请求数', exact: true }).locator('canvas').waitFor();
  await chinese.page.getByText('源站超时').waitFor();
  await chinese.page.getByRole('region', { name: '国家或地区' }).getByText('德国').waitFor();
  const rules = chinese.page.getByRole('region', { name: '命中最多的规则' });
  await rules.getByText('WAF 规则 942100 · SQL Injection Attack', { exact: false }).waitFor();
  await rules.getByText('已删除的规则').waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
  await screenshot(chinese.page, 'statistics-site-zh');
  t.deepEqual(chinese.faults(), []);
});

test('a cluster has its statistics on its page, and among those of all', async (t) => {
  const { page, faults } = await signedInVisit(browser, running.origin, `/clusters/${clusterId}`);
  await page.getByRole('link', { name: 'Statistics', exact: true }).click();
  await page.getByRole('slider', { name: 'Requests', exact: true }).locator('canvas').waitFor();
  await page.getByRole('region', { name: 'Failures by cause' }).getByText('Origin timed out').waitFor();
  await page.getByRole('region', { name: 'Top URLs' }).getByText('shop.example/cart').waitFor();
  const sites = page.getByRole('region', { name: 'Sites with the most requests' });
  await sites.getByRole('link', { name: 'shop.example' }).waitFor();
  t.deepEqual(await layoutFaults(page), []);
  await screenshot(page, 'statistics-cluster');
  // Another one has none.
  const empty = await api.cluster('quiet');
  await page.goto(`${running.origin}/traffic/statistics?clusterId=${empty}`);
  await page.getByText('No traffic in this period.').waitFor();
  await page.getByRole('combobox', { name: 'Cluster', exact: true }).waitFor();
  t.deepEqual(faults(), []);
});
