// What happens to a form while its session ends, its answer is slow, fails or does not come, its page's files are gone or
// the clock is wrong: in a real browser nothing typed is lost and nothing is asked twice.
import test from 'ava';
import type { Page, Route } from 'playwright-core';
import { TEST_OPERATOR } from '../helpers/console.ts';
import { answerQuestions } from '../helpers/console-pages.ts';
import { ConsoleStories, saveButton, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';

const stories = new ConsoleStories(3);

test.before(() => stories.start());
test.after.always(() => stories.stop());

test.serial(
  'a session that ends in the middle of a form is renewed over the page, and nothing typed is lost',
  async (t) => {
    const site = await stories.newSite();
    const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
    const { page, context } = visitor;
    await page.getByLabel('Name', { exact: true }).fill('Typed before the end');
    // At the moment of saving: whatever the page asks by itself would open the dialog over the button.
    const endSession = async (route: Route) => {
      await context.request.post('/api/auth/sign-out', { data: {}, headers: { origin: stories.console.origin } });
      await route.continue();
    };
    await page.route('**/rpc/sites/update', endSession, { times: 1 });
    await saveButton(page).click();
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
    await dialog.getByLabel('Password', { exact: true }).fill(TEST_OPERATOR.password);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await eventually(async () => (await stories.readSite(site.id)).name === 'Typed before the end');
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('a page opens although the console did not respond to its first requests', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit('/account');
  const { page } = visitor;
  const answers = [
    (route: Route) => route.abort('connectionreset'),
    (route: Route) => route.fulfill({ status: 503, json: { code: 'SERVICE_UNAVAILABLE', message: '', data: {} } }),
  ];
  await page.route('**/rpc/account/me', (route) => answers.shift()?.(route) ?? route.continue());
  await page.goto(`/sites/${site.id}/settings`);
  await page.getByLabel('Name', { exact: true }).waitFor();
  t.deepEqual(answers, []);
  await visitor.close();
});

test.serial('a slow API shows progress and is asked once, however often one clicks', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
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
    const site = await stories.newSite();
    const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
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
    const note = page.getByRole('alert').filter({ hasText: 'The console had an internal error.' });
    await note.getByText('request-4711').waitFor();
    t.notRegex((await note.textContent()) ?? '', /secret detail/);
    await note.getByRole('button', { name: 'Try again' }).click();
    await eventually(async () => (await stories.readSite(site.id)).name === 'Second attempt');
    await visitor.close();
  },
);

/** The console is another build, as far as the page can tell. */
const upgrade = async (page: Page) => {
  const index = await (await page.request.get('/')).text();
  const body = index.replace(/(<script type="module"[^>]* src=")[^"]+/, '$1/assets/another.js');
  await page.route(`${stories.console.origin}/`, (route) => route.fulfill({ contentType: 'text/html', body }));
};
const ACCESS_FILES = /\/assets\/(KeysTab|AccessPage)-/;
const gone = (route: Route) => route.fulfill({ status: 404, body: '' });

test.serial(
  'a page whose files went with an upgrade offers to reload, and the form that is open keeps what was typed',
  async (t) => {
    const site = await stories.newSite();
    const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
    const { page } = visitor;
    await page.getByLabel('Name', { exact: true }).fill('Typed before the upgrade');
    await upgrade(page);
    await page.route(ACCESS_FILES, gone);
    await answerQuestions(page, () => true);
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByText('The console was upgraded.').waitFor();
    t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Typed before the upgrade');
    await visitor.close();
  },
);

test.serial('a page without input loads anew after an upgrade, once', async (t) => {
  const visitor = await stories.operatorVisit('/bans');
  const { page } = visitor;
  await page.locator('h1').waitFor();
  await upgrade(page);
  await page.route(ACCESS_FILES, gone, { times: 1 });
  await page.getByRole('link', { name: 'Access' }).click();
  await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
  t.is(await page.getByText('The console was upgraded.').count(), 0);
  // The files of the new build are missing, too: the page says so instead of loading forever.
  await page.goto('/bans');
  await page.locator('h1').waitFor();
  await page.route(ACCESS_FILES, gone);
  await page.getByRole('link', { name: 'Access' }).click();
  await page.getByText('The console was upgraded.').waitFor();
  await visitor.close();
});

test.serial('a page whose files do not come says so, and opens when it is tried again', async (t) => {
  const visitor = await stories.operatorVisit('/bans');
  const { page } = visitor;
  await page.locator('h1').waitFor();
  const index = `${stories.console.origin}/`;
  const away = (route: Route) => route.abort('connectionrefused');
  const message = page.getByText('This page did not load completely.');
  const again = page.getByRole('button', { name: 'Try again' });
  const cut = async () => {
    await page.route(index, away);
    await page.route(ACCESS_FILES, away);
  };
  const restore = async () => {
    await page.unroute(index);
    await page.unroute(ACCESS_FILES);
  };
  const opens = async () => {
    // While the console is away, trying again keeps the page.
    const asked = page.waitForRequest(index);
    await again.click();
    await asked;
    await message.waitFor();
    await restore();
    await again.click();
    await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
    t.is(await message.count(), 0);
  };
  await cut();
  await page.getByRole('link', { name: 'Access' }).click();
  await message.waitFor();
  await opens();
  // The first page of a visit: nothing else is there yet.
  await cut();
  await page.goto('/access/keys');
  await page.getByRole('alert').filter({ has: message }).waitFor();
  await opens();
  // Not even the Web UI itself.
  const script = await page.locator('script[type=module][src]').getAttribute('src');
  await page.route(`**${script}`, away);
  await page.goto('/access/keys');
  await page.getByRole('alert').filter({ hasText: 'The console did not load.' }).waitFor();
  await page.unroute(`**${script}`);
  await again.click();
  await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
  await visitor.close();
});

test.serial('a page whose files were cut off once loads anew by itself', async (t) => {
  const cut = (route: Route) => route.abort('internetdisconnected');
  for (const files of ['page', 'all'] as const) {
    const visitor = await stories.operatorVisit('/bans');
    const { page } = visitor;
    await page.locator('h1').waitFor();
    if (files === 'page') {
      await page.route(ACCESS_FILES, cut, { times: 1 });
      await page.getByRole('link', { name: 'Access' }).click();
    } else {
      const script = await page.locator('script[type=module][src]').getAttribute('src');
      await page.route(`**${script}`, cut, { times: 1 });
      await page.goto('/access/keys');
    }
    await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
    t.is(await page.getByRole('button', { name: 'Try again' }).count(), 0);
    await visitor.close();
  }
});

test.serial('a page that gets an error instead of its data says so, and is tried again', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}`);
  const { page } = visitor;
  const links = async (of: string) =>
    Promise.all((await page.locator(of).all()).map(async (link) => (await link.getAttribute('href'))!.split('?')[0]!));
  // A page without its data has no heading that `follow` could wait for.
  const go = (path: string) =>
    page.evaluate(`document.querySelector('#app').__vue_app__.config.globalProperties.$router.push('${path}')`);
  await page.locator('.parts a').first().waitFor();
  const paths = [...new Set([...(await links('nav a')), ...(await links('.parts a'))])];
  t.true(paths.length > 20, paths.join(' '));
  const busy = (route: Route) =>
    route.fulfill({
      status: 503,
      json: { defined: true, code: 'SERVICE_UNAVAILABLE', status: 503, message: '', data: {} },
    });
  const again = page.getByRole('button', { name: 'Try again' }).first();
  const silent: string[] = [];
  for (const path of paths) {
    await page.route('**/rpc/**', busy);
    await go(path);
    if (
      !(await again.waitFor({ timeout: 3000 }).then(
        () => true,
        () => false,
      ))
    )
      silent.push(path);
    await page.unroute('**/rpc/**');
  }
  t.deepEqual(silent, []);
  // Before it is known who is signed in, no page can be chosen.
  await page.route('**/rpc/account/me', busy);
  await page.goto('/bans');
  await again.waitFor();
  await page.unroute('**/rpc/account/me');
  await again.click();
  await page.getByRole('heading', { name: 'Bans', level: 1 }).waitFor();
  await visitor.close();
});

test.serial('a browser whose clock is hours ahead still tells the time of the console', async (t) => {
  const visitor = await stories.operatorVisit('/access/keys');
  const { page } = visitor;
  await page.clock.setSystemTime(Date.now() + 5 * 3_600_000);
  await page.goto('/setup?step=node');
  await page.getByRole('button', { name: 'Create the command' }).click();
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
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('Typed meanwhile');
  await page.route('**/rpc/**', (route) => route.abort('connectionrefused'));
  await saveButton(page).click();
  const note = page.getByRole('alert').filter({ hasText: 'The console cannot be reached.' });
  await note.first().waitFor();
  t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Typed meanwhile');
  await page.unroute('**/rpc/**');
  await note.first().getByRole('button', { name: 'Try again' }).click();
  await eventually(async () => (await stories.readSite(site.id)).name === 'Typed meanwhile');
  await note.first().waitFor({ state: 'hidden' });
  await visitor.close();
});
