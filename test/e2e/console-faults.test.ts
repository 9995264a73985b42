// The console in a browser while something is wrong: its database away, its process killed, its answers slow, the
// session over, a node that comes and goes, the clock of the browser off. Real faults, and nothing that was typed is lost.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import pg from 'pg';
import type { Browser, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { startBrowser } from '../helpers/browser.ts';
import { startTestConsoleProcess, TEST_OPERATOR, type TestConsoleProcess } from '../helpers/console.ts';
import { buildWebConsole, signedInVisit, type Visit } from '../helpers/console-pages.ts';
import { chooseRare, offersRare } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { newToken, startTestFleet } from '../helpers/fleet.ts';
import type { Body } from '../helpers/resources.ts';
import { createTestDatabase, redisPrefix, servers, type TestDatabase } from '../helpers/servers.ts';
import { type TcpProxy, tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';

const FLEET = 200;
const HELD = 17;
const HOUR_MS = 3_600_000;
const SLOW_MS = 2000;

let browser: Browser;
let database: TestDatabase;
let sql: pg.Pool;
/** Between the console and PostgreSQL, between browsers and the console, between one node and the console. */
let toDatabase: TcpProxy;
let toConsole: TcpProxy;
let toChannel: TcpProxy;
let origin: string;
let running: TestConsoleProcess;
let start: (more?: { setUp: false }) => Promise<TestConsoleProcess>;
let clusterId: string;
const fleets: Fleet[] = [];

test.before(async () => {
  await buildWebConsole();
  browser = await startBrowser();
  const given = await servers();
  database = await createTestDatabase(given);
  sql = new pg.Pool({ connectionString: database.url, max: 2 });
  const [webPort, channelPort] = [await freePort(), await freePort()];
  toDatabase = await tcpProxy(database.url);
  toConsole = await tcpProxy(`http://127.0.0.1:${webPort}`);
  toChannel = await tcpProxy(`https://127.0.0.1:${channelPort}`);
  origin = `http://localhost:${toConsole.port}`;
  const same = {
    servers: given,
    database: { url: throughProxy(database.url, toDatabase) },
    masterKey: randomBytes(32).toString('base64'),
    redisPrefix: redisPrefix(),
    env: { PORT: String(webPort), NODE_API_PORT: String(channelPort), SVC_PUBLIC_URL: origin },
  };
  start = (more) => startTestConsoleProcess({ ...same, ...more });
  running = await start();
  clusterId = (await api('GET', '/clusters')).items[0].id;
});

test.after.always(async () => {
  await browser?.close();
  for (const fleet of fleets) await fleet.stop();
  await running?.stop();
  for (const proxy of [toDatabase, toConsole, toChannel]) await proxy?.close();
  await sql?.end();
  await database?.drop();
});

test.afterEach.always('what one story broke is whole for the next', () => {
  for (const proxy of [toDatabase, toChannel]) proxy.restore();
  toConsole.delay(0);
});

const api = (method: string, path: string, body?: unknown): Promise<Body> => running.client.api(method, path, body);

const operatorVisit = (path: string): Promise<Visit> => signedInVisit(browser, origin, path);

let sites = 0;
async function newSite(): Promise<Body> {
  const domain = `fault-${++sites}.example.com`;
  return (await api('POST', '/sites', { clusterId, domains: [domain], origins: [{ address: '93.184.216.34' }] })).site;
}
/** Ends what browsers are signed in with. */
const endSessions = () => sql.query("delete from session where user_agent like '%Chrome%'");
const nameField = (page: Page) => page.getByLabel('Name', { exact: true });
const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true });
const tracker = (page: Page) => page.getByRole('complementary', { name: 'Latest changes' }).locator('.svc-badge');
/** How often something was done to a target. */
async function done(action: string, targetId: string): Promise<number> {
  const { items } = await api('GET', `/audit-logs?action=${action}&pageSize=100`);
  return items.filter((entry: Body) => entry.targetId === targetId || entry.target?.id === targetId).length;
}

