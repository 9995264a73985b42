// Dialogs of the console in a real browser: what was typed is not thrown away unasked, and what somebody else saved while
// a dialog was open stays.
import test, { type ExecutionContext } from 'ava';
import type { Browser, Locator, Page } from 'playwright-core';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { word } from '../helpers/console-forms.ts';
import {
  accessibilityFaults,
  answerQuestions,
  layoutFaults,
  screenshot,
  settled,
  signedInVisit,
  startBrowsedConsole,
  until,
  type Visit,
  type VisitOptions,
} from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

const CLOSE = word('shared.form.closeTitle');
const LEAVE = word('shared.form.leaveTitle');

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let clusterId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  await api.site(clusterId, 'dialogs.example.com', { origins: [{ address: '93.184.216.34' }] });
});

test.after.always(async () => {
  await browser?.close();
  await running?.stop();
});

interface Asked extends Visit {
  /** What the page asked since the last look. */
  questions: () => string[];
  /** What is answered from now on. */
  answer: (yes: boolean) => void;
}

async function operatorVisit(path: string, options: VisitOptions = {}): Promise<Asked> {
  const visitor = await signedInVisit(browser, running.origin, path, options);
  let asked: string[] = [];
  let agree = false;
  await answerQuestions(visitor.page, (title) => {
    asked.push(title);
    return agree;
  });
  await visitor.page.getByRole('heading', { level: 1 }).waitFor();
  const questions = () => {
    const now = asked;
    asked = [];
    return now;
  };
  const answer = (yes: boolean) => {
    agree = yes;
  };
  return { ...visitor, questions, answer };
}

const field = (box: Locator, key: string) => box.getByLabel(word(key), { exact: true });
/** Waits until the dialog of the page is there and has the focus: before that it hears no keys. */
async function shown(page: Page): Promise<Locator> {
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await settled(page);
  await until(page, `document.querySelector('[role=dialog]').contains(document.activeElement)`);
  return dialog;
}
/** Opens a dialog by its button and waits until it has the focus. */
async function opened(page: Page, button: string): Promise<Locator> {
  await page.getByRole('button', { name: button, exact: true }).first().click();
  return shown(page);
}
/** What was asked, once something was. */
async function asked(questions: () => string[]): Promise<string[]> {
  const found: string[] = [];
  await eventually(() => found.push(...questions()) > 0);
  return found;
}
const cross = (dialog: Locator) => dialog.locator('.el-dialog__headerbtn');

const DIALOGS: readonly { what: string; path: () => string; button: string; field: string; text: string }[] = [
  {
    what: 'a new site',
    path: () => '/sites',
    button: 'sites.create.title',
    field: 'sites.create.origin',
    text: 'half an addr ess',
  },
  {
    what: 'a ban',
    path: () => '/bans',
    button: 'bans.create.open',
    field: 'bans.create.address',
    text: '203.0.113.7',
  },
  {
    what: 'many bans',
    path: () => '/bans',
    button: 'bans.bulk.open',
    field: 'bans.bulk.addresses',
    text: '203.0.113.7',
  },
  {
    what: 'a new cluster',
    path: () => '/clusters',
    button: 'network.clusters.new',
    field: 'network.clusters.name',
    text: 'c',
  },
  {
    what: 'a new region',
    path: () => '/nodes/regions',
    button: 'network.regions.new',
    field: 'network.regions.name',
    text: 'r',
  },
  {
    what: 'a new node group',
    path: () => `/clusters/${clusterId}/groups`,
    button: 'network.groups.new',
    field: 'network.groups.name',
    text: 'g',
  },
  {
    what: 'a new access key',
    path: () => '/access/keys',
    button: 'access.keys.new',
    field: 'access.keys.name',
    text: 'k',
  },
  {
    what: 'a new service account',
    path: () => '/access/service-accounts',
    button: 'access.accounts.new',
    field: 'access.accounts.name',
    text: 'a',
  },
];

