// Stories of changes that are looked at and taken back, in a real browser over a real console: the difference by field, undo
// where one sees the change, and settings that a rolled-back canary left saved.
import test from 'ava';
import type { Page } from 'playwright-core';
import { accessibilityFaults, layoutFaults, screenshot } from '../helpers/console-pages.ts';
import { ConsoleStories, saveButton, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';

const stories = new ConsoleStories(2);

test.before(() => stories.start());
test.after.always(() => stories.stop());

const latest = (page: Page) => page.getByRole('complementary', { name: 'Latest changes' });
const nameOf = async (id: string) => (await stories.readSite(id)).name;
const api = <T = unknown>(method: string, path: string, body?: unknown) =>
  stories.console.client.api<T>(method, path, body);

test.serial('a save is undone from the note that follows it', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('By mistake');
  await saveButton(page).click();
  await tracker(page).getByText('2 of 2 nodes').waitFor();
  await latest(page).getByRole('button', { name: 'Undo' }).click();
  await latest(page).getByText(`Undo: ${site.name}`).waitFor();
  t.is(await nameOf(site.id), site.name);
  await page.getByRole('heading', { level: 1, name: site.name }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const HISTORY = {
  en: {
    entry: 'Site changed: Name',
    field: 'Name',
    undo: 'Undo this change',
    undone: 'Undone',
    later: 'A later change affects Name.',
    json: 'As JSON',
  },
  'zh-CN': {
    entry: '站点已更改：名称',
    field: '名称',
    undo: '撤销此更改',
    undone: '已撤销',
    later: '之后的更改涉及名称',
    json: 'JSON',
  },
} as const;
for (const language of ['en', 'zh-CN'] as const) {
  const words = HISTORY[language];
  test.serial(`the history of a site shows the fields of a change and undoes it: ${language}`, async (t) => {
    const site = await stories.newSite();
    await api('PATCH', `/sites/${site.id}`, { name: 'First' });
    await api('PATCH', `/sites/${site.id}`, { name: 'Second' });
    const visitor = await stories.operatorVisit(`/sites/${site.id}/history`, { language });
    const { page } = visitor;
    const rows = page.getByRole('row').filter({ hasText: words.field });
    const sheet = page.getByRole('dialog');
    await rows.nth(1).getByRole('button').click();
    await sheet.locator('del').filter({ hasText: site.name }).waitFor();
    await sheet.locator('ins').filter({ hasText: 'First' }).waitFor();
    await sheet.getByRole('button', { name: words.undo }).click();
    await sheet.getByText(words.later).waitFor();
    t.is(await nameOf(site.id), 'Second');
    t.deepEqual(await accessibilityFaults(page), []);
    t.deepEqual(await layoutFaults(page), []);
    await screenshot(page, `history-${language}`);
    await page.keyboard.press('Escape');
    await rows.first().getByRole('button').click();
    await sheet.locator('ins').filter({ hasText: 'Second' }).waitFor();
    await sheet.getByRole('button', { name: words.undo }).click();
    await sheet.getByText(words.undone, { exact: true }).waitFor();
    t.is(await nameOf(site.id), 'First');
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  });
}

test.serial('a change is undone from Activity', async (t) => {
  const site = await stories.newSite();
  await api('PATCH', `/sites/${site.id}`, { name: 'Seen in Activity' });
  const visitor = await stories.operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('button', { name: /^Activity/ }).click();
  const entry = page
    .getByRole('dialog', { name: 'Activity' })
    .getByRole('listitem')
    .filter({ hasText: 'Seen in Activity' });
  await entry.first().getByRole('button', { name: 'Changes' }).click();
  await entry.first().locator('ins').filter({ hasText: 'Seen in Activity' }).waitFor();
  await screenshot(page, 'activity-difference');
  await entry.first().getByRole('button', { name: 'Undo this change' }).click();
  await eventually(async () => (await nameOf(site.id)) === site.name);
  t.deepEqual(await accessibilityFaults(page), []);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('automatic undo is offered where one saves, in a cluster without it', async (t) => {
  const site = await stories.newSite();
  const { items } = await api<{ items: { id: string }[] }>('GET', '/clusters');
  const policy = `/clusters/${items[0]!.id}/rollout-policy`;
  await api('PUT', policy, { undoDirect: false });
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('Not yet');
  const offer = page.getByRole('button', { name: 'Undo automatically' });
  await offer.click();
  await offer.waitFor({ state: 'detached' });
  t.true((await api<{ undoDirect: boolean }>('GET', policy)).undoDirect);
  t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Not yet');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('settings of a rolled-back canary stay in sight until they are discarded or tried again', async (t) => {
  const { id: clusterId } = await api<{ id: string }>('POST', '/clusters', { name: 'trying' });
  const features = ['bans-v1', 'challenge-v1', 'client-ip-v1', 'partial-config-v1', 'canary-v1'];
  const two = await startTestFleet(stories.console, clusterId, 2, { features });
  t.teardown(() => two.stop());
  const { site } = await api<{ site: { id: string } }>('POST', '/sites', {
    name: 'Shop',
    clusterId,
    domains: ['shop.example.com'],
    origins: [{ address: '93.184.216.34' }],
  });
  const group = await api<{ id: string }>('POST', '/node-groups', { clusterId, name: 'first', isCanary: true });
  await api('PATCH', `/nodes/${two.nodes[0]!.nodeId}`, { nodeGroupId: group.id });
  const cluster = `/clusters/${clusterId}`;
  await api('PUT', `${cluster}/rollout-policy`, { enabled: true, windowSeconds: 3600, autoPromote: false });

  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  const note = page.getByRole('region', { name: 'Saved settings that no node runs' });
  const tried = page.getByRole('region', { name: 'The latest change is in a canary' });
  const tryAndAbort = async () => {
    await api('PATCH', `/sites/${site.id}`, { name: 'Tried', origins: [{ address: '93.184.216.99' }] });
    await tried.waitFor();
    t.is(await note.count(), 0, 'a canary runs them');
    await api('POST', `${cluster}/rollout/abort`, {});
    await note.getByText('was rolled back').waitFor();
    await note.getByText('Origins 1 › Address').waitFor();
    await note.locator('ins').filter({ hasText: '93.184.216.99' }).waitFor();
  };
  await tryAndAbort();
  await page.getByLabel('Name', { exact: true }).fill('Tried more');
  await page.getByText('This save also publishes settings that no node runs').waitFor();
  t.deepEqual(await accessibilityFaults(page), []);
  t.deepEqual(await layoutFaults(page), []);
  await screenshot(page, 'unpublished');
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await note.getByRole('button', { name: 'Discard' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click();
  await note.waitFor({ state: 'detached' });
  t.is(await nameOf(site.id), 'Shop');
  await page.getByRole('heading', { level: 1, name: 'Shop' }).waitFor();

  await tryAndAbort();
  await note.getByRole('button', { name: 'Try again' }).click();
  await note.waitFor({ state: 'detached' });
  await tried.waitFor();
  t.is(await nameOf(site.id), 'Tried');

  // Settings of the cluster itself are on its page.
  await api('POST', `${cluster}/rollout/promote`, {});
  await api('PUT', `${cluster}/client-ip`, { settings: { mode: 'direct', dropForwardedFor: true } });
  await api('POST', `${cluster}/rollout/abort`, {});
  await page.goto(cluster);
  await note.getByText('Visitor address').waitFor();
  await note.getByRole('button', { name: 'Discard' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click();
  await note.waitFor({ state: 'detached' });
  const saved = await api<{ settings: { dropForwardedFor: boolean } }>('GET', `${cluster}/client-ip`);
  t.false(saved.settings.dropForwardedFor);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
