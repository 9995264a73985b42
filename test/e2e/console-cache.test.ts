// The cache of a site in the Web UI: a preset, an edited rule, a setting, saved and shown as what each rule decides.
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
  const { page, faults } = await signedInVisit(browser, running.origin, `/sites/${id}/cache`, { theme: 'system' });
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
