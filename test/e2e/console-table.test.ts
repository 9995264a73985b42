// Lists in a real browser: sorted by the server, worked through by keyboard, many rows at once, columns left out; and an
// attack on 3 of 10,000 sites, found and switched.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { copySites } from '../../bench/lib/copy-sites.ts';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  layoutFaults,
  screenshot,
  settled,
  showTheme,
  signedInVisit,
  startBrowsedConsole,
  type Visit,
  type VisitOptions,
} from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

const SITES = 25;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let clusterId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  for (let number = 0; number < SITES; number++) {
    const name = `Shop ${String.fromCharCode(65 + ((number * 7) % SITES))}`;
    await api.site(clusterId, `shop-${number}.example.com`, { name, origins: [{ address: '93.184.216.34' }] });
  }
  for (let last = 1; last <= 5; last++) {
    const durationSeconds = 600 * (((last * 3) % 5) + 1);
    await api.ok('POST', '/bans', { scope: 'platform', cidr: `203.0.113.${last}`, reason: 'attack', durationSeconds });
  }
  for (const name of ['edge-b', 'edge-a', 'edge-c']) await api.node(clusterId, name);
});

test.after.always(async () => {
  await browser?.close();
  await running?.stop();
});

async function operatorVisit(path: string, options: VisitOptions = {}): Promise<Visit> {
  const visitor = await signedInVisit(browser, running.origin, path, options);
  await visitor.page.locator('tbody tr').first().waitFor();
  return visitor;
}

const firstCells = (page: Page) => page.locator('tbody td.is-first').allInnerTexts();
const names = async (page: Page) => (await firstCells(page)).map((text) => text.split('\n')[0]!.trim());
const heading = (page: Page, name: string) => page.locator('th').filter({ has: page.getByRole('button', { name }) });
/** Clicks a heading and waits until the list is sorted so. */
async function sortBy(page: Page, name: string, direction: string): Promise<void> {
  await page.getByRole('columnheader').getByRole('button', { name }).click();
  await page.locator(`th[aria-sort=${direction}]`, { hasText: name }).waitFor();
  await settled(page);
}

