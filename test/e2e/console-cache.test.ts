// The cache in the Web UI: a preset, an edited rule, a setting, saved and shown as what each rule decides; purges, followed
// to each node.
import test from 'ava';
import type { Browser } from 'playwright-core';
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
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
});
test.after.always(async () => {
  await browser?.close();
  await running?.stop();
});

test('a preset is chosen, a rule edited, and both are saved', async (t) => {
  const clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  const { id } = await api.site(clusterId, 'cached.example.com');
  const minute = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 7_200_000);
  await api.sql('usage_minute').insert({
    ...{ minute, site_id: id, cluster_id: clusterId, requests: 10, bytes_sent: 4000, bytes_received: 100 },
    ...{ cache_hits: 6, cache_misses: 2, cache_hit_bytes: 1000 },
  });
  const { page, faults } = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { theme: 'system' });
  await page.getByText('6 hits, 2 misses').waitFor();
  await page.getByText('75%', { exact: true }).first().waitFor();
  await page.getByRole('button', { name: 'WordPress', exact: true }).click();
  await page.getByText('4. every request: 10 min, unless the origin says otherwise').waitFor();
  await page.getByLabel('Time in the cache', { exact: true }).first().fill('2 d');
  await page.getByRole('switch', { name: 'The order of parameters makes no difference' }).press('Space');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const saved = await eventually(
    async () => {
      const now = await api.ok('GET', `/sites/${id}`);
      return now.cacheRules.length === 4 && now;
    },
    { what: 'four saved rules' },
  );
  t.is(saved.cacheRules[1].edgeTtlSeconds, 172_800);
  t.true(saved.cacheSettings.cacheKey.sortQuery);
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `site-cache-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { language: 'zh-CN' });
  await chinese.page.getByText('缓存规则', { exact: true }).first().waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
  await screenshot(chinese.page, 'site-cache-zh');
  t.deepEqual(chinese.faults(), []);
});

test('a purge is described before it is sent, refused at its field, and followed live to each node', async (t) => {
  const clusterId = await api.cluster('purged');
  const { id, name } = await api.site(clusterId, 'purged.example.com');
  const able = ['feeds-v1', 'purge-tag-v1'];
  const node = await ReportingNode.enroll(running, clusterId, able);
  const at = async (sequence: number) => {
    const { epoch } = await api.sql('console_state').first('epoch');
    await node.beat({ feeds: [{ feed: 'purges', epoch: BigInt(epoch), sequence: BigInt(sequence) }] });
  };
  await at(0);
  await api.node(clusterId, 'old-node', { features: [] });
  const { page, faults } = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { theme: 'system' });
  await page.getByText('No cache tasks').waitFor();
  await page.getByRole('button', { name: 'Purge or prefetch', exact: true }).click();
  const dialog = page.getByRole('dialog').filter({ has: page.locator('form') });
  await dialog.getByText('The origin gets every request until responses are stored again.').waitFor();
  const choose = async (option: string) => {
    await dialog.getByRole('combobox', { name: 'Type', exact: true }).press('Enter');
    await page.getByRole('option', { name: option, exact: true }).click();
  };
  await choose('Prefetch a sitemap');
  await dialog.getByText('Nodes fetch at most 1,000 URLs of the sitemap now').waitFor();
  await choose('Purge URLs');
  const send = dialog.getByRole('button', { name: 'Purge', exact: true });
  await dialog.getByLabel('URLs', { exact: true }).fill('https://other.example/');
  await send.click();
  await dialog.getByText('These URLs are not valid, or no site has their host').waitFor();
  await dialog.getByLabel('URLs', { exact: true }).fill('https://purged.example.com/a\nhttps://purged.example.com/b?c');
  await dialog.getByText('Nodes serve nothing that they stored of these 2 URLs.').waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `cache-purge-${theme}`);
  }
  await showTheme(page, 'light');
  await send.click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByText('1 of 2 nodes finished').waitFor();
  t.deepEqual(await layoutFaults(page), []);

  // The page of the task shows the lacking node, and turns when the other one reports the purge.
  await page.getByRole('link', { name: 'Purge URLs', exact: true }).click();
  await page.getByText('1 node lacks the capability for this task. Upgrade it.').waitFor();
  await page.getByText('https://purged.example.com/b?c', { exact: true }).waitFor();
  const nodes = page.getByRole('list', { name: 'Nodes', exact: true });
  await nodes.getByText('Pending').waitFor();
  await at(1);
  await nodes.getByText('Succeeded').waitFor();
  await page.getByText('2 of 2 nodes finished').waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `cache-task-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  await page.getByRole('link', { name: 'Cache tasks', exact: true }).click();
  await page.getByRole('link', { name, exact: true }).first().waitFor();
  t.deepEqual(await accessibilityFaults(page), []);
  await screenshot(page, 'cache-tasks');
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, '/cache?new=1', { language: 'zh-CN' });
  await chinese.page.getByText('每行一个，包含查询。', { exact: false }).waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
  await screenshot(chinese.page, 'cache-purge-zh');
  t.deepEqual(chinese.faults(), []);
  node.stop();
});

test('why a response is cached is explained, with the rule, the time and the key', async (t) => {
  const clusterId = await api.cluster('explained');
  const cacheRules = [
    { priority: 10, pathPrefixes: ['/api/'], action: 'bypass' },
    { priority: 20, edgeTtlSeconds: 3600 },
  ];
  const { id } = await api.site(clusterId, 'explained.example.com', { cacheRules });
  const { page, faults } = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { theme: 'system' });
  await page.getByRole('button', { name: 'Why is this (not) cached?', exact: true }).click();
  const explain = page.getByRole('button', { name: 'Explain', exact: true });
  const result = page.getByRole('region', { name: 'Explanation', exact: true });
  await explain.click();
  await result.getByText('Nodes store the response.').waitFor();
  await result.getByText('Decided by the response – Cache-Control: max-age=60').waitFor();
  await result.getByText('Fresh for 1 min, by max-age of the origin.').waitFor();
  await result.getByText('explained.example.com', { exact: true }).waitFor();
  const headers = page.getByLabel('Response headers of the origin, one per line', { exact: true });
  await headers.fill('Cache-Control: no-store');
  await explain.click();
  await result.getByText('The origin forbids storing the response.').waitFor();
  const url = page.getByLabel('URL', { exact: true });
  await url.fill('https://explained.example.com/api/x');
  await explain.click();
  await result.getByText('The cache rule does not cache.').waitFor();
  await result.getByText('not tried', { exact: true }).waitFor();
  await url.fill('explained.example.com');
  await explain.click();
  await page.locator('.explain__url [aria-invalid="true"]').waitFor();
  await url.fill('https://explained.example.com/a?b=1');
  await headers.fill('Vary: Accept-Language');
  await explain.click();
  await result.getByText('Fresh for 1 hr, by the cache rule.').waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `cache-explain-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { language: 'zh-CN' });
  await chinese.page.getByRole('button', { name: '为什么缓存（或未缓存）？', exact: true }).click();
  await chinese.page.getByRole('button', { name: '解释', exact: true }).click();
  await chinese.page.getByText('节点存储该响应。').waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
  await screenshot(chinese.page, 'cache-explain-zh');
  t.deepEqual(chinese.faults(), []);
});
