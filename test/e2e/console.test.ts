// Stories of an operator in a real browser over a real console: first run to a site on every node, sign-in with each of
// its ways, a change followed home, two people on one form, a session that ends in the middle of one.
import test from 'ava';
import { TOTP } from 'otpauth';
import type { Browser, Locator, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { signIn, startBrowsedConsole, type Visit, visit } from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';

/** Who `startTestConsole` sets the console up as. */
const TEST_OPERATOR = {
  name: 'Operator',
  email: 'operator@example.com',
  password: 'correct horse battery staple',
};

let browser: Browser;
let console: TestConsole & { origin: string };
let fleet: Fleet;
let clusterId: string;

test.before(async () => {
  browser = await startBrowser();
  console = await startBrowsedConsole();
  const clusters = await console.client.api<{ items: { id: string }[] }>('GET', '/clusters');
  clusterId = clusters.items[0]!.id;
  fleet = await startTestFleet(console, clusterId, 3);
});

test.after.always(async () => {
  await browser?.close();
  await fleet?.stop();
  await console?.stop();
});

/** A signed-in visit that must end without faults. */
async function operatorVisit(path: string): Promise<Visit> {
  const visitor = await visit(browser, console.origin);
  await signIn(visitor.context, console.origin, TEST_OPERATOR);
  await visitor.page.goto(path);
  return visitor;
}

interface SiteAnswer {
  id: string;
  name: string;
  domains: string[];
  originSettings: { tries: number; maxFails: number };
}

let sites = 0;
async function newSite(): Promise<SiteAnswer> {
  const number = ++sites;
  const { site } = await console.client.api<{ site: SiteAnswer }>('POST', '/sites', {
    name: `Story ${number}`,
    domains: [`story-${number}.example.com`],
    origins: [{ address: '93.184.216.34' }],
  });
  return site;
}
const readSite = (id: string) => console.client.api<SiteAnswer>('GET', `/sites/${id}`);
const saveButton = (page: Page) => page.getByRole('button', { name: 'Save', exact: true });
/** The badge of the change tracker; its words are also said to screen readers. */
const tracker = (page: Page) => page.getByRole('complementary', { name: 'What was just saved' }).locator('.svc-badge');

test.serial('first run: from the setup token to a site that every node serves', async (t) => {
  const fresh = await startBrowsedConsole({ setUp: false });
  const visitor = await visit(browser, fresh.origin);
  const { page } = visitor;
  let nodes: Fleet | undefined;
  try {
    await page.goto('/');
    await page.getByRole('heading', { name: 'Create your account' }).waitFor();
    await page.getByRole('button', { name: 'Create account' }).click();
    t.is(await page.getByText('This is needed.').count(), 4);
    await page.getByLabel('Setup token').fill('wrong');
    await page.getByLabel('Your name').fill(TEST_OPERATOR.name);
    await page.getByLabel('E-mail address').fill(TEST_OPERATOR.email);
    await page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByText('This is not the setup token.').waitFor();
    await page.getByLabel('Setup token').fill(fresh.setupToken!);
    await page.getByRole('button', { name: 'Create account' }).click();

    await page.getByRole('heading', { name: 'How nodes reach this console' }).waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();

    await page.getByLabel('Name of the node').fill('edge-1');
    await page.getByRole('button', { name: 'Make the command' }).click();
    const command = await page.getByLabel('Command for the node').inputValue();
    const [, token] = /SVC_TOKEN=(\S+)/.exec(command)!;
    const [, caSha256] = /--ca-sha256 (\S+)/.exec(command)!;
    await page.getByText('Waiting for the node').waitFor();
    nodes = await startTestFleet(fresh, '', 1, { newToken: async () => ({ token: token!, caSha256: caSha256! }) });
    await page.getByText('edge-1 has enrolled').waitFor();
    await page.getByText('It is online').waitFor();
    await page.getByText('It runs its configuration').waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();

    await page.getByLabel('Which domain do visitors use?').fill('first.example.com');
    await page.getByLabel('Where is its content now?').fill('https://93.184.216.34:8443');
    await page.getByRole('button', { name: 'Create site' }).click();
    await page.getByText('Your nodes serve the site.').waitFor();
    await page.getByRole('link', { name: 'Open the site' }).click();
    await page.getByRole('heading', { name: 'first.example.com' }).waitFor();
    t.deepEqual(visitor.faults(), []);
  } finally {
    await visitor.close();
    await nodes?.stop();
    await fresh.stop();
  }
});

test.serial('sign-in: under another address than the public one the page says where the console is', async (t) => {
  const elsewhere = new URL(console.origin);
  elsewhere.hostname = '127.0.0.1';
  const visitor = await visit(browser, elsewhere.origin);
  const { page } = visitor;
  await page.goto('/login');
  const link = page.getByRole('status').getByRole('link', { name: console.origin });
  await link.waitFor();
  t.deepEqual(visitor.faults(), []);
  await link.click();
  await page.waitForURL((url) => url.origin === console.origin && url.pathname === '/login');
  await page.getByLabel('E-mail address').waitFor();
  t.is(await page.getByText('another address than its own').count(), 0);
  await visitor.close();
});

test.serial('sign-in: a wrong password, then the right one, and on to the page that was asked for', async (t) => {
  const visitor = await visit(browser, console.origin);
  const { page } = visitor;
  await page.goto('/sites?search=nothing-is-called-so');
  await page.waitForURL(/\/login\?to=/);
  await page.getByLabel('E-mail address').fill(TEST_OPERATOR.email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.keyboard.press('Enter');
  await page.getByText('E-mail address or password is wrong.').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
  await page.keyboard.press('Enter');
  await page.getByText('Nothing matches these filters.').waitFor();
  t.true(page.url().endsWith('/sites?search=nothing-is-called-so'));
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('account: two-factor by QR secret and code, a sign-in with it, a backup code, and off again', async (t) => {
  const visitor = await operatorVisit('/account');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Switch on' }).click();
  await page.getByLabel('Present password').first().fill(TEST_OPERATOR.password);
  await page.getByRole('button', { name: 'Go on' }).click();
  const secret = await page.getByLabel('Secret for typing in').inputValue();
  const codes = new TOTP({ secret });
  await page.getByLabel('Code of the app').fill(codes.generate());
  await page.getByRole('button', { name: 'Confirm' }).click();
  const backup = (await page.getByRole('dialog').getByLabel('Backup codes').inputValue()).split('\n');
  t.is(backup.length, 10);
  const done = page.getByRole('dialog').getByRole('button', { name: 'Done' });
  t.true(await done.isDisabled());
  await page.getByRole('dialog').getByText('I have stored it').click();
  await done.click();

  const other = await visit(browser, console.origin);
  try {
    await other.page.goto('/login');
    await other.page.getByLabel('E-mail address').fill(TEST_OPERATOR.email);
    await other.page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await other.page.getByRole('button', { name: 'Sign in' }).click();
    await other.page.getByLabel('Code of the app').fill('000000');
    await other.page.getByRole('button', { name: 'Confirm' }).click();
    await other.page.getByText('This code is wrong or was used already.').waitFor();
    await other.page.getByRole('button', { name: 'Use a backup code' }).click();
    await other.page.getByLabel('Backup code').fill(backup[0]!);
    await other.page.getByRole('button', { name: 'Confirm' }).click();
    await other.page.waitForURL((url) => url.pathname !== '/login');
    t.deepEqual(other.faults(), []);
  } finally {
    await other.close();
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByLabel('Present password').first().fill(TEST_OPERATOR.password);
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByRole('button', { name: 'Switch on' }).waitFor();
  }
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('account: a passkey is added, signs in without a password, and is deleted', async (t) => {
  const visitor = await operatorVisit('/account');
  const { page, context } = visitor;
  const devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await page.getByLabel('Name of a new passkey').fill('Laptop <b>🎉</b>');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('Laptop <b>🎉</b>').waitFor();
  await page.getByRole('button', { name: 'Account and preferences' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForURL('**/login');
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await page.waitForURL((url) => url.pathname !== '/login');
  await page.goto('/account');
  await page.getByRole('button', { name: 'Delete the passkey Laptop' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No passkey yet.').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('access keys: shown once, usable, and refused after they were revoked', async (t) => {
  const visitor = await operatorVisit('/access/keys');
  const { page } = visitor;
  await page.getByRole('button', { name: 'New access key' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('story key');
  await page.getByRole('button', { name: 'Create key' }).click();
  const secret = await page.getByRole('textbox', { name: 'Access key story key' }).inputValue();
  const ask = () => fetch(`${console.url}/api/v1/me`, { headers: { 'x-api-key': secret } });
  t.is((await ask()).status, 200);
  await page.getByText('I have stored it').click();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Revoke story key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await eventually(async () => (await ask()).status === 401);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a site is created with two answers, edited, disabled and deleted', async (t) => {
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('button', { name: 'New site' }).first().click();
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByText('Name at least one domain.').waitFor();
  await page.getByLabel('Domains').fill('created.example.com\n*.created.example.com');
  await page.getByLabel('Origin', { exact: true }).fill('127.0.0.1');
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByText('is in a special-purpose range').waitFor();
  await page.getByLabel('Origin', { exact: true }).fill('93.184.216.34:8080');
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByRole('heading', { name: 'created.example.com', level: 1 }).waitFor();
  t.is(await page.title(), 'created.example.com · Overview · Edge Delivery Console');

  await page.getByRole('link', { name: 'Origins' }).click();
  await page.getByLabel('Attempts per request').fill('9');
  await page.getByText('At most 5.').waitFor();
  await page.getByLabel('Attempts per request').fill('2');
  await saveButton(page).click();
  const id = page.url().split('/')[4]!;
  await eventually(async () => (await readSite(id)).originSettings.tries === 2);
  await tracker(page).getByText('3 of 3 nodes').waitFor();

  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('button', { name: 'Enable', exact: true }).waitFor();

  await page.getByRole('navigation', { name: 'Parts of the site' }).getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
  t.true(await confirm.isDisabled());
  await page.getByLabel('Type created.example.com to confirm').fill('created.example.com');
  await confirm.click();
  await page.waitForURL('**/sites');
  await t.throwsAsync(readSite(id), { message: /404/ });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a saved change is followed home: the page names the node it waits for, until it is there', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  const slow = fleet.nodes[1]!;
  const { name } = await console.client.api<{ name: string }>('GET', `/nodes/${slow.nodeId}`);
  slow.holdAcks(true);
  await page.getByLabel('Name', { exact: true }).fill('Followed');
  await saveButton(page).click();
  await tracker(page).getByText(`2 of 3 nodes, waiting for ${name}`).waitFor();
  slow.holdAcks(false);
  await tracker(page).getByText('3 of 3 nodes').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('two tabs edit different fields of one site: both edits survive', async (t) => {
  const site = await newSite();
  const first = await operatorVisit(`/sites/${site.id}/origins`);
  const second = await operatorVisit(`/sites/${site.id}/origins`);
  await first.page.getByLabel('Attempts per request').fill('1');
  await second.page.getByLabel('Failures in a row until it is down').fill('7');
  await saveButton(first.page).click();
  await tracker(first.page).getByText('3 of 3 nodes').waitFor();
  await saveButton(second.page).click();
  await tracker(second.page).getByText('3 of 3 nodes').waitFor();
  const { originSettings } = await readSite(site.id);
  t.deepEqual([originSettings.tries, originSettings.maxFails], [1, 7]);
  t.deepEqual([...first.faults(), ...second.faults()], []);
  await first.close();
  await second.close();
});

test.serial('two tabs edit one field: a person chooses, and the other edits of the form survive', async (t) => {
  const site = await newSite();
  const first = await operatorVisit(`/sites/${site.id}/settings`);
  const second = await operatorVisit(`/sites/${site.id}/settings`);
  const mine = 'Mine <script>alert(1)</script> 🎉 العربية';
  await second.page.getByLabel('Name', { exact: true }).fill(mine);
  await second.page.getByLabel('Domains').fill(`${site.domains[0]}\nmore-${site.domains[0]}`);
  await first.page.getByLabel('Name', { exact: true }).fill('Theirs');
  await saveButton(first.page).click();
  await eventually(async () => (await readSite(site.id)).name === 'Theirs');
  await saveButton(second.page).click();
  const dialog = second.page.getByRole('dialog', { name: 'Somebody else changed the same fields' });
  await dialog.getByText('Theirs').waitFor();
  await dialog.getByText(mine).click();
  await dialog.getByRole('button', { name: 'Save this choice' }).click();
  await eventually(async () => (await readSite(site.id)).name === mine);
  t.deepEqual((await readSite(site.id)).domains, [site.domains[0]!, `more-${site.domains[0]}`]);
  t.deepEqual([...first.faults(), ...second.faults()], []);
  await first.close();
  await second.close();
});

test.serial(
  'a session that ends in the middle of a form is renewed over the page, and nothing typed is lost',
  async (t) => {
    const site = await newSite();
    const visitor = await operatorVisit(`/sites/${site.id}/settings`);
    const { page, context } = visitor;
    await page.getByLabel('Name', { exact: true }).fill('Typed before the end');
    await context.clearCookies();
    await saveButton(page).click();
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await eventually(async () => (await readSite(site.id)).name === 'Typed before the end');
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('leaving a form with changes asks first', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('Half');
  const asked: string[] = [];
  page.on('dialog', async (dialog) => {
    asked.push(dialog.type());
    if (asked.length === 1) await dialog.dismiss();
    else await dialog.accept();
  });
  await page.getByRole('link', { name: 'All sites' }).click();
  t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Half');
  await page.getByRole('link', { name: 'All sites' }).click();
  await page.getByRole('heading', { name: 'Sites', level: 1 }).waitFor();
  t.deepEqual(asked, ['confirm', 'confirm']);
  await visitor.close();
});

test.serial('a slow API shows progress and is asked once, however often one clicks', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  const release = Promise.withResolvers<void>();
  let calls = 0;
  await page.route('**/rpc/sites/update', async (route) => {
    calls++;
    await release.promise;
    await route.continue();
  });
  await page.getByLabel('Name', { exact: true }).fill('Once');
  await saveButton(page).click();
  await page.locator('button.is-loading').waitFor();
  await page.getByRole('button', { name: 'Save' }).click({ force: true });
  await page.evaluate(`document.querySelector('form.settings').requestSubmit()`);
  release.resolve();
  await tracker(page).getByText('3 of 3 nodes').waitFor();
  t.is(calls, 1);
  await visitor.close();
});

test.serial(
  'a failure of the console names the request, and the form is sent again from where it stands',
  async (t) => {
    const site = await newSite();
    const visitor = await operatorVisit(`/sites/${site.id}/settings`);
    const { page } = visitor;
    await page.route(
      '**/rpc/sites/update',
      (route) =>
        route.fulfill({
          status: 500,
          headers: { 'x-request-id': 'request-4711' },
          json: {
            defined: true,
            code: 'INTERNAL_SERVER_ERROR',
            status: 500,
            message: 'secret detail',
            data: { id: 'request-4711' },
          },
        }),
      { times: 1 },
    );
    await page.getByLabel('Name', { exact: true }).fill('Second attempt');
    await saveButton(page).click();
    const note = page.getByRole('alert').filter({ hasText: 'Something failed in the console.' });
    await note.getByText('request-4711').waitFor();
    t.notRegex((await note.textContent()) ?? '', /secret detail/);
    await note.getByRole('button', { name: 'Try again' }).click();
    await eventually(async () => (await readSite(site.id)).name === 'Second attempt');
    await visitor.close();
  },
);

test.serial('search by keyboard: from anywhere to a site in a few keys', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit('/access/keys');
  const { page } = visitor;
  await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'A site, node, address, page or action' }).waitFor();
  await page.keyboard.type(site.domains[0]!);
  await page.getByRole('option', { name: site.name }).waitFor();
  await page.keyboard.press('Enter');
  const heading = page.getByRole('heading', { name: site.name, level: 1 });
  await heading.waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'a change of page moves the focus to its heading, and the language of the page follows the person',
  async (t) => {
    const visitor = await operatorVisit('/access/keys');
    const { page } = visitor;
    await page.getByRole('link', { name: 'Sites' }).click();
    await page.getByRole('heading', { name: 'Sites', level: 1 }).waitFor();
    await eventually(() => page.evaluate<boolean>(`document.activeElement.tagName === 'H1'`));
    await page.getByRole('button', { name: 'Account and preferences' }).click();
    await page.getByRole('menuitem', { name: '简体中文' }).click();
    await page.getByRole('heading', { name: '站点', level: 1 }).waitFor();
    t.is(await page.locator('html').getAttribute('lang'), 'zh-CN');
    await page.reload();
    await page.getByRole('heading', { name: '站点', level: 1 }).waitFor();
    await page.getByRole('button', { name: '新建站点' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: '关闭此对话框' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('pages run our own scripts only, and no text can become one', async (t) => {
  const page = await fetch(`${console.url}/sites`);
  const policy = page.headers.get('content-security-policy') ?? '';
  for (const part of [
    "script-src 'self';",
    "style-src 'self';",
    "require-trusted-types-for 'script'",
    "frame-ancestors 'none'",
  ])
    t.true(policy.includes(part), part);
  t.notRegex(policy, /unsafe|https?:/);
  const html = await page.text();
  t.notRegex(html, /<script>|<script [^>]*>[^<]|<style|\sstyle=|\son[a-z]+=/);
  t.is(page.headers.get('cache-control'), 'no-store');
  const [, script] = /src="(\/assets\/[^"]+)"/.exec(html)!;
  const asset = await fetch(console.url + script);
  t.is(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  const missing = await fetch(`${console.url}/assets/gone-12345678.js`);
  t.deepEqual([missing.status, missing.headers.get('cache-control')], [404, 'no-store']);
});

test.serial(
  'a page whose files went with an upgrade offers to reload, and the form that is open keeps what was typed',
  async (t) => {
    const site = await newSite();
    const visitor = await operatorVisit(`/sites/${site.id}/settings`);
    const { page } = visitor;
    await page.getByLabel('Name', { exact: true }).fill('Typed before the upgrade');
    await page.route('**/assets/KeysTab-*.js', (route) => route.fulfill({ status: 404, body: '' }));
    await page.route('**/assets/AccessPage-*.js', (route) => route.fulfill({ status: 404, body: '' }));
    page.on('dialog', (dialog) => dialog.accept());
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByText('The console was upgraded.').waitFor();
    t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Typed before the upgrade');
    await visitor.close();
  },
);

test.serial('a browser whose clock is hours ahead still tells the time of the console', async (t) => {
  const visitor = await operatorVisit('/access/keys');
  const { page } = visitor;
  await page.clock.setSystemTime(Date.now() + 5 * 3_600_000);
  await page.goto('/setup?step=node');
  await page.getByRole('button', { name: 'Make the command' }).click();
  await page.getByText('Waiting for the node').waitFor();
  await page.waitForResponse('**/rpc/enrollmentTokens/get');
  t.is(await page.getByText('The token has expired.').count(), 0);
  await page.goto('/access/keys');
  await page.getByText('first key').waitFor();
  t.is(await page.getByText(/hours ago/).count(), 0);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('while the console is away a page keeps what it shows, and goes on by itself afterwards', async (t) => {
  const site = await newSite();
  const visitor = await operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('Typed meanwhile');
  await page.route('**/rpc/**', (route) => route.abort('connectionrefused'));
  await saveButton(page).click();
  const note = page.getByRole('alert').filter({ hasText: 'The console cannot be reached.' });
  await note.first().waitFor();
  t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Typed meanwhile');
  await page.unroute('**/rpc/**');
  await note.first().getByRole('button', { name: 'Try again' }).click();
  await eventually(async () => (await readSite(site.id)).name === 'Typed meanwhile');
  await note.first().waitFor({ state: 'hidden' });
  await visitor.close();
});

test.serial('by keyboard alone: a dialog takes the focus, keeps it, and gives it back', async (t) => {
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  const open = page.getByRole('button', { name: 'New site' }).first();
  await open.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'New site' });
  await dialog.getByLabel('Domains').waitFor();
  const inside = () => page.evaluate<boolean>(`document.activeElement.closest('[role=dialog]') !== null`);
  await eventually(inside, { what: 'the focus in the dialog' });
  for (let presses = 0; presses < 15; presses++) {
    await page.keyboard.press('Tab');
    t.true(await inside(), `after ${presses + 1} times Tab`);
  }
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()');
  await eventually(async () => (await focused()) === 'New site', { what: 'the focus on what opened it' });
  t.false(page.url().includes('new=1'));
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.first().waitFor();
  for (let presses = 0; presses < 200; presses++) {
    if (await target.first().evaluate((element) => element === element.ownerDocument.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab never reaches ${target}`);
}
async function typeInto(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.type(text);
}
async function enter(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

test.serial('by keyboard alone: sign in, a site, Under Attack, a ban, and it is lifted', async (t) => {
  const visitor = await visit(browser, console.origin);
  const { page } = visitor;
  const dialog = page.getByRole('dialog');
  await page.goto('/login');
  await typeInto(page, page.getByLabel('E-mail address'), TEST_OPERATOR.email);
  await typeInto(page, page.getByLabel('Password', { exact: true }), TEST_OPERATOR.password);
  await page.keyboard.press('Enter');
  await enter(page, page.getByRole('link', { name: 'Sites', exact: true }));
  await page.getByRole('heading', { name: 'Sites', level: 1 }).waitFor();
  await enter(page, page.getByRole('button', { name: 'New site' }));
  await typeInto(page, dialog.getByLabel('Domains'), 'keys.example.com');
  await typeInto(page, dialog.getByLabel('Origin', { exact: true }), '93.184.216.34');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'keys.example.com', level: 1 }).waitFor();

  const tabs = page.getByRole('navigation', { name: 'Parts of the site' });
  await enter(page, tabs.getByRole('link', { name: 'Protection' }));
  await enter(page, page.getByRole('button', { name: 'Switch on' }));
  await dialog.getByText('One domain').waitFor();
  await enter(page, dialog.getByRole('button', { name: 'Switch on' }));
  await page.getByRole('button', { name: 'Switch off' }).waitFor();
  const id = page.url().split('/')[4]!;
  t.true((await console.client.api<{ underAttack: boolean }>('GET', `/sites/${id}/protection`)).underAttack);

  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'A site, node, address, page or action' }).waitFor();
  await page.keyboard.type('Ban an address');
  await page.getByRole('option', { name: 'Ban an address' }).waitFor();
  await page.keyboard.press('Enter');
  await typeInto(page, dialog.getByLabel('Address or range'), '203.0.113.9');
  await page.keyboard.press('Enter');
  await tracker(page).getByText('Enforced: 3 of 3 nodes').waitFor();
  await enter(page, page.getByRole('button', { name: 'Lift the ban of 203.0.113.9/32' }));
  await dialog.getByText('let in again at once').waitFor();
  await enter(page, dialog.getByRole('button', { name: 'Lift', exact: true }));
  await page.getByRole('heading', { name: 'No address is banned' }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
