// The overview in a real browser: an empty console shows the way, a node that goes away is named with the way to it, and a
// publication shows how fast it arrived.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { startBrowser } from '../helpers/browser.ts';
import { TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  layoutFaults,
  screenshot,
  signedInVisit,
  signIn,
  startBrowsedConsole,
  until,
  type Visit,
  type VisitOptions,
  visit,
} from '../helpers/console-pages.ts';
import { reportEdgeBuild } from '../helpers/edge-build.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

const LOOKS = [
  { theme: 'light', language: 'en' },
  { theme: 'dark', language: 'zh-CN' },
] as const;

/** How much of what was shown has moved, as browsers count it. */
const SHIFTS = `new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) sum += value;
  }).observe({ type: 'layout-shift', buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
})`;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let clusterId: string;
let downloads: string;
let edge: EdgeNode | undefined;
let fleet: Fleet | undefined;

test.before(async () => {
  browser = await startBrowser();
  downloads = mkdtempSync(join(tmpdir(), 'svc-overview-'));
  running = await startBrowsedConsole({ env: { SVC_DOWNLOADS_DIR: downloads } });
  api = new Api(running);
  clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  await api.ok('PUT', '/settings/node-channel', { url: running.nodeApiUrl });
});
test.after.always(async () => {
  await browser?.close();
  await edge?.stop();
  await fleet?.stop();
  await running?.stop();
  if (downloads) rmSync(downloads, { recursive: true });
});

const operatorVisit = (path: string, options?: VisitOptions): Promise<Visit> =>
  signedInVisit(browser, running.origin, path, options);

const region = (page: Page, name: string) => page.getByRole('region', { name });
const attention = (page: Page) => region(page, 'Needs attention');

/** Every part has its data. */
async function shown(page: Page): Promise<void> {
  await page.locator('.glance').waitFor();
  await until(page, `document.querySelectorAll('[aria-busy="true"]').length === 0`);
  await page.locator('.series canvas, .overview-traffic__room > p, .first-steps__next').first().waitFor();
}

/** The page as it is now, in both themes and languages, wide and narrow: nothing overflows, axe finds nothing. */
async function look(name: string): Promise<string[]> {
  const faults: string[] = [];
  for (const { theme, language } of LOOKS) {
    const visitor = await operatorVisit('/overview', { theme, language });
    const { page } = visitor;
    await shown(page);
    for (const width of [1440, 375]) {
      await page.setViewportSize({ width, height: 900 });
      await shown(page);
      const wrong = [...(await layoutFaults(page)), ...(await accessibilityFaults(page))];
      faults.push(...wrong.map((fault) => `${name} ${theme} ${width}: ${fault}`));
      await page.setViewportSize({ width, height: 1500 });
      await screenshot(page, `overview-${name}-${theme}-${width}`);
    }
    faults.push(...visitor.faults());
    await visitor.close();
  }
  return faults;
}

test.serial('the start page of an empty console shows the next step, and leads there by keyboard', async (t) => {
  const visitor = await operatorVisit('/');
  const { page } = visitor;
  await page.waitForURL('**/overview');
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await attention(page).getByText('All clear').waitFor();
  await page.getByRole('banner').getByRole('button', { name: 'All clear' }).waitFor();
  const steps = page.getByRole('list', { name: 'First steps' });
  await steps.locator('[aria-current=step]', { hasText: 'Enroll a node' }).waitFor();
  const build = reportEdgeBuild(downloads);
  await page.getByText('Building the edge program on this machine').waitFor();
  build.end('built');
  await page.getByText('Building the edge program on this machine').waitFor({ state: 'detached' });
  const next = page.getByRole('link', { name: 'Add a node' });
  await next.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  t.deepEqual(await look('empty'), []);
});

