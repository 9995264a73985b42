// Stories of an operator in a real browser over a real console: addresses banned and let in again, many at once, IP
// lists, clusters and nodes, the audit log; and each page and dialog of these as it is drawn.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  follow,
  layoutFaults,
  screenshot,
  settled,
  signedInVisit,
  startBrowsedConsole,
  type Visit,
  type VisitOptions,
} from '../helpers/console-pages.ts';
import { chooseRare, offersRare, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne, startTestFleet } from '../helpers/fleet.ts';
import { orLong } from '../helpers/long-form.ts';
import { rolledUpUsage } from '../helpers/rolled-up-usage.ts';
import { runningRollout, takenBack, takenBackEvent } from '../helpers/rollout-answers.ts';

const NODES = 3;
const WORDS = JSON.parse(readFileSync('console/src/features/network/words/en.json', 'utf8')) as {
  reason: { client_ip_updated: string; unknown_hosts_updated: string };
};

let browser: Browser;
let console: TestConsole & { origin: string };
let fleet: Fleet;
let clusterId: string;
let siteId: string;

test.before(async () => {
  browser = await startBrowser();
  console = await startBrowsedConsole();
  const clusters = await console.client.api<{ items: { id: string }[] }>('GET', '/clusters');
  clusterId = clusters.items[0]!.id;
  fleet = await startTestFleet(console, clusterId, NODES);
  const { site } = await console.client.api<{ site: { id: string } }>('POST', '/sites', {
    name: 'Shop',
    domains: ['shop.example.com'],
    origins: [{ address: '93.184.216.34' }],
  });
  siteId = site.id;
});

test.after.always(async () => {
  await browser?.close();
  await fleet?.stop();
  await console?.stop();
});

async function operatorVisit(path: string, options?: VisitOptions): Promise<Visit> {
  const visitor = await signedInVisit(browser, console.origin, path, options);
  await visitor.page.getByRole('heading', { level: 1 }).waitFor();
  return visitor;
}

interface BanAnswer {
  cidr: string;
  scope: string;
  siteId: string | null;
  reason: string;
}
const api = <T>(method: string, path: string, body?: unknown) => console.client.api<T>(method, path, body);
const bans = async () => (await api<{ items: BanAnswer[]; total: number }>('GET', '/bans?pageSize=100')).items;
const dialog = (page: Page) => page.getByRole('dialog');