test.serial(
  'while the database is away a save says so with the request, and is made again from where it stands',
  async (t) => {
    const site = await newSite();
    const visitor = await operatorVisit(`/sites/${site.id}/settings`);
    const { page } = visitor;
    await nameField(page).fill('Typed while it was away');
    toDatabase.cut();
    await save(page).click();
    const form = page.locator('form.settings');
    const note = form.getByRole('alert');
    await note.waitFor();
    const id = await note.locator('code').nth(1).textContent();
    t.true(running.log().includes(id!), 'the request is found in the log by its id');
    t.is(await nameField(page).inputValue(), 'Typed while it was away');
    toDatabase.restore();
    // The console connects again after a moment; until then a try may fail as the first one did.
    await eventually(async () => {
      const again = note.getByRole('button', { name: 'Try again' });
      if (await again.isVisible()) await again.click();
      return (await api('GET', `/sites/${site.id}`)).name === 'Typed while it was away';
    });
    await note.waitFor({ state: 'hidden' });
    t.is(await done('site.update', site.id), 1);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('a console that is killed and started again while a page is open: nothing typed is lost', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await nameField(page).fill('Typed before the end');
  await running.kill();
  await save(page).click();
  const note = page.locator('form.settings').getByRole('alert');
  await note.getByText('The console cannot be reached.').waitFor();
  const { client } = running;
  running = { ...(await start({ setUp: false })), client };
  await note.getByRole('button', { name: 'Try again' }).click();
  await eventually(async () => (await api('GET', `/sites/${site.id}`)).name === 'Typed before the end');
  await note.waitFor({ state: 'hidden' });
  t.is(await done('site.update', site.id), 1);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'a session that ends in the middle of a dialog is renewed over it, and what was typed is sent',
  async (t) => {
    const visitor = await operatorVisit('/sites');
    const { page } = visitor;
    await page.getByRole('button', { name: 'New site' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'New site' });
    await dialog.getByLabel('Domains').fill('renewed.example.com');
    await dialog.getByLabel('Origin', { exact: true }).fill('93.184.216.34');
    await endSessions();
    await dialog.getByRole('button', { name: 'Create site' }).click();
    const renewal = page.getByRole('dialog', { name: 'Your session has ended' });
    await renewal.getByLabel('Password', { exact: true }).fill('not the password');
    await page.keyboard.press('Enter');
    await renewal.getByText('The email address or password is wrong.').waitFor();
    await renewal.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'renewed.example.com', level: 1 }).waitFor();
    t.is((await api('GET', '/sites?search=renewed.example.com')).total, 1);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('a session that ends on the account page is renewed there too', async (t) => {
  const visitor = await operatorVisit('/account');
  const { page } = visitor;
  const form = page.locator('form').filter({ has: page.getByLabel('New password', { exact: true }) });
  await form.getByLabel('Current password', { exact: true }).fill('not the password');
  await form.getByLabel('New password', { exact: true }).fill('another correct horse');
  await endSessions();
  await form.getByRole('button', { name: 'Change password' }).click();
  const renewal = page.getByRole('dialog', { name: 'Your session has ended' });
  await renewal.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
  await page.keyboard.press('Enter');
  await form.getByText('The password is wrong.').waitFor();
  t.is(await form.getByLabel('Current password', { exact: true }).getAttribute('aria-invalid'), 'true');
  t.is(await form.getByLabel('New password', { exact: true }).inputValue(), 'another correct horse');
  await form.getByLabel('New password', { exact: true }).fill('');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a slow console shows that it works, and does once what was asked many times', async (t) => {
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('button', { name: 'New site' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'New site' });
  await dialog.getByLabel('Domains').fill('slow.example.com');
  await dialog.getByLabel('Origin', { exact: true }).fill('93.184.216.34');
  toConsole.delay(SLOW_MS);
  const create = dialog.getByRole('button', { name: 'Create site' });
  await create.click();
  await dialog.locator('button.is-loading').waitFor();
  await create.click({ force: true });
  await dialog.getByLabel('Origin', { exact: true }).press('Enter');
  await page.evaluate(`document.querySelector('[role=dialog] form').requestSubmit()`);
  await page.keyboard.press('Escape');
  await dialog.locator('.el-dialog__headerbtn').click();
  t.true(await dialog.isVisible(), 'nothing closes it while it is sent');
  t.true(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled());
  await page.getByRole('heading', { name: 'slow.example.com', level: 1 }).waitFor();
  toConsole.delay(0);
  const { items } = await api('GET', '/sites?search=slow.example.com');
  t.is(items.length, 1);
  t.is(await done('site.create', items[0].id), 1);

  toConsole.delay(SLOW_MS);
  await chooseRare(page, 'Disable');
  const question = page.getByRole('dialog');
  const disable = question.getByRole('button', { name: 'Disable' });
  await disable.click();
  await question.locator('button.is-loading').waitFor();
  await disable.click({ force: true });
  await page.keyboard.press('Escape');
  t.true(await question.isVisible());
  await offersRare(page, 'Enable');
  toConsole.delay(0);
  const changes = (await done('site.disable', items[0].id)) + (await done('site.enable', items[0].id));
  t.is(changes, 1);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('what cannot be deleted says what stands against it', async (t) => {
  const { items } = await api('GET', `/clusters`);
  const cluster = items.find((one: Body) => one.id === clusterId);
  const visitor = await operatorVisit(`/clusters/${clusterId}/overview`);
  const { page } = visitor;
  await page.getByRole('button', { name: 'Delete the cluster' }).click();
  const dialog = page.getByRole('dialog');
  const confirm = dialog.getByRole('button', { name: 'Delete the cluster' });
  for (const typed of ['', cluster.name.toUpperCase(), `${cluster.name}x`, '<b>🎉 مرحبا']) {
    await dialog.getByRole('textbox').first().fill(typed);
    t.true(await confirm.isDisabled(), `after “${typed}”`);
  }
  await dialog.getByRole('textbox').first().fill(cluster.name);
  await confirm.click();
  await dialog.getByText(`${cluster.siteCount} sites`).last().waitFor();
  t.regex((await dialog.getByRole('alert').textContent())!, /The cluster still has \d+ nodes and \d+ sites/);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

for (const hours of [-1, 1]) {
  test.serial(
    `a browser whose clock is an hour ${hours < 0 ? 'behind' : 'ahead'}: ages and ends are told by the console’s`,
    async (t) => {
      const cidr = `198.51.100.${20 + hours}`;
      await api('POST', '/bans', { scope: 'platform', cidr, reason: 'attack', durationSeconds: 1800 });
      const visitor = await operatorVisit('/account');
      const { page } = visitor;
      await page.clock.setSystemTime(Date.now() + hours * HOUR_MS);
      await page.goto('/bans');
      const row = page.getByRole('row').filter({ hasText: cidr });
      await row.getByText(/in (29|30) minutes/).waitFor();
      t.regex((await row.textContent())!, /now|second/);
      await page.goto('/access/keys');
      await page.getByText('first key').waitFor();
      t.is(await page.getByText(/hours? ago|in an? hour|in \d+ (minutes|hours)/).count(), 0);
      t.deepEqual(visitor.faults(), []);
      await visitor.close();
    },
  );
}

test.serial('a node that comes and goes: the tracker counts it once it is there, and neither flickers', async (t) => {
  const steady = await startTestFleet(running, clusterId, 2);
  fleets.push(steady);
  const flapping = await startTestFleet(running, clusterId, 1, {
    serverUrl: `https://localhost:${toChannel.port}`,
    reconnectMs: 50,
  });
  fleets.push(flapping);
  const [node] = flapping.nodes;
  const { name } = await api('GET', `/nodes/${node!.nodeId}`);
  const site = await newSite();
  const watcher = await operatorVisit(`/nodes/${node!.nodeId}`);
  await watcher.page.getByText('Online', { exact: true }).first().waitFor();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await record(page, '.tracker .svc-badge');
  await record(watcher.page, '.page-head .svc-badge');
  node!.holdAcks(true);
  await nameField(page).fill('While a node flaps');
  await save(page).click();
  await tracker(page).getByText(`2 of 3 nodes, waiting for ${name}`).waitFor();
  for (let time = 0; time < 5; time++) {
    const connections = node!.counts.targets;
    toChannel.cut();
    toChannel.restore();
    await eventually(() => node!.counts.targets > connections, { what: 'the node to be back' });
  }
  node!.holdAcks(false);
  await tracker(page).getByText('3 of 3 nodes').waitFor();
  const told = (await recorded(page))
    .map((text) => Number(/(\d) of 3/.exec(text)?.[1] ?? -1))
    .filter((count) => count >= 0);
  t.deepEqual(told, [...told].sort(), 'no node is taken back that was counted');
  t.is(told.at(-1), 3);
  const words = await recorded(watcher.page);
  t.true(words.some((text) => text.includes('Online')));
  t.deepEqual(
    words.filter((text) => text.includes('Offline')),
    [],
  );

  // Silent for longer than a node may be: said on its page, and nobody waits for it.
  toChannel.cut();
  // Again while one waits: its last word may still be on its way into the database.
  const silence = () =>
    sql.query("update node_state set last_seen_at = now() - interval '1 minute' where node_id = $1", [node!.nodeId]);
  await silence();
  await watcher.page.getByText('Offline', { exact: true }).first().waitFor();
  await nameField(page).fill('While a node is away');
  await save(page).click();
  await tracker(page).getByText(`2 of 3 nodes, waiting for ${name}`).waitFor();
  await eventually(
    async () => {
      await silence();
      return page.getByText('is offline and gets the change when it reconnects').isVisible();
    },
    { everyMs: 500, what: 'the node to be called offline' },
  );
  toChannel.restore();
  await watcher.page.getByText('Online', { exact: true }).first().waitFor();
  t.deepEqual([...visitor.faults(), ...watcher.faults()], []);
  await visitor.close();
  await watcher.close();
});

test.serial('one node of two hundred is late: page and API name it until it is there', async (t) => {
  const id = (await api('POST', '/clusters', { name: 'two-hundred' })).id;
  const fleet = await startTestFleet(running, id, FLEET, {
    full: false,
    newToken: (index) => newToken(running, { clusterId: id, nodeName: `node-${index}` }),
  });
  fleets.push(fleet);
  const domains = ['late.example.com'];
  const { site } = await api('POST', '/sites', { clusterId: id, domains, origins: [{ address: '93.184.216.34' }] });
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  fleet.nodes[HELD]!.holdAcks(true);
  const answer = page.waitForResponse('**/rpc/sites/update');
  await nameField(page).fill('On its way');
  await save(page).click();
  const change = (await (await answer).headerValue('x-svc-change'))!;
  await tracker(page)
    .getByText(`${FLEET - 1} of ${FLEET} nodes, waiting for node-${HELD}`)
    .waitFor({ timeout: 60_000 });
  const late = await api('GET', `/changes/${encodeURIComponent(change)}`);
  t.deepEqual([late.done, late.nodes.applied, late.nodes.total], [false, FLEET - 1, FLEET]);
  t.deepEqual(
    late.waiting.map(({ name }: Body) => name),
    [`node-${HELD}`],
  );
  fleet.nodes[HELD]!.holdAcks(false);
  await tracker(page).getByText(`${FLEET} of ${FLEET} nodes`).waitFor();
  const there = await api('GET', `/changes/${encodeURIComponent(change)}`);
  t.deepEqual([there.done, there.nodes.applied, there.waiting], [true, FLEET, []]);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

/** Keeps every text that the elements of a selector show from now on, in order. */
async function record(page: Page, selector: string): Promise<void> {
  await page.evaluate(`(() => {
    window.recorded = [];
    const look = () => {
      const text = [...document.querySelectorAll(${JSON.stringify(selector)})].map((one) => one.textContent.trim()).join(' | ');
      if (window.recorded.at(-1) !== text) window.recorded.push(text);
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
    look();
  })()`);
}
const recorded = (page: Page): Promise<string[]> => page.evaluate('window.recorded');