test.serial('with a real node and a site, a publication and a ban show how fast they arrived', async (t) => {
  edge = await startEdgeNode({
    client: running.client,
    clusterId,
    listen: `127.0.0.1:${await freePort()}`,
    kernelBans: 'off',
  });
  const visitor = await operatorVisit('/overview');
  const { page } = visitor;
  const facts = region(page, 'Change propagation');
  await facts.getByText('Appears after the first ban that a connected node enforces.').waitFor();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(new URL(request.url()).pathname));
  const site = await api.site(clusterId, 'shop.example.com', { name: 'Shop', origins: [{ address: '93.184.216.34' }] });
  await api.ok('POST', '/bans', { scope: 'platform', cidr: '198.18.0.7', reason: 'abuse', durationSeconds: 600 });
  // The page follows by itself.
  await facts.getByText('The last ban reached every connected node within').waitFor();
  await facts.getByText('Site created').waitFor();
  const answer = await api.ok('GET', '/overview');
  const { name } = (await api.ok('GET', '/nodes')).items[0];
  t.like(answer.propagation.bans.recent, { changes: 1, complete: 1 });
  t.is(answer.propagation.bans.recent.slowest.name, name);
  t.is(answer.propagation.config.latest.nodes.applied, 1);
  const slowest = facts.getByRole('link', { name });
  t.is(await slowest.first().getAttribute('href'), `/nodes/${edge.nodeId}`);
  const latest = region(page, 'Latest revisions');
  await latest.getByText('Site created').first().waitFor();
  await region(page, 'At a glance').getByText('1 of 1').waitFor();
  await region(page, 'At a glance').getByText('1 live').waitFor();
  // One question for the page and the health dot.
  t.deepEqual(
    requests.filter((path) => path.startsWith('/rpc/') && !/overview|live|changes/.test(path)),
    [],
  );
  t.truthy(site.id);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'a node that goes away is named with its state, in the list and behind the health dot, and leads to it',
  async (t) => {
    const visitor = await operatorVisit('/overview');
    const { page } = visitor;
    await attention(page).getByText('All clear').waitFor();
    await edge!.supervisor.stop();
    // As 45 s of silence leave it.
    await api
      .sql('node_state')
      .where({ node_id: edge!.nodeId })
      .update({ last_seen_at: new Date(Date.now() - 60_000) });
    // Silence is no event; the page asks by itself after a while, and at once when something happens.
    await api.ok('PATCH', `/nodes/${edge!.nodeId}`, { name: 'edge-hk-1' });
    const item = attention(page).getByRole('listitem').filter({ hasText: 'edge-hk-1' }).first();
    await item.waitFor();
    await attention(page)
      .getByText(/A node of .* is unhealthy/)
      .waitFor();
    await item.getByText('offline').waitFor();
    // Nothing is known of its site, which may still be served: the same word wherever the site is shown.
    await page.goto(`${running.origin}/sites?state=unknown`);
    await page.getByRole('row', { name: 'Shop' }).getByText('Unknown: nodes silent').waitFor();
    await page.getByRole('row', { name: 'Shop' }).getByRole('link', { name: 'Shop' }).click();
    await page.locator('.page-head').getByText('Unknown: nodes silent').waitFor();
    await page.goto(`${running.origin}/overview`);
    await region(page, 'At a glance').getByText('1 unknown').waitFor();
    t.is(await attention(page).getByText('not served').count(), 0);
    const chinese = await operatorVisit('/sites', { language: 'zh-CN' });
    await chinese.page.getByRole('row', { name: 'Shop' }).getByText('未知：节点无上报').waitFor();
    t.deepEqual(chinese.faults(), []);
    await chinese.close();
    // The same count in the frame, from the same answer.
    const { attentionTotal } = await api.ok('GET', '/overview');
    const dot = page.getByRole('banner').getByRole('button', {
      name: attentionTotal === 1 ? 'One thing needs attention' : `${attentionTotal} things need attention`,
    });
    await dot.click();
    await page.getByRole('menuitem', { name: 'Open the overview' }).waitFor();
    t.deepEqual(await accessibilityFaults(page), []);
    await page.getByRole('menuitem', { name: 'edge-hk-1: offline' }).click();
    await page.waitForURL(`**/nodes/${edge!.nodeId}/overview`);
    await page.goBack();
    await item.waitFor();
    const link = attention(page).getByRole('link', { name: 'edge-hk-1' });
    await link.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/nodes/${edge!.nodeId}/overview`);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('a site whose certificate ends soon is named in both languages, and leads to its HTTPS', async (t) => {
  const site = (await api.ok('GET', '/sites')).items[0];
  const notAfter = new Date(Date.now() + 5.5 * 86_400_000);
  const { chainPem, privateKeyPem } = await testCertificate(site.domains, { notAfter });
  const { id } = await api.ok('POST', '/certificates/upload', { name: 'ending', chainPem, privateKeyPem });
  await api.ok('PUT', `/sites/${site.id}/https`, { settings: { certificateId: id } });
  for (const [language, title, soon] of [
    ['en', /The certificate of a site of .* expires soon and was not renewed/, 'Expires soon'],
    ['zh-CN', /有 1 个站点的证书即将到期且未续期/, '即将到期'],
  ] as const) {
    const visitor = await operatorVisit('/overview', { language });
    const { page } = visitor;
    const item = page.locator('.attention__item').filter({ hasText: title });
    await item.getByText(language === 'en' ? 'in 5 days' : '5天后').waitFor();
    t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
    await item.getByRole('link', { name: site.name, exact: true }).click();
    await page.waitForURL(`**/sites/${site.id}/https`);
    await page.getByText(soon, { exact: true }).waitFor();
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  }
  await api.ok('PUT', `/sites/${site.id}/https`, { settings: {} });
  await api.ok('DELETE', `/certificates/${id}`);
});

test.serial('with much to tell, every number, the chart and the list fit and can be read by everybody', async (t) => {
  fleet = await startTestFleet(running, clusterId, 12);
  const connectionSite = (await api.ok('GET', '/sites')).items[0];
  const minute = Math.floor(Date.now() / 60_000) * 60_000;
  await api.sql('cluster_request_minute').insert(
    Array.from({ length: 150 }, (_, index) => ({
      cluster_id: clusterId,
      minute: new Date(minute - index * 60_000),
      requests: Math.round(60 * (900 + 700 * Math.sin(index / 17))),
    })),
  );
  for (let index = 0; index < 25; index++) {
    await api.ok('PATCH', `/sites/${connectionSite.id}`, { domains: ['shop.example.com', `n${index}.example.com`] });
    await api.ok('POST', '/bans', {
      scope: 'platform',
      cidr: `198.18.1.${index}`,
      reason: 'abuse',
      durationSeconds: 600,
    });
  }
  const crowded = await api.cluster('a-cluster-with-a-name-that-somebody-made-rather-long');
  for (let index = 0; index < 9; index++) await api.node(crowded, `edge-frankfurt-${index}`, { online: false });
  const quiet = await api.cluster('tokyo');
  await api.node(quiet, 'edge-tokyo-1', { online: false });
  await api.ok('PUT', '/settings/protection', { underAttack: true });
  await eventually(async () => {
    const { propagation, attentionTotal } = await api.ok('GET', '/overview');
    const done = (one: Body) => one.recent?.changes >= 20;
    return done(propagation.config) && done(propagation.bans) && attentionTotal >= 4;
  });
  t.deepEqual(await look('busy'), []);
  const visitor = await operatorVisit('/overview');
  const { page } = visitor;
  await page.locator('.series canvas').waitFor();
  // What is there does not move when the rest comes.
  t.true((await page.evaluate<number>(SHIFTS)) < 0.01);
  await region(page, 'Change propagation')
    .getByText(/Last 2[0-9] revisions: p95 .* to every connected node/)
    .waitFor();
  await attention(page)
    .locator('.attention__item')
    .filter({ hasText: '9 nodes of a-cluster-with-a-name-that-somebody-made-rather-long are unhealthy' })
    .getByText('4 more')
    .waitFor();
  await attention(page).getByText('Under Attack is on globally').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('one cluster is chosen, everything is about it, and the address keeps it', async (t) => {
  const visitor = await operatorVisit('/overview');
  const { page } = visitor;
  // The input is below what it shows.
  const choice = page.getByRole('combobox', { name: 'Cluster' });
  await choice.click({ force: true });
  await page.getByRole('option', { name: 'tokyo' }).click();
  await page.waitForURL('**/overview?clusterId=*');
  const id = new URL(page.url()).searchParams.get('clusterId')!;
  await region(page, 'At a glance').getByText('0 of 1').waitFor();
  await attention(page).getByRole('link', { name: 'edge-tokyo-1' }).waitFor();
  t.is(await attention(page).getByText('a-cluster-with-a-name').count(), 0);
  // What concerns all clusters concerns it, too.
  await attention(page).getByText('Under Attack is on globally').waitFor();
  t.is(await region(page, 'At a glance').getByRole('link').first().getAttribute('href'), `/nodes?clusterId=${id}`);
  await page.reload();
  await region(page, 'At a glance').getByText('0 of 1').waitFor();
  await page.locator('.overview__choice').getByText('tokyo', { exact: true }).waitFor();
  for (const width of [1440, 375]) {
    await page.setViewportSize({ width, height: 900 });
    t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await choice.click({ force: true });
  await page.getByRole('option', { name: 'All clusters' }).click();
  await page.waitForURL('**/overview');
  await attention(page).getByText('9 nodes of a-cluster-with-a-name').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('an overview that cannot be read says so and asks again', async (t) => {
  const visitor = await visit(browser, running.origin);
  await signIn(visitor.context, running.origin, TEST_OPERATOR);
  const { page } = visitor;
  let failing = true;
  await page.route('**/rpc/overview/get', (route) =>
    failing
      ? route.fulfill({
          status: 500,
          contentType: 'application/json',
          body: JSON.stringify({
            defined: true,
            code: 'INTERNAL_ERROR',
            status: 500,
            message: 'x',
            data: { requestId: 'r-1' },
          }),
        })
      : route.continue(),
  );
  await page.goto('/overview');
  const alert = page.getByRole('alert');
  await alert.waitFor();
  failing = false;
  await alert.getByRole('button').click();
  await region(page, 'At a glance').waitFor();
  t.is(await page.getByRole('alert').count(), 0);
  await visitor.close();
});
