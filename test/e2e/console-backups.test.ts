// Backups in the Web UI: a schedule is saved, a backup is made at once with its progress, and its result is in the history.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { backupsIn, newBackupKeys } from '../helpers/backup-commands.ts';
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
import { Api, type Body } from '../helpers/resources.ts';

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let folder: string;

test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'console-backups-'));
  [browser, running] = await Promise.all([startBrowser(), startBrowsedConsole({ env: { SVC_BACKUP_DIRS: folder } })]);
  api = new Api(running);
});
test.after.always(async () => {
  await browser?.close();
  await running?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('a schedule is saved, a backup is made at once, and its result is listed', async (t) => {
  const { page, faults } = await signedInVisit(browser, running.origin, '/backups', { theme: 'system' });
  await page.getByText('No backups yet').waitFor();
  await page.getByText('None yet', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Back up now' }).click();
  await page.getByText('Set a folder and a public key first.').waitFor();
  await page.getByRole('link', { name: 'Schedule', exact: true }).click();
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await field('Folder').fill('/etc');
  await field('Public key').fill(newBackupKeys().publicKey);
  await save.click();
  await page.getByText('Backups cannot be written to this folder').waitFor();
  await field('Folder').fill(folder);
  await field('Interval').fill('12');
  await save.click();
  const saved = await eventually(
    async () => {
      const now = await api.ok('GET', '/backups/settings');
      return now.folder !== '' && now;
    },
    { what: 'the saved schedule' },
  );
  t.like(saved, { enabled: false, folder, intervalHours: 12, keep: 30 });
  await screenshot(page, 'backup-schedule');
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(await accessibilityFaults(page, 'all'), []);

  await page.getByRole('link', { name: 'History', exact: true }).click();
  // What a backup shows while it runs, however short it is.
  const [shown] = await api.sql('backup').insert(
    {
      cause: 'request',
      state: 'running',
      phase: 'verify',
      progress: 40,
      folder,
      started_at: new Date(),
      leased_until: new Date(Date.now() + 3_600_000),
    },
    '*',
  );
  await page.reload();
  await page.getByText('Reading back, 40 %').waitFor();
  await page.getByRole('progressbar', { name: 'Reading back, 40 %' }).waitFor();
  t.true(await page.getByRole('button', { name: 'Back up now' }).isDisabled());
  await screenshot(page, 'backup-running');
  await api
    .sql('backup')
    .where({ id: shown.id })
    .update({ leased_until: new Date(0) });
  await page.getByText("The console's process ended in the middle.").waitFor();

  await page.getByRole('button', { name: 'Back up now' }).click();
  await page.getByText('Verified', { exact: false }).waitFor();
  t.is(backupsIn(folder).length, 1);
  await page.getByText('None yet', { exact: true }).waitFor({ state: 'hidden' });
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `backups-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, '/backups', { language: 'zh-CN' });
  await chinese.page.getByText('控制台进程中途结束。').waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
});

test('bans that a restore lost are listed, and banned again', async (t) => {
  const [{ epoch }] = await api.sql('console_state');
  const lost = (id: string, more: Record<string, unknown>) => ({
    id,
    epoch,
    source: 'manual',
    reason: 'scanner',
    created_at: new Date(Date.now() - 3_600_000),
    expires_at: new Date(Date.now() + 7_200_000),
    nodes: 2,
    reported_at: new Date(),
    ...more,
  });
  await api
    .sql('lost_ban')
    .insert([
      lost('one', { cidr: '203.0.113.1' }),
      lost('two', { cidr: '203.0.113.2', source: 'auto', reason: 'unknown_host_scan' }),
      lost('three', { cidr: '203.0.113.3', site_id: 'no-longer-there' }),
    ]);
  await api.sql('lost_ban_report').insert({ epoch, node_id: 'n', unnamed: 1200, reported_at: new Date() });
  const { page, faults } = await signedInVisit(browser, running.origin, '/bans', { theme: 'system' });
  await page.getByRole('link', { name: 'Lost in a restore', exact: true }).click();
  const row = (cidr: string) => page.getByRole('row').filter({ hasText: cidr });
  await row('203.0.113.1').getByText('2 nodes').waitFor();
  await row('203.0.113.3').getByText('a site that no longer exists').waitFor();
  await page.getByText('1,200 more lost bans are not listed').waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `lost-bans-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);

  await page.getByRole('button', { name: 'Ban again: 203.0.113.1/32', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Ban one address again?').waitFor();
  await dialog.getByRole('button', { name: 'Ban again', exact: true }).click();
  await row('203.0.113.1').waitFor({ state: 'hidden' });
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('checkbox', { name: /all/i }).first().check({ force: true });
  await page.getByRole('button', { name: 'Ban again', exact: true }).first().click();
  // That of a site that is gone is left out.
  await dialog.getByText('Ban one address again?').waitFor();
  await dialog.getByRole('button', { name: 'Ban again', exact: true }).click();
  await row('203.0.113.2').waitFor({ state: 'hidden' });
  const { items } = await api.ok('GET', '/bans');
  const made = (cidr: string) => items.find((ban: Body) => ban.cidr === cidr);
  t.like(made('203.0.113.1/32'), { reason: 'scanner', source: 'manual', scope: 'platform' });
  t.like(made('203.0.113.2/32'), { reason: 'attack', source: 'manual', scope: 'platform' });
  const left = (Date.parse(made('203.0.113.1/32').expiresAt) - Date.parse(made('203.0.113.1/32').createdAt)) / 1000;
  t.true(left > 3600 && left <= 7200, 'until the lost one would have ended');
  t.is((await api.ok('GET', '/bans/lost')).total, 1);
  t.deepEqual(faults(), []);
  const chinese = await signedInVisit(browser, running.origin, '/bans/lost', { language: 'zh-CN' });
  await chinese.page.getByText('已不存在的站点').waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
});
