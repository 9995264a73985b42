// What happens to a form while its session ends, its answer is slow, fails or does not come, its page's files are gone or
// the clock is wrong: in a real browser nothing typed is lost and nothing is asked twice.
import test from 'ava';
import type { Route } from 'playwright-core';
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

test.serial(
  'a page whose files went with an upgrade offers to reload, and the form that is open keeps what was typed',
  async (t) => {
    const site = await stories.newSite();
    const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
    const { page } = visitor;
    await page.getByLabel('Name', { exact: true }).fill('Typed before the upgrade');
    await page.route('**/assets/KeysTab-*.js', (route) => route.fulfill({ status: 404, body: '' }));
    await page.route('**/assets/AccessPage-*.js', (route) => route.fulfill({ status: 404, body: '' }));
    await answerQuestions(page, () => true);
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByText('The console was upgraded.').waitFor();
    t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Typed before the upgrade');
    await visitor.close();
  },
);

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
