// Alerts in the Web UI: a channel is added, tested and subscribed, and an alert is seen with what became of its message.
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
import { type Hooks, startHooks } from '../helpers/hooks.ts';
import { Api } from '../helpers/resources.ts';

let browser: Browser;
let running: TestConsole & { origin: string };
let hooks: Hooks;
let api: Api;

test.before(async () => {
  [browser, running, hooks] = await Promise.all([
    startBrowser(),
    startBrowsedConsole({ env: { SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' } }),
    startHooks(),
  ]);
  api = new Api(running);
});
test.after.always(async () => {
  await browser?.close();
  await running?.stop();
  await hooks?.stop();
});

test('a channel is added, tested and subscribed; an alert is told to it and listed', async (t) => {
  const clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  const site = await api.site(clusterId, 'alerting.example.com');
  const { page, faults } = await signedInVisit(browser, running.origin, '/alerts/channels', { theme: 'system' });
  await page.getByRole('button', { name: 'Add a channel', exact: true }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('On call');
  await dialog.getByLabel('URL', { exact: true }).fill(`${hooks.url}/hook`);
  await dialog.getByRole('switch', { name: 'Receive every alert' }).press('Space');
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Nothing. Subscribe it, or let it receive every alert.').waitFor();
  await page.getByRole('button', { name: 'Test On call' }).click();
  await page.getByText('A test message was delivered through On call.').waitFor();
  t.is(hooks.received[0]?.body.kind, 'test');
  await page.getByRole('button', { name: 'Subscribe On call' }).click();
  await dialog.getByRole('switch', { name: 'All sites' }).press('Space');
  await dialog.getByRole('combobox', { name: 'Add a site' }).click();
  await page.getByRole('option', { name: site.name }).click();
  await dialog.getByRole('button', { name: `Remove ${site.name}` }).waitFor();
  await screenshot(page, 'alert-subscription');
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('7 kinds of alerts of 1 site').waitFor();
  await page.getByText('Works', { exact: true }).waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `alert-channels-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  const detail = { level: 3 };
  await api.sql('alert').insert({ kind: 'cc_mitigation', site_id: site.id, started_at: new Date(), detail });
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByText(`CC mitigation raised for site ${site.name} to level 3.`).waitFor();
  // Without a node at that level, the alert soon ends.
  await page.getByText(/^[12] delivered$/).waitFor();
  t.is(hooks.received[1]?.body.siteId, site.id);
  await screenshot(page, 'alert-events');
  t.deepEqual(await layoutFaults(page), []);
  // Maintenance is silenced, and ended early.
  await page.getByRole('link', { name: 'Silences', exact: true }).click();
  await page.getByRole('button', { name: 'Silence alerts', exact: true }).first().click();
  await dialog.getByLabel('Reason', { exact: true }).fill('Move to the new rack');
  await dialog.getByRole('checkbox', { name: 'A node does not respond' }).press('Space');
  await screenshot(page, 'alert-silence-dialog');
  await dialog.getByRole('button', { name: 'Silence alerts', exact: true }).click();
  await page.getByText('Move to the new rack', { exact: true }).waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `alert-silences-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  await page.getByRole('button', { name: 'End “Move to the new rack”' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click();
  await page.getByText('No silences', { exact: true }).waitFor();
  // What one does not change stays, although the API gives omitted limits their defaults.
  await api.ok('PUT', '/alerts/policy', { errorRatio: 0.5 });
  await page.getByRole('link', { name: 'Limits', exact: true }).click();
  await page.getByLabel('Window', { exact: true }).fill('7');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const limits = await eventually(
    async () => {
      const now = await api.ok('GET', '/alerts/policy');
      return now.windowMinutes === 7 && now;
    },
    { what: 'saved limits' },
  );
  t.is(limits.errorRatio, 0.5);
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, '/alerts', { language: 'zh-CN' });
  await chinese.page.getByText(`站点 ${site.name} 的 CC 防护已升到等级 3。`).waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
});