for (const { what, path, button, field: key, text } of DIALOGS) {
  test.serial(`the dialog of ${what} asks before typed input is thrown away, and never while untouched`, async (t) => {
    const { page, questions, answer, ...visitor } = await operatorVisit(path());
    const question = page.getByRole('alertdialog');
    let dialog = await opened(page, word(button));
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    dialog = await opened(page, word(button));
    await cross(dialog).click();
    await dialog.waitFor({ state: 'hidden' });
    t.deepEqual(questions(), []);

    dialog = await opened(page, word(button));
    await field(dialog, key).fill(text);
    await page.keyboard.press('Escape');
    t.deepEqual(await asked(questions), [CLOSE]);
    await question.waitFor({ state: 'detached' });
    await cross(dialog).click();
    t.deepEqual(await asked(questions), [CLOSE]);
    await question.waitFor({ state: 'detached' });
    t.is(await field(dialog, key).inputValue(), text, 'it is still there');
    answer(true);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    t.deepEqual(questions(), [CLOSE]);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  });
}

test.serial('leaving the page of a dialog with typed input asks, and what was sent asks nothing', async (t) => {
  const { page, questions, answer, ...visitor } = await operatorVisit('/nodes/regions');
  await page.getByRole('link', { name: 'Clusters' }).first().click();
  await page.getByRole('heading', { name: 'Clusters', level: 1 }).waitFor();
  const dialog = await opened(page, word('network.clusters.new'));
  await field(dialog, 'network.clusters.name').fill('left');
  await page.evaluate('history.back()');
  t.deepEqual(await asked(questions), [LEAVE]);
  t.is(await field(dialog, 'network.clusters.name').inputValue(), 'left');
  await dialog.getByRole('button', { name: word('network.create') }).click();
  await page.getByRole('heading', { name: 'left', level: 1 }).waitFor();
  t.deepEqual(questions(), []);

  // The address of the dialog is a page of its own in the history.
  await page.goto('/clusters');
  await settled(page);
  await page.keyboard.press('Control+k');
  await page.locator('[role=combobox]:focus').waitFor();
  await page.keyboard.type('New cluster');
  await page.getByRole('option', { name: 'New cluster' }).click();
  await field(dialog, 'network.clusters.name').fill('again');
  await page.evaluate('history.back()');
  t.deepEqual(await asked(questions), [LEAVE]);
  t.is(await field(dialog, 'network.clusters.name').inputValue(), 'again');
  answer(true);
  await page.evaluate('history.back()');
  await dialog.waitFor({ state: 'detached' });
  t.deepEqual(questions(), [LEAVE]);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'Back closes a dialog that has an address, and closing it leaves nothing behind in the history',
  async (t) => {
    const { page, ...visitor } = await operatorVisit('/sites?search=dialogs');
    const button = word('sites.create.title');
    const dialog = await opened(page, button);
    t.is(new URL(page.url()).search, '?search=dialogs&new=1');
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    t.is(new URL(page.url()).search, '?search=dialogs');
    const entries = await page.evaluate<number>('history.length');
    await opened(page, button);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.waitForURL((url) => !url.searchParams.has('new'));
    t.is(await page.evaluate<number>('history.length'), entries, 'the entry of the dialog is the one that was there');
    // Who follows a link to it closes it into the list.
    await page.goto('/clusters?new=1');
    await dialog.waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await page.waitForURL('**/clusters');
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

interface Shared {
  what: string;
  path: () => string;
  list: string;
  /** What changes it through the API. */
  method: 'PATCH' | 'PUT';
  create: () => Promise<Body>;
  name: string;
  /** Label of its name. */
  nameField: string;
  /** What somebody else saves beside the name, and what it is afterwards. */
  theirs: Body;
  /** Changes something else in the dialog; what it is afterwards. */
  edit: (dialog: Locator) => Promise<unknown>;
  mine: Body;
}

const SHARED: readonly Shared[] = [
  {
    what: 'a node group',
    path: () => `/clusters/${clusterId}/groups`,
    list: '/node-groups',
    method: 'PATCH',
    create: () => api.ok('POST', '/node-groups', { clusterId, name: 'shared-group' }),
    name: 'shared-group',
    nameField: 'network.groups.name',
    theirs: { name: 'renamed-group' },
    edit: (dialog) => dialog.getByText(word('network.groups.canary'), { exact: true }).click(),
    mine: { isCanary: true },
  },
  {
    what: 'a region',
    path: () => '/nodes/regions',
    list: '/regions',
    method: 'PATCH',
    create: () => api.ok('POST', '/regions', { name: 'Shared region', code: 'shared' }),
    name: 'Shared region',
    nameField: 'network.regions.name',
    theirs: { name: 'Renamed region' },
    edit: (dialog) => field(dialog, 'network.regions.code').fill('mine'),
    mine: { code: 'mine' },
  },
  {
    what: 'a service account',
    path: () => '/access/service-accounts',
    list: '/service-accounts',
    method: 'PUT',
    create: () => api.ok('POST', '/service-accounts', { name: 'shared-account', scopes: ['sites:read'] }),
    name: 'shared-account',
    nameField: 'access.accounts.name',
    theirs: { name: 'renamed-account' },
    edit: (dialog) => dialog.getByText('sites:write', { exact: true }).click(),
    mine: { scopes: ['sites:read', 'sites:write'] },
  },
];

const edit = async (page: Page, name: string) => opened(page, `Edit ${name}`);
const save = (dialog: Locator) => dialog.getByRole('button', { name: word('shared.form.save'), exact: true }).click();
async function readOne(t: ExecutionContext, { list }: Shared, id: string): Promise<Body> {
  const found = (await api.ok('GET', `${list}?pageSize=100`)).items.find((one: Body) => one.id === id);
  t.truthy(found);
  return found;
}

for (const shared of SHARED) {
  test.serial(`two people edit different fields of ${shared.what}: both edits survive`, async (t) => {
    const { id } = await shared.create();
    const { page, ...visitor } = await operatorVisit(shared.path());
    const dialog = await edit(page, shared.name);
    await shared.edit(dialog);
    await api.ok(shared.method, `${shared.list}/${id}`, shared.theirs);
    await save(dialog);
    await dialog.waitFor({ state: 'hidden' });
    t.like(await readOne(t, shared, id), { ...shared.theirs, ...shared.mine });
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
    await api.ok('DELETE', `${shared.list}/${id}`);
  });

  test.serial(`two people edit one field of ${shared.what}: a person chooses, and other edits survive`, async (t) => {
    const { id } = await shared.create();
    const { page, ...visitor } = await operatorVisit(shared.path());
    const dialog = await edit(page, shared.name);
    await field(dialog, shared.nameField).fill('my-name');
    await shared.edit(dialog);
    await api.ok(shared.method, `${shared.list}/${id}`, shared.theirs);
    await save(dialog);
    const choice = page.getByRole('dialog', { name: word('shared.conflict.title') });
    await choice.getByText(shared.theirs.name).waitFor();
    await page.keyboard.press('Escape');
    await choice.getByText('my-name').click();
    await choice.getByRole('button', { name: word('shared.conflict.save') }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    t.like(await readOne(t, shared, id), { name: 'my-name', ...shared.mine });
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
    await api.ok('DELETE', `${shared.list}/${id}`);
  });
}

test.serial('a choice says what a value means', async (t) => {
  const { id: regionId } = await api.ok('POST', '/regions', { name: 'Frankfurt', code: 'fra' });
  const { id } = await api.ok('POST', '/node-groups', { clusterId, name: 'placed', regionId });
  const { page, ...visitor } = await operatorVisit(`/clusters/${clusterId}/groups`);
  const dialog = await edit(page, 'placed');
  await field(dialog, 'network.groups.region').press('Enter');
  await page.getByRole('option', { name: word('network.groups.noRegion') }).click();
  const { id: other } = await api.ok('POST', '/regions', { name: 'Singapore', code: 'sin' });
  await api.ok('PATCH', `/node-groups/${id}`, { regionId: other });
  await save(dialog);
  const choice = page.getByRole('dialog', { name: word('shared.conflict.title') });
  await choice.getByText(word('network.groups.noRegion')).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

for (const theme of ['light', 'dark'] as const) {
  test.serial(`the choice over a dialog fits and can be used by everybody: ${theme}`, async (t) => {
    const { id } = await api.ok('POST', '/regions', { name: 'Looked at', code: `look-${theme}` });
    const { page, ...visitor } = await operatorVisit('/nodes/regions', { theme });
    const dialog = await edit(page, 'Looked at');
    await field(dialog, 'network.regions.name').fill('A region with a name that goes on and on, <b>markup</b>');
    await api.ok('PATCH', `/regions/${id}`, { name: 'Theirs' });
    await save(dialog);
    await page.getByRole('dialog', { name: word('shared.conflict.title') }).waitFor();
    await settled(page);
    for (const width of [1440, 375]) {
      await page.setViewportSize({ width, height: 900 });
      t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
      await screenshot(page, `conflict-${theme}-${width}`);
    }
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
    await api.ok('DELETE', `/regions/${id}`);
  });
}