test.serial('a heading sorts the whole list on the server; the order is in the address', async (t) => {
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  const all = (await api.ok('GET', '/sites?sort=name&pageSize=100')).items.map((site: Body) => site.name);
  t.is(await heading(page, 'Last change').getAttribute('aria-sort'), 'descending');
  await sortBy(page, 'Site', 'ascending');
  t.deepEqual(await names(page), all.slice(0, 20));
  t.true(page.url().includes('sort=name'));
  await page.locator('.el-pager').getByText('2', { exact: true }).click();
  await page.waitForURL(/page=2/);
  await settled(page);
  t.deepEqual(await names(page), all.slice(20));
  // Another order begins at its first page, and Back leads to what was before.
  await sortBy(page, 'Site', 'descending');
  t.false(page.url().includes('page='));
  t.deepEqual(await names(page), all.toReversed().slice(0, 20));
  await page.goto('/sites?sort=nothing');
  await page.locator('tbody tr').first().waitFor();
  t.is(await heading(page, 'Last change').getAttribute('aria-sort'), 'descending');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('bans, nodes and the audit log are sorted as they say', async (t) => {
  const visitor = await operatorVisit('/bans');
  const { page } = visitor;
  await sortBy(page, 'Expires', 'ascending');
  t.deepEqual(
    await names(page),
    ['5', '2', '4', '1', '3'].map((last) => `203.0.113.${last}/32`),
  );
  await page.goto('/nodes');
  await page.locator('tbody tr').first().waitFor();
  t.deepEqual(await names(page), ['edge-a', 'edge-b', 'edge-c']);
  await sortBy(page, 'Name', 'descending');
  t.deepEqual(await names(page), ['edge-c', 'edge-b', 'edge-a']);
  await page.goto('/audit');
  await page.locator('tbody tr').first().waitFor();
  const newest = (await firstCells(page))[0];
  await sortBy(page, 'Time', 'ascending');
  t.not((await firstCells(page))[0], newest);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const focusedRow = (page: Page) =>
  page.evaluate<string>(`document.activeElement.closest('tbody tr')?.innerText.trim() ?? ''`);

test.serial('by keyboard: arrows move between rows, Space selects, Enter opens', async (t) => {
  const visitor = await operatorVisit('/sites?sort=name');
  const { page } = visitor;
  const shown = await names(page);
  // Into the rows from the last heading: they are one stop.
  await page.getByRole('columnheader').getByRole('button', { name: 'Last change' }).focus();
  await page.keyboard.press('Tab');
  t.true((await focusedRow(page)).startsWith(shown[0]!));
  await page.keyboard.press('ArrowDown');
  t.true((await focusedRow(page)).startsWith(shown[1]!));
  await page.keyboard.press('Space');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+ArrowDown');
  await page.getByText('3 selected').waitFor();
  t.deepEqual(await page.locator('tr.is-selected td.is-first a').allInnerTexts(), shown.slice(1, 4));
  await page.keyboard.press('End');
  t.true((await focusedRow(page)).startsWith(shown.at(-1)!));
  await page.keyboard.press('Home');
  // Leaving the rows and coming back leads to the same one.
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Tab');
  t.true((await focusedRow(page)).startsWith(shown[1]!));
  await page.getByRole('button', { name: 'Clear selection' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('3 selected').waitFor({ state: 'hidden' });
  t.true((await focusedRow(page)).startsWith(shown[1]!), 'the focus is not lost with the bar');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: shown[1]! }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a click beside the controls of a row opens it, one on its checkbox does not', async (t) => {
  const visitor = await operatorVisit('/sites?sort=name');
  const { page } = visitor;
  const shown = await names(page);
  const row = page.locator('tbody tr').nth(1);
  await row.getByRole('checkbox').click();
  await page.getByText('One selected').waitFor();
  await row.locator('td.is-time').click({ position: { x: 2, y: 2 } });
  await page.getByRole('heading', { level: 1, name: shown[1]! }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('many sites at once: chosen over two pages, disabled a few at a time, each with its result', async (t) => {
  const visitor = await operatorVisit('/sites?sort=name');
  const { page } = visitor;
  const dialog = page.getByRole('dialog');
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
  await page.getByText('20 selected').waitFor();
  await page.locator('.el-pager').getByText('2', { exact: true }).click();
  await page.getByRole('checkbox', { name: 'Select Shop Y' }).check();
  await page.getByText('21 selected').waitFor();
  let inFlight = 0;
  let most = 0;
  let tries = 0;
  const one = (await api.ok('GET', '/sites?sort=name')).items[0];
  await page.route('**/rpc/sites/setEnabled', async (route) => {
    most = Math.max(most, ++inFlight);
    if (route.request().postDataJSON().id === one.id && tries++ === 0)
      await route.fulfill({ status: 404, json: { code: 'SITE_NOT_FOUND', message: '', data: {} } });
    else await route.continue();
    inFlight--;
  });
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Disable' }).click();
  await dialog.getByRole('heading', { name: 'Disable 21 sites?' }).waitFor();
  await dialog.getByText('and 16 more').waitFor();
  await dialog.getByRole('button', { name: 'Disable' }).click();
  await dialog.getByText('20 of 21 done, 1 failed').waitFor();
  t.is(await dialog.locator('li').first().getByText(one.name).count(), 1, 'what failed comes first');
  t.true(most <= 8, `${most} at a time`);
  const disabled = async () =>
    (await api.ok('GET', '/sites?pageSize=100')).items.filter(({ enabled }: Body) => !enabled).length;
  t.is(await disabled(), 20);
  t.deepEqual(await accessibilityFaults(page), []);
  await dialog.getByRole('button', { name: 'Retry one' }).click();
  await dialog.getByText('21 of 21 done, 0 failed').waitFor();
  t.is(await disabled(), 21);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('region', { name: 'Selection' }).waitFor({ state: 'hidden' });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('many bans at once: a stretch with Shift, lifted; one that is gone already counts as lifted', async (t) => {
  const visitor = await operatorVisit('/bans?sort=expiresAt');
  const { page } = visitor;
  const shown = await names(page);
  await page.getByRole('checkbox', { name: `Select ${shown[0]}` }).click();
  await page.getByRole('checkbox', { name: `Select ${shown[2]}` }).click({ modifiers: ['Shift'] });
  await page.getByText('3 selected').waitFor();
  const gone = (await api.ok('GET', `/bans?address=${encodeURIComponent(shown[1]!)}`)).items[0];
  await api.ok('DELETE', `/bans/${gone.id}`);
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Lift' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Lift' }).click();
  await page.getByRole('dialog').getByText('3 of 3 done, 0 failed').waitFor();
  t.is((await api.ok('GET', '/bans')).total, 2);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('columns that were left out stay out, in this browser and this list', async (t) => {
  const visitor = await operatorVisit('/nodes');
  const { page } = visitor;
  const headings = () => page.locator('thead th').allInnerTexts();
  const before = await headings();
  await page.getByText('View', { exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('checkbox', { name: 'Cluster' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Escape');
  t.is(await page.evaluate(`document.activeElement.tagName`), 'BUTTON');
  t.is((await headings()).length, before.length - 1);
  await page.reload();
  await page.locator('tbody tr').first().waitFor();
  t.is((await headings()).length, before.length - 1);
  await page.goto('/sites');
  await page.locator('thead').getByText('Cluster').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a site tells of every node of its cluster, page by page', async (t) => {
  const cluster = await api.cluster('wide');
  const { id } = await api.site(cluster, 'wide.example.com', { origins: [{ address: '93.184.216.34' }] });
  const count = 22;
  for (let number = 0; number < count; number++) await api.node(cluster, `wide-${100 + number}`);
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  await page.goto(`/sites/${id}/overview`);
  const shown = page.getByRole('list', { name: 'Nodes' }).getByRole('listitem');
  await page.getByText(`${count} entries`).waitFor();
  t.is(await shown.count(), 20);
  await page.locator('.el-pager').getByText('2', { exact: true }).click();
  await page.getByRole('link', { name: 'wide-121' }).waitFor();
  t.is(await shown.count(), 2);
  await page.reload();
  await page.getByRole('link', { name: 'wide-121' }).waitFor();
  t.true(page.url().endsWith('?page=2'));
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  await api.ok('DELETE', `/sites/${id}`);
});

test.serial('a cluster and a region beyond the first 100 are found by typing and chosen', async (t) => {
  const numbered = Array.from({ length: 120 }, (_, number) => `many-${String(number).padStart(3, '0')}`);
  await api.sql('cluster').insert(numbered.map((name) => ({ name })));
  await api.sql('region').insert(numbered.map((code) => ({ code, name: `Region ${code}` })));
  const visitor = await operatorVisit('/nodes');
  const { page } = visitor;
  const choice = (name: string) => page.getByRole('combobox', { name, exact: true });
  const options = page.getByRole('option').filter({ visible: true });
  const choose = async (name: string, typed: string, wanted: string) => {
    await choice(name).click();
    await page
      .getByText(/Showing \d+ of \d+/)
      .filter({ visible: true })
      .waitFor();
    t.is(await options.getByText(wanted, { exact: true }).count(), 0);
    await page.keyboard.type(typed);
    await options.getByText(wanted, { exact: true }).waitFor();
    t.deepEqual(await options.allInnerTexts(), [wanted]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
  };
  await choose('Cluster', 'NY-119', 'many-119');
  await page.waitForURL(/clusterId=/);
  const { items } = await api.ok('GET', '/clusters?search=many-119');
  t.is(new URL(page.url()).searchParams.get('clusterId'), items[0].id);
  // The link says its name to whoever opens it.
  await page.reload();
  await page.getByText('many-119', { exact: true }).filter({ visible: true }).first().waitFor();

  await page.goto(`/clusters/${clusterId}/groups`);
  await page.locator('tbody tr').first().waitFor();
  await page.getByRole('button', { name: /Edit/ }).first().click();
  await page.getByRole('dialog').waitFor();
  await choose('Region', '-118', 'Region many-118');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const groups = await api.ok('GET', `/node-groups?clusterId=${clusterId}`);
  t.is(groups.items[0].regionCode, 'many-118');
  await api.sql('cluster').whereIn('name', numbered).delete();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('nothing moves while pages are turned and loaded', async (t) => {
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  const place = () => page.evaluate<number>(`document.querySelector('.list-foot').offsetTop`);
  const before = await place();
  const held = Promise.withResolvers<void>();
  await page.route('**/rpc/sites/list', async (route) => {
    await held.promise;
    await route.continue();
  });
  const shown = await names(page);
  await page.locator('.el-pager').getByText('2', { exact: true }).click();
  await page.waitForURL(/page=2/);
  t.deepEqual(await names(page), shown, 'the rows stay until the next are there');
  held.resolve();
  await page
    .locator('tbody tr')
    .nth(SITES - 20)
    .waitFor({ state: 'detached' });
  t.is(await place(), before);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

for (const width of [1440, 1024, 375]) {
  test.serial(`drawn: selection, view and headings in both themes, ${width} px wide`, async (t) => {
    const visitor = await operatorVisit('/sites', { theme: 'system', width });
    const { page } = visitor;
    await page.locator('tbody tr input[type=checkbox]').first().check();
    await page.getByRole('region', { name: 'Selection' }).waitFor();
    await page.getByText('View', { exact: true }).click();
    await settled(page);
    for (const theme of ['light', 'dark'] as const) {
      await showTheme(page, theme);
      t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
      t.deepEqual(await layoutFaults(page), []);
      await screenshot(page, `table-selection-${theme}-${width}`);
    }
    if (width === 375) {
      await page.getByRole('button', { name: 'Site', exact: true }).click();
      await page.waitForURL(/sort=name/);
    }
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  });
}

test.serial('3 of 10,000 sites are flooded: found and switched in three clicks', async (t) => {
  const [source] = (await api.ok('GET', '/sites?pageSize=1')).items;
  const copies = await copySites(running.running.runtime, clusterId, source.id, 10_000 - SITES);
  t.is((await api.ok('GET', '/sites?pageSize=1')).total, 10_000);
  const identity = await enrollOne(running, clusterId, ['bans-v1', 'challenge-v1']);
  const connection = connectAs(running, identity);
  await connection.call('heartbeat', { info: { features: ['bans-v1', 'challenge-v1'] } });
  await eventually(async () => (await api.ok('GET', `/nodes/${identity.nodeId}`)).online);
  const flooded = [copies[7]!, copies[4321]!, copies[9000]!];
  for (const [index, id] of flooded.entries()) await api.ok('PATCH', `/sites/${id}`, { name: `Flooded ${index}` });
  const sites = flooded.map((siteId, index) => ({ siteId, level: index + 1, paths: [] }));
  await connection.call('reportSecurity', { events: [], sites, hasState: true });

  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('link', { name: 'Incidents & Under Attack' }).click();
  const above = page.getByRole('table', { name: 'Sites above normal' });
  for (const index of flooded.keys()) await above.getByRole('link', { name: `Flooded ${index}` }).waitFor();
  t.is(await above.locator('tbody tr').count(), 3);
  await page.getByRole('button', { name: 'Under Attack for these 3' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
  await page.getByRole('dialog').getByText('3 of 3 done, 0 failed').waitFor();
  for (const id of flooded) t.true((await api.ok('GET', `/sites/${id}/protection`)).underAttack);
  await page.getByText('3 sites have their own Under Attack on.').waitFor();
  t.deepEqual(await accessibilityFaults(page), []);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  connection.destroy();
});
