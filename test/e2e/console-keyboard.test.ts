// The Web UI by keyboard alone, in a real browser over a real console: where the focus is, and a whole story without a
// mouse.
import test from 'ava';
import type { Locator, Page } from 'playwright-core';
import { TEST_OPERATOR } from '../helpers/console.ts';
import { accessibilityFaults, layoutFaults, signedInVisit } from '../helpers/console-pages.ts';
import { ConsoleStories, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';

const stories = new ConsoleStories(3);

test.before(() => stories.start());
test.after.always(() => stories.stop());

test.serial('search by keyboard: from anywhere to a site in a few keys', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit('/access/keys');
  const { page } = visitor;
  await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'A site, node, address, page or action' }).waitFor();
  await page.locator('[role=combobox]:focus').waitFor();
  await page.keyboard.type(site.domains[0]!);
  await page.getByRole('option', { name: site.name }).waitFor();
  await page.keyboard.press('Enter');
  const heading = page.getByRole('heading', { name: site.name, level: 1 });
  await heading.waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('what is typed right after Ctrl+K reaches the search, however slow its code arrives', async (t) => {
  const visitor = await stories.operatorVisit('/account');
  const { page } = visitor;
  const { promise: held, resolve: arrived } = Promise.withResolvers<void>();
  await page.route('**/assets/CommandPalette-*.js', async (route) => {
    await held;
    await route.continue();
  });
  await page.goto('/sites?new=1');
  const domains = page.getByRole('dialog').getByLabel('Domains');
  await page.locator('textarea:focus').waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('dark thx');
  await page.keyboard.press('Backspace');
  t.is(await domains.inputValue(), '');
  arrived();
  const search = page.getByRole('combobox', { name: 'A site, node, address, page or action' });
  await page.locator('[role=combobox]:focus').waitFor();
  await page.keyboard.type('eme');
  t.is(await search.inputValue(), 'dark theme');
  await page.getByRole('option', { name: 'Dark theme', selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('html.dark').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

for (const [typed, option, at] of [
  ['waf', /WAF/, '**/sites/*/waf'],
  ['help', 'Keyboard shortcuts', null],
  ['ban 203.0.113.9', 'Ban 203.0.113.9/32', '**/bans?new=1&cidr=203.0.113.9/32'],
  ['ban no address', null, null],
] as const)
  test.serial(`the palette finds ${typed}`, async (t) => {
    await stories.newSite();
    const visitor = await stories.operatorVisit('/account');
    const { page } = visitor;
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type(typed);
    if (option === null) await page.getByText('No match').waitFor();
    else await page.getByRole('option', { name: option }).first().click();
    if (at !== null) await page.waitForURL(at);
    if (typed === 'help') await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    if (typed.startsWith('ban 2')) t.is(await page.getByLabel('Address or range').inputValue(), '203.0.113.9/32');
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  });

test.serial('a question mark shows the keys, except where somebody types', async (t) => {
  const visitor = await stories.operatorVisit('/sites');
  const { page } = visitor;
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await page.getByLabel('Name or domain', { exact: true }).pressSequentially('?');
  t.is(await page.getByLabel('Name or domain', { exact: true }).inputValue(), '?');
  t.is(await keys.count(), 0);
  await page.getByRole('heading', { level: 1 }).focus();
  await page.keyboard.press('Shift+?');
  await keys.waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await page.keyboard.press('Escape');
  await keys.waitFor({ state: 'detached' });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('F1 and the header open the docs of the page, and a link leads to a heading', async (t) => {
  const visitor = await stories.operatorVisit('/rollouts');
  const { page } = visitor;
  const title = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor();
  await title('Rollouts');
  await page.keyboard.press('F1');
  await page.waitForURL('**/docs/canary');
  await title('Canary releases');
  await page.goBack();
  await title('Rollouts');
  await page.getByRole('link', { name: 'Docs', exact: true }).click();
  await page.waitForURL('**/docs/canary');
  await page.getByRole('link', { name: 'All docs' }).click();
  await title('Documentation');
  await page.getByRole('link', { name: 'Origins', exact: true }).click();
  await title('Origins');
  await page.getByRole('link', { name: 'client addresses' }).first().click();
  await page.waitForURL('**/docs/edge-node#client-addresses');
  const heading = page.getByRole('heading', { name: 'Client addresses' });
  await eventually(() => heading.evaluate((element) => element === element.ownerDocument.activeElement), {
    what: 'the focus on the heading',
  });
  t.true(await heading.evaluate((element) => element.getBoundingClientRect().top < 200));
  for (const width of [1280, 375]) {
    await page.setViewportSize({ width, height: 900 });
    t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], [], `${width}`);
  }
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('dialogs and sign-in begin in their first field', async (t) => {
  const visitor = await stories.operatorVisit('/account');
  const { page } = visitor;
  const focused = (label: string) =>
    eventually(
      () => page.getByLabel(label, { exact: true }).evaluate((field) => field === field.ownerDocument.activeElement),
      {
        what: `the focus in ${label}`,
      },
    );
  for (const [path, label] of [
    ['/sites?new=1', 'Domains'],
    ['/bans?new=1', 'Address or range'],
    ['/clusters?new=1', 'Name'],
  ] as const) {
    await page.goto(path);
    await focused(label);
  }
  await page.goto('/account');
  await page.getByRole('button', { name: 'Account and preferences' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await focused('Email address');
  await page.goto('/login');
  await focused('Email address');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'a change of page moves the focus to its heading, and the language of the page follows the person',
  async (t) => {
    const visitor = await stories.operatorVisit('/access/keys');
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

test.serial('by keyboard alone: a dialog takes the focus, keeps it, and gives it back', async (t) => {
  const visitor = await stories.operatorVisit('/sites');
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
  const visitor = await stories.visit();
  const { page } = visitor;
  const dialog = page.getByRole('dialog');
  await page.goto('/login');
  await typeInto(page, page.getByLabel('Email address'), TEST_OPERATOR.email);
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
  await enter(page, tabs.getByRole('link', { name: 'Challenges' }));
  await enter(page, page.getByRole('button', { name: 'Switch on' }));
  await dialog.getByText('One domain').waitFor();
  await enter(page, dialog.getByRole('button', { name: 'Switch on' }));
  await page.getByRole('button', { name: 'Switch off' }).waitFor();
  const id = page.url().split('/')[4]!;
  t.true((await stories.console.client.api<{ underAttack: boolean }>('GET', `/sites/${id}/protection`)).underAttack);

  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'A site, node, address, page or action' }).waitFor();
  await page.locator('[role=combobox]:focus').waitFor();
  await page.keyboard.type('Ban an address');
  await page.getByRole('option', { name: 'Ban an address' }).waitFor();
  await page.keyboard.press('Enter');
  await typeInto(page, dialog.getByLabel('Address or range'), '203.0.113.9');
  await page.keyboard.press('Enter');
  await tracker(page).getByText('Enforced: 3 of 3 nodes').waitFor();
  await enter(page, page.getByRole('button', { name: 'Lift the ban of 203.0.113.9/32' }));
  await dialog.getByText('get access again at once').waitFor();
  await enter(page, dialog.getByRole('button', { name: 'Lift', exact: true }));
  await page.getByRole('heading', { name: 'No banned addresses' }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const DOSSIER_WORDS = {
  en: {
    search: 'Open 203.0.113.77',
    banned: '203.0.113.77/32 is banned globally',
    nothing: 'No ban, list or challenge applies.',
    lift: 'Lift the ban of 203.0.113.77/32',
    confirm: 'Lift',
    none: 'No active bans.',
  },
  'zh-CN': {
    search: '查看 203.0.113.77',
    banned: '203.0.113.77/32 已全局封禁',
    nothing: '没有适用的封禁、名单或质询。',
    lift: '解除对 203.0.113.77/32 的封禁',
    confirm: '解除',
    none: '没有生效中的封禁。',
  },
} as const;

for (const language of ['en', 'zh-CN'] as const) {
  test.serial(`by keyboard alone: what is known of an address, and its ban is lifted: ${language}`, async (t) => {
    const words = DOSSIER_WORDS[language];
    const { client, origin } = stories.console;
    const visitor = await signedInVisit(stories.browser, origin, '/account', { language });
    const { page } = visitor;
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('[role=combobox]:focus').waitFor();
    await page.keyboard.type('203.0.113.77');
    // It stands first, so Enter opens it.
    await page.getByRole('option', { name: words.search, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: '203.0.113.77', level: 1 }).waitFor();
    await page.getByText(words.nothing).waitFor();
    // What others do is seen without asking again.
    await client.api('POST', '/bans', {
      scope: 'platform',
      cidr: '203.0.113.77',
      reason: 'attack',
      durationSeconds: 600,
    });
    await page.getByText(words.banned).waitFor();
    await page.reload();
    await page.getByText(words.banned).waitFor();
    await enter(page, page.getByRole('button', { name: words.lift }));
    await enter(page, page.getByRole('dialog').getByRole('button', { name: words.confirm, exact: true }));
    await page.getByText(words.none).waitFor();
    await page.getByText(words.nothing).waitFor();
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  });
}