test.serial('an address is banned by keyboard, followed to every node, and let in again', async (t) => {
  const visitor = await operatorVisit('/bans');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Ban an address' }).first().focus();
  await page.keyboard.press('Enter');
  await dialog(page).getByLabel('Address or range').focus();
  await page.keyboard.type('203.0.113.0/24');
  await dialog(page).getByText('256 addresses').waitFor();
  await page.keyboard.press('Enter');
  await tracker(page).getByText(`Enforced: ${NODES} of ${NODES} nodes`).waitFor();
  await page.getByRole('gridcell', { name: '203.0.113.0/24', exact: true }).waitFor();
  t.like((await bans())[0], { cidr: '203.0.113.0/24', scope: 'platform', reason: 'attack' });

  await page.getByRole('button', { name: 'Lift the ban of 203.0.113.0/24' }).click();
  await dialog(page).getByText('get access again at once').waitFor();
  await dialog(page).getByRole('button', { name: 'Lift' }).click();
  await tracker(page).getByText(`Lifted: ${NODES} of ${NODES} nodes`).waitFor();
  await page.getByRole('heading', { name: 'No banned addresses' }).waitFor();
  t.deepEqual(await bans(), []);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a link fills the dialog; what a ban would hit by mistake is asked once more', async (t) => {
  const visitor = await operatorVisit(`/bans?new=1&cidr=93.184.216.0/24&siteId=${siteId}`);
  const { page } = visitor;
  t.is(await dialog(page).getByLabel('Address or range').inputValue(), '93.184.216.0/24');
  await dialog(page).getByText('The range includes the origin of one site').waitFor();
  await dialog(page).getByRole('button', { name: 'Ban', exact: true }).click();
  t.deepEqual(await bans(), []);
  await page.getByRole('button', { name: 'Ban anyway' }).click();
  await tracker(page).getByText('Enforced').waitFor();
  t.like((await bans())[0], { cidr: '93.184.216.0/24', scope: 'site', siteId });
  await page.goto(`/sites/${siteId}/bans`);
  await page.getByRole('gridcell', { name: '93.184.216.0/24', exact: true }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('what cannot be banned is said before it is tried', async (t) => {
  const visitor = await operatorVisit('/bans?new=1');
  const { page } = visitor;
  const ban = dialog(page).getByRole('button', { name: 'Ban', exact: true });
  await ban.click();
  await dialog(page).getByText('Enter an address.').waitFor();
  await dialog(page).getByLabel('Address or range').fill('<b>not an address</b> 🎉');
  await dialog(page).getByText('is not a valid IP address or CIDR range').first().waitFor();
  await dialog(page).getByLabel('Address or range').fill('10.0.0.0/8');
  await dialog(page).getByText('The shortest allowed prefix is /16').waitFor();
  t.true(await ban.isDisabled());
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'thirty pasted addresses are banned, each with its result; at the limit it stops and goes on',
  async (t) => {
    const visitor = await operatorVisit('/bans?bulk=1');
    const { page } = visitor;
    const paste = async (addresses: readonly string[]) => {
      await dialog(page).getByLabel('Addresses and ranges').fill(addresses.join('\n'));
      await dialog(page).getByRole('button', { name: 'Start' }).click();
    };
    const numbered = (network: string, count: number) =>
      Array.from({ length: count }, (_, last) => `${network}.${last}`);
    await paste(numbered('198.51.100', 30));
    await dialog(page).getByText('30 of 30 banned, 0 refused').waitFor();
    t.is(await dialog(page).getByText('Banned', { exact: true }).count(), 30);

    await api('PUT', '/settings/bans', { maxTotal: 100 });
    await dialog(page).getByRole('button', { name: 'New list' }).click();
    await paste(numbered('192.0.2', 80));
    await dialog(page).getByText('The limit for manual bans is reached.').waitFor();
    const goOn = dialog(page).getByRole('button', { name: /Continue with/ });
    await goOn.waitFor();
    t.is((await bans()).length, 100);
    await api('PUT', '/settings/bans', { maxTotal: 10_000 });
    await goOn.click();
    await dialog(page).getByText('80 of 80 banned, 0 refused').waitFor();
    t.is((await api<{ total: number }>('GET', '/bans')).total, 111);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('the filters of the bans live in the address', async (t) => {
  const visitor = await operatorVisit('/bans?address=198.51.100.7');
  const { page } = visitor;
  await page.getByRole('gridcell', { name: '198.51.100.7/32', exact: true }).waitFor();
  t.is(await page.locator('tbody tr').count(), 1);
  await page.getByLabel('Address').first().fill('192.0.2.0/30');
  await page.getByText('4 entries').waitFor();
  t.true(page.url().includes('address=192.0.2.0'));
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('an IP list is saved after its difference was seen; two people’s edits both stay', async (t) => {
  const visitor = await operatorVisit('/ip-lists/new');
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('office');
  await page.getByLabel('Addresses and ranges').fill('192.0.2.1 # front door\nnonsense\n192.0.2.2');
  await page.getByText('Line 2: “nonsense” is not a valid IP address or CIDR range.').waitFor();
  await page.getByLabel('Addresses and ranges').fill('192.0.2.1\n192.0.2.2');
  await page.getByRole('button', { name: 'Review changes' }).click();
  await dialog(page).getByRole('heading', { name: 'Adds 2 entries' }).waitFor();
  await dialog(page).getByRole('button', { name: 'Create the list' }).click();
  await page.getByRole('heading', { level: 1, name: 'office' }).waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1)!;

  await api('PUT', `/ip-lists/${id}`, { kind: 'collection', entries: ['192.0.2.1', '192.0.2.2', '192.0.2.9'] });
  await page.getByLabel('Addresses and ranges').fill('192.0.2.2\n192.0.2.3');
  await page.getByRole('button', { name: 'Review changes' }).click();
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await dialog(page).getByText('Another user changed the list in the meantime').waitFor();
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await dialog(page).waitFor({ state: 'detached' });
  const { entries } = await api<{ entries: string[] }>('GET', `/ip-lists/${id}`);
  t.deepEqual(entries, ['192.0.2.2/32', '192.0.2.3/32', '192.0.2.9/32']);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a cluster’s settings are saved and followed to its nodes; its revisions say why', async (t) => {
  const visitor = await operatorVisit(`/clusters/${clusterId}/unknown-hosts`);
  const { page } = visitor;
  await page.getByLabel('Requests in 60 s').fill('250');
  await page.getByLabel('Ban scanners').press('Space');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await tracker(page).getByText(`${NODES} of ${NODES} nodes`).waitFor();
  const hosts = await api<{ scan: { enabled: boolean; threshold: number } }>(
    'GET',
    `/clusters/${clusterId}/unknown-hosts`,
  );
  t.like(hosts.scan, { enabled: true, threshold: 250 });

  await page.getByRole('link', { name: 'Visitor address' }).click();
  await page.getByLabel('Remove X-Forwarded-For from visitors').press('Space');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  // The tracker still shows the settings saved before until these are.
  await eventually(async () => {
    const { settings } = await api<{ settings: { dropForwardedFor: boolean } }>(
      'GET',
      `/clusters/${clusterId}/client-ip`,
    );
    return settings.dropForwardedFor;
  });
  await tracker(page).getByText(`${NODES} of ${NODES} nodes`).waitFor();

  await page.getByRole('link', { name: 'Revisions' }).click();
  await page.getByRole('gridcell', { name: WORDS.reason.client_ip_updated }).waitFor();
  const hostsChanged = page.getByRole('row').filter({ hasText: WORDS.reason.unknown_hosts_updated });
  await hostsChanged.waitFor();

  // What a revision changed, field by field, and back to it.
  await hostsChanged.getByRole('button', { name: 'Show the changes of revision' }).click();
  await dialog(page).getByText('Scans › Threshold').waitFor();
  t.regex((await dialog(page).locator('.object-change').textContent()) ?? '', /Scans › Thresholdfrom 100to 250/);
  await dialog(page).getByRole('button', { name: 'Roll back to this revision' }).click();
  await dialog(page).getByText('One configuration entry differs.').waitFor();
  await dialog(page).getByText('Restores the settings of one object').waitFor();
  await dialog(page).getByText('Restore the saved settings, too').click();
  await dialog(page).getByText('The saved settings do not change.').waitFor();
  await dialog(page).getByLabel('Note').fill('Visitors were lost');
  await dialog(page).getByRole('button', { name: 'Roll back', exact: true }).click();
  await page.getByRole('gridcell', { name: 'Visitors were lost' }).waitFor();
  await tracker(page).getByText(`${NODES} of ${NODES} nodes`).waitFor();
  t.is(
    await api<{ items: { reasonCode: string }[] }>('GET', `/clusters/${clusterId}/revisions?pageSize=1`).then(
      ({ items }) => items[0]!.reasonCode,
    ),
    'rollback',
  );
  // Nodes have what that one had, and what is saved still differs: it is put back alone.
  await hostsChanged.getByRole('button', { name: 'Roll back to revision' }).click();
  await dialog(page).getByText('Restores the settings of one object').waitFor();
  await dialog(page).getByRole('button', { name: 'Roll back', exact: true }).click();
  await dialog(page).waitFor({ state: 'detached' });
  const kept = await api<{ settings: object }>('GET', `/clusters/${clusterId}/client-ip`);
  t.deepEqual(kept.settings, { mode: 'direct', dropForwardedFor: false });
  // Then there is nothing left to do.
  await hostsChanged.getByRole('button', { name: 'Roll back to revision' }).click();
  await dialog(page).getByText('The nodes already have this configuration.').waitFor();
  t.true(await dialog(page).getByRole('button', { name: 'Roll back', exact: true }).isDisabled());
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a node is found, disabled and enabled again', async (t) => {
  const visitor = await operatorVisit('/nodes');
  const { page } = visitor;
  await page.locator('tbody a').first().click();
  await page.getByRole('heading', { name: 'Capabilities' }).waitFor();
  await chooseRare(page, 'Disable');
  await dialog(page).getByText('gets no more changes and bans').waitFor();
  await dialog(page).getByRole('button', { name: 'Disable' }).click();
  await page.getByText('Disabled', { exact: true }).waitFor();
  await chooseRare(page, 'Enable');
  await dialog(page).getByRole('button', { name: 'Enable' }).click();
  await offersRare(page, 'Disable');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('the load of a node over the last day is drawn and read; without figures the page says so', async (t) => {
  const { nodeId } = fleet.nodes[0]!;
  const visitor = await operatorVisit(`/nodes/${nodeId}/load`);
  const { page } = visitor;
  await page.getByText('The node reported no metrics in the last 24 hours.').waitFor();
  const sql = console.running.runtime.pools.api;
  const started = Math.floor(Date.now() / 300_000) * 300_000;
  for (const [minutes, cpu] of [
    [60, 75],
    [30, 25],
  ] as const)
    await sql('node_metrics_minute').insert({
      node_id: nodeId,
      minute: new Date(started - minutes * 60_000),
      cpu_percent: cpu,
      load1: 1,
      memory_used_bytes: 3e9,
      memory_total_bytes: 8e9,
      egress_bps: 5e6,
      active_connections: 12,
    });
  await page.reload();
  for (const name of ['CPU', 'Memory', 'Egress', 'Open connections'])
    await page.getByRole('slider', { name }).locator('canvas').waitFor();
  const cpu = page.getByRole('region', { name: 'CPU' });
  await cpu.getByText('Show as table').click();
  const read = (await cpu.getByRole('row').allTextContents()).filter((row) => row.includes('%'));
  t.deepEqual(
    read.map((row) => /\d+%/.exec(row)?.[0]),
    ['75%', '25%'],
  );
  t.is((await cpu.getByRole('row').count()) - 1, 288, 'what is not known is said, too');
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await screenshot(page, 'node-load');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const DAY_MS = 86_400_000;
/** Stays, also when the day ends meanwhile. */
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const dayText = (time: number) => new Date(time).toISOString().slice(0, 10);
let counted = false;

/** Traffic of the site and of a deleted one in the last days, and a gap; once for all stories. */
async function usedSites(): Promise<void> {
  if (counted) return;
  counted = true;
  const { runtime } = console.running;
  const sql = runtime.pools.api;
  await sql('deleted_site').insert({
    site_id: 'gone',
    name: 'Old shop',
    cluster_id: clusterId,
    deleted_at: new Date(),
  });
  for (const [site, back, requests, bytes] of [
    [siteId, 3, 1200, 48_000_000],
    [siteId, 2, 3400, 3_000_000_000],
    [siteId, 1, 800, 96_000_000],
    ['gone', 2, 5, 7000],
  ] as const) {
    const minute = new Date(TODAY - back * DAY_MS + DAY_MS / 2);
    const row = { minute, cluster_id: clusterId, requests };
    await sql('usage_minute').insert({ ...row, site_id: site, bytes_sent: bytes, bytes_received: bytes / 100 });
    await sql('usage_mark').insert(row);
  }
  await sql('usage_gap').insert({
    node_id: fleet.nodes[0]!.nodeId,
    starts_at: new Date(TODAY - DAY_MS + 3_600_000),
    ends_at: new Date(TODAY - DAY_MS + 3_601_000),
    reason: 'told',
  });
  await sql('usage_state').update({ complete_until: new Date(TODAY - DAY_MS) });
  await rolledUpUsage(console);
}

test.serial('usage is summed, drawn, listed by site and exported; what is missing is said', async (t) => {
  const visitor = await operatorVisit('/overview');
  const { page } = visitor;
  await page.getByRole('navigation', { name: 'Navigation' }).getByRole('link', { name: 'Traffic' }).click();
  await page.getByRole('link', { name: 'Usage', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
  await page.getByText('No traffic in this period.').waitFor();
  await usedSites();
  await page.reload();
  const sums = page.getByRole('region').filter({ has: page.locator('.usage-totals') });
  await sums.getByText('5,405', { exact: true }).waitFor();
  await sums.getByText('3.1 GB').waitFor();
  await sums.getByText('3,144,007,000 bytes').waitFor();
  await sums.getByText(/^The numbers are complete up to .* UTC\. Later numbers may still rise\.$/).waitFor();
  const sites = page.getByRole('table', { name: 'Sites by usage' });
  await sites.getByRole('link', { name: 'Shop', exact: true }).waitFor();
  await sites.getByText('Old shop (deleted)').waitFor();
  await page.getByRole('region', { name: 'Lost counts' }).getByText('data plane was killed').waitFor();

  // Days of one’s own, by keyboard; each is a bar.
  await page.getByRole('combobox', { name: 'Period', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'Today' }).click();
  await page.getByText('No traffic in this period.').waitFor();
  await page.goto(`/traffic/usage?range=custom&from=${dayText(TODAY - 20 * DAY_MS)}&to=${dayText(TODAY - DAY_MS)}`);
  const chart = page.getByRole('slider', { name: 'Bytes sent' });
  await chart.locator('canvas').waitFor();
  await chart.focus();
  await page.keyboard.press('End');
  t.true(
    (await chart.getAttribute('aria-valuetext'))?.includes('96 MB'),
    (await chart.getAttribute('aria-valuetext')) ?? '',
  );
  await page
    .getByRole('combobox', { name: 'First day' })
    .fill(new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' }).format(TODAY - 2 * DAY_MS));
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('from') === dayText(TODAY - 2 * DAY_MS));
  await sums.getByText('4,205', { exact: true }).waitFor();

  await page.setViewportSize({ width: 1440, height: 1700 });
  await screenshot(page, 'usage-whole');
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export CSV' }).click();
  const file = await saving;
  t.regex(file.suggestedFilename(), /^usage-.*\.csv$/);
  const lines = readFileSync(await file.path(), 'utf8')
    .trimEnd()
    .split('\r\n');
  t.is(lines.length, 4);
  t.true(lines.some((line) => line.includes(`,${siteId},Shop,3400,3000000000,30000000,1,`)));

  // The same of one site, on its page.
  await sites.getByRole('link', { name: 'Shop', exact: true }).click();
  await page.waitForURL(`**/sites/${siteId}/usage`);
  await sums.getByText('5,400', { exact: true }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('usage is exported in the background; Activity shows how far it is, and saves the file', async (t) => {
  const visitor = await operatorVisit(
    `/traffic/usage?range=custom&from=${dayText(TODAY - 2 * DAY_MS)}&to=${dayText(TODAY - DAY_MS)}`,
  );
  const { page } = visitor;
  // Its only part waits to be stored for as long as the table is locked.
  const held = await console.running.runtime.pools.api.transaction();
  await held.raw('lock table long_job_part in exclusive mode');
  await page.getByRole('button', { name: 'Export in the background' }).click();
  await page.getByText('The export has started. Activity shows its progress').waitFor();
  await page.getByRole('button', { name: /^Activity/ }).click();
  const job = dialog(page).getByRole('region', { name: 'Exports' }).getByRole('listitem');
  await job.getByText('Usage export').waitFor();
  await job.getByText('0% done').waitFor();
  await held.rollback();
  await job.getByText('Done', { exact: true }).waitFor();
  await screenshot(page, 'activity-export');
  const saving = page.waitForEvent('download');
  await job.getByRole('button', { name: 'Save file' }).click();
  const file = await saving;
  t.regex(file.suggestedFilename(), /^usage-.*\.csv$/);
  const text = readFileSync(await file.path(), 'utf8');
  t.is(text.trimEnd().split('\r\n').length, 4);
  t.true(text.includes(`,${siteId},Shop,3400,3000000000,30000000,1,`));
  t.deepEqual(await accessibilityFaults(page), []);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('the audit log is narrowed to one action and opened', async (t) => {
  const visitor = await operatorVisit('/audit?action=node.disable');
  const { page } = visitor;
  await page.getByText('One entry', { exact: true }).waitFor();
  await page.locator('td.is-actions button').first().click();
  await dialog(page).getByText('node.disable').waitFor();
  await dialog(page).getByRole('button', { name: 'As JSON' }).click();
  await dialog(page).getByLabel('Parameters').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'the times of the audit log are asked for in the language of the page, by keyboard, on a telephone',
  async (t) => {
    const visitor = await operatorVisit('/audit', { language: 'zh-CN', width: 375 });
    const { page } = visitor;
    const from = page.getByRole('combobox', { name: '起始时间' });
    const asksFrom = (...local: [year: number, month: number, day: number, hour: number, minute: number]) =>
      page.waitForURL((url) => url.searchParams.get('from') === new Date(...local).toISOString());
    await page.getByRole('button', { name: '筛选', exact: true }).click();
    await from.focus();
    await page.keyboard.type('2026年11月20日 18:20');
    const calendar = page.getByRole('dialog', { name: '起始时间' });
    await calendar.getByText('11 月', { exact: true }).waitFor();
    t.deepEqual(await accessibilityFaults(page), []);
    t.deepEqual(await layoutFaults(page), []);
    await screenshot(page, 'audit-calendar-zh-CN-375');
    await page.keyboard.press('Enter');
    await asksFrom(2026, 10, 20, 18, 20);
    // Into the calendar, a day back, taken.
    await page.keyboard.press('ArrowDown');
    await calendar.waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await asksFrom(2026, 10, 19, 18, 20);
    await from.fill('');
    await page.keyboard.press('Tab');
    await page.waitForURL((url) => !url.searchParams.has('from'));
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('ranges of the origin allow list and the age of audit entries are saved', async (t) => {
  const visitor = await operatorVisit('/settings');
  const { page } = visitor;
  await page.getByLabel('Allowed ranges').fill('10.20.0.0/16');
  await page.locator('#origins').getByRole('button', { name: 'Save' }).click();
  await page.getByLabel('Keep entries for').fill('400');
  await page.locator('#audit').getByRole('button', { name: 'Save' }).click();
  // A button is disabled while its form saves, too: what the server answers tells that it is done.
  const saved = (path: string, expected: unknown) =>
    eventually(async () => isDeepStrictEqual(await api('GET', path), expected), { what: path });
  await saved('/settings/origin-allow-list', { cidrs: ['10.20.0.0/16'] });
  await saved('/settings/audit-retention', { days: 400 });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'a site’s page names the nodes that hold a change back, and what to do, until they are upgraded',
  async (t) => {
    const cluster = await api<{ id: string }>('POST', '/clusters', { name: 'holding' });
    const { site } = await api<{ site: { id: string } }>('POST', '/sites', {
      name: 'Held',
      clusterId: cluster.id,
      domains: ['held.example.com'],
      origins: [{ address: '93.184.216.34' }],
    });
    const features = ['bans-v1', 'challenge-v1', 'partial-config-v1'];
    const old = await startTestFleet(console, cluster.id, 7, { features });
    t.teardown(() => old.stop());
    const visitor = await operatorVisit(`/sites/${site.id}/overview`);
    const { page } = visitor;
    const note = page.getByRole('region', { name: 'Nodes that do not run the latest version of the site' });
    await page.getByText('Live', { exact: true }).first().waitFor();
    t.is(await note.count(), 0);
    await api('PATCH', `/sites/${site.id}/protection`, { logJa4: true });
    await note.getByText('Upgrade required: 7 nodes lack ja4-v1 for its protection:').waitFor();
    await note.getByText('Upgrade these nodes').waitFor();
    await page.getByText('Upgrade required for its protection: lacks ja4-v1.').first().waitFor();
    t.is(await note.getByRole('link').count(), 6);
    await note.getByRole('link', { name: 'and 2 more' }).click();
    await page.getByText('7 entries').waitFor();
    await page.getByRole('button', { name: 'Lacking ja4-v1. Show all nodes' }).waitFor();
    await page.goBack();
    await note.waitFor();
    features.push('ja4-v1');
    for (const node of old.nodes) await node.heartbeat();
    await note.waitFor({ state: 'detached' });
    await page.getByText('Live', { exact: true }).first().waitFor();
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
    // Later stories count the nodes of the first cluster.
    for (const { nodeId } of old.nodes) await api('DELETE', `/nodes/${nodeId}`);
    await api('DELETE', `/sites/${site.id}`);
    await api('DELETE', `/clusters/${cluster.id}`);
  },
);

test.serial('a ban that a node has no room for says which node, and why', async (t) => {
  const { id } = await api<{ id: string }>('POST', '/bans', {
    scope: 'platform',
    cidr: '198.18.200.1',
    reason: 'abuse',
    durationSeconds: 3600,
  });
  const connection = connectAs(console, await enrollOne(console, clusterId));
  await connection.call('heartbeat', { bans: { unappliedIds: [id], unapplied: 1n, entries: 100n, capacity: 100n } });
  // Heartbeats are noted together, up to a second later.
  await eventually(async () => {
    const { items } = await api<{ items: { unappliedNodes: number }[] }>('GET', '/bans?address=198.18.200.1');
    return items[0]?.unappliedNodes === 1;
  });
  const visitor = await operatorVisit('/bans?address=198.18.200.1');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Missing on one node' }).click();
  await dialog(page).getByText('holds 100 of 100 bans').waitFor();
  await dialog(page).getByRole('link').click();
  await page.getByText('One ban exceeds the capacity of 100.').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  connection.destroy();
});

interface Look {
  name: string;
  path: string;
  act?: (page: Page) => Promise<unknown>;
}
const opened = (page: Page) => dialog(page).first().waitFor();

const button = (selector: string) => async (page: Page) => {
  await page.locator(selector).first().click();
  await opened(page);
};

/** An address that is banned when pages are looked at. */
const SHOWN = '192.0.2.200';

/** Ids of what the pages show, made where no story made them. */
async function shown(): Promise<{ nodeId: string; listId: string }> {
  await usedSites();
  await api('POST', '/bans', { scope: 'platform', cidr: SHOWN, reason: 'spam', durationSeconds: 3600 });
  const listed = () => api<{ items: { id: string }[] }>('GET', '/ip-lists');
  if ((await listed()).items.length === 0)
    await api('POST', '/ip-lists', { name: 'partners', kind: 'allow', entries: ['192.0.2.1', '192.0.2.2'] });
  const { items: nodes } = await api<{ items: { id: string }[] }>('GET', '/nodes');
  return { nodeId: nodes[0]!.id, listId: (await listed()).items[0]!.id };
}

// Pages that the navigation leads to are looked at by themselves (console-look).
const PARTS: Record<string, (ids: { nodeId: string; listId: string }) => Look[]> = {
  usage: () => [
    { name: 'usage', path: '/traffic/usage' },
    {
      name: 'usage-days',
      path: `/traffic/usage?range=custom&from=${dayText(TODAY - 20 * DAY_MS)}&to=${dayText(TODAY)}&show=requests`,
      act: (page) => page.locator('.series canvas').waitFor(),
    },
    { name: 'site-usage', path: `/sites/${siteId}/usage` },
  ],
  bans: () => [
    // Dialogs over a list of one row: what is behind them is judged each time.
    {
      name: 'ban-new',
      path: `/bans?address=${SHOWN}&new=1&cidr=93.184.216.0/24`,
      act: (page) => page.locator('.ban-preview').waitFor(),
    },
    { name: 'ban-bulk', path: `/bans?address=${SHOWN}&bulk=1`, act: opened },
    { name: 'ban-lift', path: `/bans?address=${SHOWN}`, act: button('td.is-actions button') },
    { name: 'ban-settings', path: '/bans/settings' },
  ],
  'IP lists, audit log and settings': ({ listId }) => [
    {
      name: 'ip-list',
      path: `/ip-lists/${listId}`,
      act: async (page) => {
        await page.locator('textarea').first().fill('192.0.2.77');
        await button('main button[type=submit]')(page);
      },
    },
    { name: 'audit-entry', path: '/audit?action=site.create', act: button('td.is-actions button') },
  ],
  clusters: () => [
    { name: 'cluster-new', path: '/clusters?new=1', act: opened },
    ...['overview', 'client-ip', 'unknown-hosts', 'revisions', 'groups'].map((tab) => ({
      name: `cluster-${tab}`,
      path: `/clusters/${clusterId}/${tab}`,
    })),
    { name: 'revision', path: `/clusters/${clusterId}/revisions`, act: button('tbody .el-button--primary') },
    { name: 'roll-back', path: `/clusters/${clusterId}/revisions`, act: button('td.is-actions button') },
  ],
  nodes: ({ nodeId }) => [
    { name: 'group-new', path: `/clusters/${clusterId}/groups`, act: button('.table__filters button') },
    { name: 'node-new', path: '/nodes?new=1', act: opened },
    { name: 'node', path: `/nodes/${nodeId}` },
    { name: 'node-load', path: `/nodes/${nodeId}/load` },
    { name: 'regions', path: '/nodes/regions' },
  ],
};

for (const [part, looksOf] of Object.entries(PARTS))
  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'zh-CN'],
  ] as const)
    test.serial(`${part}: each page and dialog fits and can be used by everybody, ${theme}, ${language}`, async (t) => {
      const looks = looksOf(await shown());
      const visitor = await operatorVisit('/account', { theme, language });
      const { page } = visitor;
      const faults: string[] = [];
      for (const [index, { name, path, act }] of looks.entries()) {
        await page.setViewportSize({ width: 1440, height: 900 });
        // What was opened on the page before would be in the way.
        if (looks[index - 1]?.act) await page.goto(path);
        else await follow(page, path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await settled(page);
        if (act) await act(page);
        await settled(page);
        for (const width of [1440, 375]) {
          await page.setViewportSize({ width, height: 900 });
          const wrong = await layoutFaults(page);
          // Of the other theme axe judges colours, which are the same at each width.
          const judged = theme === 'light' ? orLong(width === [1440, 375][index % 2], true) : width === 1440;
          if (judged) wrong.push(...(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors')));
          faults.push(...wrong.map((fault) => `${name} ${width}: ${fault}`));
          await screenshot(page, `network-${name}-${theme}-${width}`);
        }
      }
      t.deepEqual([...faults, ...visitor.faults()], []);
      await visitor.close();
    });

// Rollouts ----------------------------------------------------------------------------------------------------------------

for (const [theme, language] of [
  ['light', 'en'],
  ['dark', 'zh-CN'],
] as const)
  test.serial(`rollouts: each state and the report can be read by everybody, ${theme}, ${language}`, async (t) => {
    const visitor = await operatorVisit('/account', { theme, language });
    const { page } = visitor;
    const event = takenBackEvent(clusterId);
    let answer = runningRollout(clusterId);
    await page.route('**/rpc/clusters/rollout', (route) => route.fulfill({ json: answer }));
    await page.route('**/rpc/clusters/rolloutEvents', (route) => route.fulfill({ json: { items: [event], total: 1 } }));
    await page.route('**/rpc/clusters/rolloutEvent', (route) => route.fulfill({ json: event }));
    const faults: string[] = [];
    const look = async (name: string) => {
      await settled(page);
      for (const width of [1440, 375]) {
        await page.setViewportSize({ width, height: 900 });
        const wrong = await layoutFaults(page);
        if (theme === 'light' || width === 1440) wrong.push(...(await accessibilityFaults(page)));
        faults.push(...wrong.map((fault) => `${name} ${width}: ${fault}`));
        await screenshot(page, `network-${name}-${theme}-${width}`);
      }
      await page.setViewportSize({ width: 1440, height: 900 });
    };
    await page.goto(`/rollouts?clusterId=${clusterId}`);
    await page.locator('.canary-figures').waitFor();
    await look('rollout-running');
    await page.locator('.rollout-state .el-button--danger').click();
    await opened(page);
    await look('rollout-abort');
    answer = takenBack(clusterId);
    await page.goto(`/rollouts?clusterId=${clusterId}`);
    await page.locator('.rollout-history__kind').waitFor();
    await look('rollout-taken-back');
    await page.locator('.rollout-history__kind').click();
    await page.locator('.rollout-report').waitFor();
    await look('rollout-event');
    t.deepEqual([...faults, ...visitor.faults()], []);
    await visitor.close();
  });

test.serial('a canary is told in words and figures, and aborted after one question', async (t) => {
  const visitor = await operatorVisit('/account');
  const { page } = visitor;
  let answer = runningRollout(clusterId);
  await page.route('**/rpc/clusters/rollout', (route) => route.fulfill({ json: answer }));
  await page.route('**/rpc/clusters/abortRollout', (route) => {
    answer = takenBack(clusterId);
    return route.fulfill({ json: answer });
  });
  await page.goto(`/rollouts?clusterId=${clusterId}`);
  const now = page.getByRole('region', { name: 'Current canary' });
  await now.getByText('2 canary nodes run revision 42. All other nodes stay at revision 41.').waitFor();
  await now.getByText(/left\. All nodes get the change at/).waitFor();
  const figures = page.getByRole('region', { name: 'Canary compared with other nodes' });
  await figures.getByRole('row', { name: 'Canary nodes 2,000 30 1.5%' }).waitFor();
  await figures.getByRole('row', { name: 'Other nodes 48,000 96 0.2%' }).waitFor();
  await figures.getByText('above 5%, overall or for a changed site alone').waitFor();
  await page
    .getByRole('region', { name: 'Changes in this canary' })
    .getByRole('link', { name: 'shop.example.com' })
    .waitFor();

  await now.getByRole('button', { name: 'Abort' }).focus();
  await page.keyboard.press('Enter');
  await dialog(page).getByText('3 sites affected').waitFor();
  await dialog(page).getByText('so correct the settings, too.').waitFor();
  await dialog(page).getByRole('button', { name: 'Abort' }).click();
  await now.getByText('was rolled back. Only the canary nodes').waitFor();
  await now
    .getByText('5xx responses from origins: 0.12% of the requests of shop.example.com before the change, 93% with it.')
    .waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('canaries are switched on where it is said how to begin', async (t) => {
  const { id } = await api<{ id: string }>('POST', '/clusters', { name: 'begins' });
  const visitor = await operatorVisit(`/rollouts?clusterId=${id}`);
  const { page } = visitor;
  await page.getByText('Canaries are off in this cluster').waitFor();
  await page.getByRole('link', { name: 'Node groups of the cluster' }).waitFor();
  await page.getByRole('switch', { name: 'Send changes to canary nodes first' }).press('Space');
  await page.getByLabel('Share of 5xx responses always allowed').fill('2');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('at most 1').waitFor();
  await page.getByLabel('Share of 5xx responses always allowed').fill('0.1');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('No canary running', { exact: true }).waitFor();
  t.like(await api('GET', `/clusters/${id}/rollout-policy`), { enabled: true, errorRatioFloor: 0.1 });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  await api('DELETE', `/clusters/${id}`);
});

test.serial('a site says that a canary holds its change back, until it is promoted', async (t) => {
  const cluster = await api<{ id: string }>('POST', '/clusters', { name: 'trying' });
  const features = ['bans-v1', 'challenge-v1', 'partial-config-v1', 'canary-v1'];
  const two = await startTestFleet(console, cluster.id, 2, { features });
  t.teardown(() => two.stop());
  const { site } = await api<{ site: { id: string } }>('POST', '/sites', {
    name: 'Tried',
    clusterId: cluster.id,
    domains: ['tried.example.com'],
    origins: [{ address: '93.184.216.34' }],
  });
  const group = { clusterId: cluster.id, name: 'first', isCanary: true };
  const { id: nodeGroupId } = await api<{ id: string }>('POST', '/node-groups', group);
  await api('PATCH', `/nodes/${two.nodes[0]!.nodeId}`, { nodeGroupId });
  await api('PUT', `/clusters/${cluster.id}/rollout-policy`, { enabled: true, windowSeconds: 3600 });
  await api('PATCH', `/sites/${site.id}`, { name: 'Tried so' });

  const visitor = await operatorVisit(`/sites/${site.id}/overview`);
  const { page } = visitor;
  const note = page.getByRole('region', { name: 'The latest change is in a canary' });
  await note.getByText('All other nodes get it at').waitFor();
  await note.getByRole('link', { name: 'Open the canary' }).click();
  await page.getByText('One canary node runs revision').waitFor();
  await page.getByRole('button', { name: 'Promote now' }).click();
  await dialog(page).getByText('The canary nodes have had no requests yet.').waitFor();
  await dialog(page).getByRole('button', { name: 'Promote now' }).click();
  await page.getByText('An operator promoted the canary.').first().waitFor();
  await page.goto(`/sites/${site.id}/overview`);
  await page.getByText('Live', { exact: true }).first().waitFor();
  t.is(await note.count(), 0);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  // Later stories count the nodes of the first cluster.
  for (const { nodeId } of two.nodes) await api('DELETE', `/nodes/${nodeId}`);
  await api('DELETE', `/sites/${site.id}`);
  await api('DELETE', `/clusters/${cluster.id}`);
});

test.serial('the page of a node says which GeoIP databases it has, and whose data they are', async (t) => {
  const identity = await enrollOne(console, clusterId);
  const visitor = await operatorVisit(`/nodes/${identity.nodeId}`);
  const { page } = visitor;
  await page.getByText('The node has not reported its databases.').waitFor();
  await connectAs(console, identity).call('heartbeat', {
    info: {
      features: ['bans-v1'],
      geoip: {
        country: { ready: true, builtAt: BigInt(Date.parse('2026-06-17T19:00:00Z') / 1000) },
        asn: { problem: 'asn.mmdb: no such file or directory' },
      },
    },
  });
  // Without a reload: what a node tells appears by itself.
  await page.getByText('Ready, data of Jun 17, 2026').waitFor();
  await page.getByText('If a rule needs this database, the node returns 503 for the request.').waitFor();
  await page.getByText('asn.mmdb: no such file or directory').waitFor();
  t.is(await page.getByRole('link', { name: 'DB-IP' }).getAttribute('href'), 'https://db-ip.com');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
