// Stories of an operator who comes in, in a real browser over a real console: first run, sign-in with each of its ways, what
// belongs to the account, keys for programs.
import test from 'ava';
import { TOTP } from 'otpauth';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { TEST_OPERATOR } from '../helpers/console.ts';
import { startBrowsedConsole, visit } from '../helpers/console-pages.ts';
import { ConsoleStories } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';

const stories = new ConsoleStories(0);

test.before(() => stories.start());
test.after.always(() => stories.stop());

test.serial('first run: from the setup token to a site that every node serves', async (t) => {
  const fresh = await startBrowsedConsole({ setUp: false });
  const visitor = await visit(stories.browser, fresh.origin);
  const { page } = visitor;
  let nodes: Fleet | undefined;
  try {
    await page.goto('/');
    await page.getByRole('heading', { name: 'Create your account' }).waitFor();
    await page.getByRole('button', { name: 'Create account' }).click();
    t.is(await page.getByText('This field is required.').count(), 4);
    await page.getByLabel('Setup token').fill('wrong');
    await page.getByLabel('Your name').fill(TEST_OPERATOR.name);
    await page.getByLabel('Email address').fill(TEST_OPERATOR.email);
    await page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByText('The setup token is wrong.').waitFor();
    await page.getByLabel('Setup token').fill(fresh.setupToken!);
    await page.getByRole('button', { name: 'Create account' }).click();

    await page.getByRole('heading', { name: 'How nodes reach this console' }).waitFor();
    await page.getByRole('button', { name: 'Continue' }).click();

    await page.getByLabel('Node name').fill('edge-1');
    await page.getByRole('button', { name: 'Create the command' }).click();
    const command = await page.getByLabel('Command for the node').inputValue();
    const [, token] = /SVC_TOKEN=(\S+)/.exec(command)!;
    const [, caSha256] = /--ca-sha256 (\S+)/.exec(command)!;
    await page.getByText('Waiting for the node').waitFor();
    nodes = await startTestFleet(fresh, '', 1, { newToken: async () => ({ token: token!, caSha256: caSha256! }) });
    await page.getByText('edge-1 has enrolled').waitFor();
    await page.getByText('The node is online').waitFor();
    await page.getByText('The node applied its configuration').waitFor();
    await page.getByRole('button', { name: 'Continue' }).click();

    await page.getByLabel('Which domain do visitors use?').fill('first.example.com');
    await page.getByLabel('Where is the content now?').fill('https://93.184.216.34:8443');
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
  const elsewhere = new URL(stories.console.origin);
  elsewhere.hostname = '127.0.0.1';
  const visitor = await visit(stories.browser, elsewhere.origin);
  const { page } = visitor;
  await page.goto('/login');
  const link = page.getByRole('status').getByRole('link', { name: stories.console.origin });
  await link.waitFor();
  t.deepEqual(visitor.faults(), []);
  await link.click();
  await page.waitForURL((url) => url.origin === stories.console.origin && url.pathname === '/login');
  await page.getByLabel('Email address').waitFor();
  t.is(await page.getByText('not the public address of the console').count(), 0);
  await visitor.close();
});

test.serial('sign-in: a wrong password, then the right one, and on to the page that was asked for', async (t) => {
  const visitor = await stories.visit();
  const { page } = visitor;
  await page.goto('/sites?search=nothing-is-called-so');
  await page.waitForURL(/\/login\?to=/);
  await page.getByLabel('Email address').fill(TEST_OPERATOR.email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.keyboard.press('Enter');
  await page.getByText('The email address or password is wrong.').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
  await page.keyboard.press('Enter');
  await page.getByText('No entries match these filters.').waitFor();
  t.true(page.url().endsWith('/sites?search=nothing-is-called-so'));
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('account: two-factor by QR secret and code, a sign-in with it, a backup code, and off again', async (t) => {
  const visitor = await stories.operatorVisit('/account');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Switch on' }).click();
  await page.getByLabel('Current password').first().fill(TEST_OPERATOR.password);
  await page.getByRole('button', { name: 'Continue' }).click();
  const secret = await page.getByLabel('Secret for manual entry').inputValue();
  const codes = new TOTP({ secret });
  await page.getByLabel('Authenticator code').fill(codes.generate());
  await page.getByRole('button', { name: 'Confirm' }).click();
  const backup = (await page.getByRole('dialog').getByLabel('Backup codes').inputValue()).split('\n');
  t.is(backup.length, 10);
  const done = page.getByRole('dialog').getByRole('button', { name: 'Done' });
  t.true(await done.isDisabled());
  await page.getByRole('dialog').getByText('I have stored it').click();
  await done.click();

  const other = await stories.visit();
  try {
    await other.page.goto('/login');
    await other.page.getByLabel('Email address').fill(TEST_OPERATOR.email);
    await other.page.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await other.page.getByRole('button', { name: 'Sign in' }).click();
    await other.page.getByLabel('Authenticator code').fill('000000');
    await other.page.getByRole('button', { name: 'Confirm' }).click();
    await other.page.getByText('The code is wrong or already used.').waitFor();
    await other.page.getByRole('button', { name: 'Use a backup code' }).click();
    await other.page.getByLabel('Backup code').fill(backup[0]!);
    await other.page.getByRole('button', { name: 'Confirm' }).click();
    await other.page.waitForURL((url) => url.pathname !== '/login');
    t.deepEqual(other.faults(), []);
  } finally {
    await other.close();
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByLabel('Current password').first().fill(TEST_OPERATOR.password);
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByRole('button', { name: 'Switch on' }).waitFor();
  }
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('account: a passkey is added, signs in without a password, and is deleted', async (t) => {
  const visitor = await stories.operatorVisit('/account');
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
  await page.getByText('No passkeys yet.').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('access keys: shown once, usable, and refused after they were revoked', async (t) => {
  const visitor = await stories.operatorVisit('/access/keys');
  const { page } = visitor;
  await page.getByRole('button', { name: 'New access key' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('story key');
  await page.getByRole('button', { name: 'Create key' }).click();
  const secret = await page.getByRole('textbox', { name: 'Access key story key' }).inputValue();
  const ask = () => fetch(`${stories.console.url}/api/v1/me`, { headers: { 'x-api-key': secret } });
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
