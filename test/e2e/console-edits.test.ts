// Stories of a site that is created and changed, in a real browser over a real console: each change is followed home, and
// people who edit the same form lose nothing.
import test from 'ava';
import { accessibilityFaults, layoutFaults, screenshot } from '../helpers/console-pages.ts';
import { ConsoleStories, chooseRare, offersRare, saveButton, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';

const stories = new ConsoleStories(3);

test.before(() => stories.start());
test.after.always(() => stories.stop());

test.serial('a site is created with two answers, edited, disabled and deleted', async (t) => {
  const visitor = await stories.operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('button', { name: 'New site' }).first().click();
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByText('Enter at least one domain.').waitFor();
  await page.getByLabel('Domains').fill('created.example.com\n*.created.example.com');
  await page.getByLabel('Origin', { exact: true }).fill('http://127.0.0.1:9');
  await page.getByRole('button', { name: 'Test from the console' }).click();
  await page.getByText('127.0.0.1 is in a special-purpose range (127.0.0.0/8).').waitFor();
  await page.getByRole('button', { name: 'Test from a node' }).click();
  await page
    .getByRole('menuitem', { name: /^Test from / })
    .first()
    .click();
  await page.getByText('Some nodes of the cluster need an upgrade').waitFor();
  await page.getByLabel('Origin', { exact: true }).fill('127.0.0.1');
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByText('is in a special-purpose range').waitFor();
  await page.getByLabel('Origin', { exact: true }).fill('93.184.216.34:8080');
  await page.getByRole('button', { name: 'Create site' }).click();
  await page.getByRole('heading', { name: 'created.example.com', level: 1 }).waitFor();
  t.is(await page.title(), 'created.example.com · Overview · Edge Delivery Console');

  await page.getByRole('link', { name: 'Origins' }).click();
  await page.getByLabel('Attempts per request').fill('9');
  await page.getByText('Must be at most 5.').waitFor();
  await page.getByLabel('Attempts per request').fill('2');
  await saveButton(page).click();
  const id = page.url().split('/')[4]!;
  await eventually(async () => (await stories.readSite(id)).originSettings.tries === 2);
  await tracker(page).getByText('3 of 3 nodes').waitFor();

  await chooseRare(page, 'Disable');
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await offersRare(page, 'Enable');

  await page.getByRole('navigation', { name: 'Parts of the site' }).getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
  t.true(await confirm.isDisabled());
  await page.getByLabel('Type created.example.com to confirm').fill('created.example.com');
  await confirm.click();
  await page.waitForURL('**/sites');
  await t.throwsAsync(stories.readSite(id), { message: /404/ });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a saved change is followed home: the page names the node it waits for, until it is there', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  const slow = stories.fleet.nodes[1]!;
  const { name } = await stories.console.client.api<{ name: string }>('GET', `/nodes/${slow.nodeId}`);
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
  const site = await stories.newSite();
  const first = await stories.operatorVisit(`/sites/${site.id}/origins`);
  const second = await stories.operatorVisit(`/sites/${site.id}/origins`);
  await first.page.getByLabel('Attempts per request').fill('1');
  await second.page.getByLabel('Consecutive failures until down').fill('7');
  await saveButton(first.page).click();
  await tracker(first.page).getByText('3 of 3 nodes').waitFor();
  await saveButton(second.page).click();
  await tracker(second.page).getByText('3 of 3 nodes').waitFor();
  const { originSettings } = await stories.readSite(site.id);
  t.deepEqual([originSettings.tries, originSettings.maxFails], [1, 7]);
  t.deepEqual([...first.faults(), ...second.faults()], []);
  await first.close();
  await second.close();
});

const ACTIVITY = {
  en: {
    open: /^Activity/,
    title: 'Activity',
    underWay: 'In progress',
    done: 'Done',
    nodes: '3 nodes',
    mine: 'Only mine',
    whose: 'User',
    what: 'Changes',
    revision: /^Revision /,
    field: 'Origins 1 › Address',
  },
  'zh-CN': {
    open: /^动态/,
    title: '动态',
    underWay: '进行中',
    done: '已完成',
    nodes: '3 个节点',
    mine: '仅自己',
    whose: '用户',
    what: '更改内容',
    revision: /^版本 /,
    field: '源站 1 › 地址',
  },
} as const;
for (const language of ['en', 'zh-CN'] as const) {
  const words = ACTIVITY[language];
  test.serial(
    `Activity shows saves of others too, who made them, and each node until it has them: ${language}`,
    async (t) => {
      const visitor = await stories.operatorVisit('/sites', { language });
      const { page } = visitor;
      const slow = stories.fleet.nodes[1]!;
      slow.holdAcks(true);
      // Saved by a program: no page follows it.
      const site = await stories.newSite();
      const button = page.getByRole('button', { name: words.open });
      await button.click();
      const drawer = page.getByRole('dialog', { name: words.title });
      const underWay = drawer
        .getByRole('region', { name: words.underWay })
        .getByRole('listitem')
        .filter({ hasText: site.name });
      await underWay.getByText('first key').waitFor();
      await underWay.getByRole('button', { name: words.nodes }).click();
      const { name } = await stories.console.client.api<{ name: string }>('GET', `/nodes/${slow.nodeId}`);
      await underWay.getByRole('listitem').filter({ hasText: name }).locator('.is-blue').waitFor();
      t.deepEqual(await accessibilityFaults(page), []);
      slow.holdAcks(false);
      const done = drawer
        .getByRole('region', { name: words.done })
        .getByRole('listitem')
        .filter({ hasText: site.name })
        .first();
      await done.getByRole('link', { name: site.name }).waitFor();
      await page.keyboard.press('Escape');
      await drawer.waitFor({ state: 'detached' });
      t.true(
        await button.evaluate((element) => element === element.ownerDocument.activeElement),
        'the focus is given back',
      );
      await button.click();
      await done.getByRole('button', { name: words.what }).click();
      await done.getByText(words.field).waitFor();
      await done.getByRole('link', { name: words.revision }).click();
      const revision = page.getByRole('dialog', { name: words.revision });
      await revision.getByRole('link', { name: site.name }).first().waitFor();
      await revision.getByText(words.field).waitFor();
      await page.keyboard.press('Escape');
      await revision.waitFor({ state: 'detached' });
      await button.click();
      await done.getByRole('link', { name: site.name }).click();
      await page.getByRole('heading', { level: 1, name: site.name }).waitFor();
      await drawer.waitFor({ state: 'detached' });
      t.deepEqual(visitor.faults(), []);
      await visitor.close();
    },
  );
}

test.serial('what follows a save covers nothing of the page, and its words do not run together', async (t) => {
  const site = await stories.newSite();
  for (const width of [1440, 1024, 375]) {
    const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`, { width });
    const { page } = visitor;
    const slow = stories.fleet.nodes[1]!;
    slow.holdAcks(true);
    await page.getByLabel('Name', { exact: true }).fill(`Wide ${width}`);
    await saveButton(page).click();
    await page.getByRole('button', { name: 'Activity: 1 change in progress' }).waitFor();
    if (width > 860) {
      const { name } = await stories.console.client.api<{ name: string }>('GET', `/nodes/${slow.nodeId}`);
      const waiting = page
        .getByRole('complementary', { name: 'Latest changes' })
        .getByRole('listitem')
        .filter({ hasText: name });
      await waiting.waitFor();
      t.is((await waiting.textContent())!.trim(), `${name} is applying it`);
      const [box, main] = [(await waiting.boundingBox())!, (await page.getByRole('main').boundingBox())!];
      t.true(box.x + box.width <= main.x);
      await screenshot(page, `saved-${width}`);
      t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
    }
    await page.getByLabel('Name', { exact: true }).fill(`Wider ${width}`);
    slow.holdAcks(false);
    await saveButton(page).click();
    await page.getByRole('button', { name: 'Activity', exact: true }).waitFor();
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  }
});

test.serial('two tabs edit one field: a person chooses, and the other edits of the form survive', async (t) => {
  const site = await stories.newSite();
  const first = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const second = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const mine = 'Mine <script>alert(1)</script> 🎉 العربية';
  await second.page.getByLabel('Name', { exact: true }).fill(mine);
  await second.page.getByLabel('Maximum request body').fill('1048576');
  await first.page.getByLabel('Name', { exact: true }).fill('Theirs');
  await saveButton(first.page).click();
  await eventually(async () => (await stories.readSite(site.id)).name === 'Theirs');
  await saveButton(second.page).click();
  const dialog = second.page.getByRole('dialog', { name: 'Another user changed the same fields' });
  await dialog.getByText('Theirs').waitFor();
  await dialog.getByText(mine).click();
  await dialog.getByRole('button', { name: 'Save these values' }).click();
  await eventually(async () => (await stories.readSite(site.id)).name === mine);
  t.is((await stories.readSite(site.id)).contentSettings.requestBodyLimit, 1_048_576);
  t.deepEqual([...first.faults(), ...second.faults()], []);
  await first.close();
  await second.close();
});

test.serial('leaving a form with changes asks first', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const { page } = visitor;
  await page.getByLabel('Name', { exact: true }).fill('Half');
  const question = page.getByRole('alertdialog', { name: 'Leave this page?' });
  const sites = page.getByRole('heading', { name: 'Sites', level: 1 });
  for (const no of [
    () => page.keyboard.press('Escape'),
    // The answer that loses nothing has the focus.
    () => page.keyboard.press('Enter'),
    () => question.getByRole('button', { name: 'Keep editing' }).click(),
  ]) {
    await page.getByRole('link', { name: 'All sites' }).click();
    await question.waitFor();
    await screenshot(page, 'leave-question');
    t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
    await no();
    await question.waitFor({ state: 'detached' });
    t.is(await page.getByLabel('Name', { exact: true }).inputValue(), 'Half');
    t.false(await sites.isVisible());
  }
  await page.getByRole('link', { name: 'All sites' }).click();
  await question.getByRole('button', { name: 'Leave', exact: true }).click();
  await sites.waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

interface StyledWindow {
  getComputedStyle(element: unknown): { color: string; margin: string };
}

test.serial('the preview of an error page has its styles, runs no script and leads nowhere', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/error-pages`);
  const { page } = visitor;
  const preview = page.frameLocator('iframe');
  await preview.getByRole('heading', { name: 'Not found' }).waitFor();
  await page.getByRole('combobox', { name: 'Language of visitors' }).press('Enter');
  await page.getByRole('option', { name: '简体中文' }).click();
  await preview.getByRole('heading', { name: '未找到' }).waitFor();
  await page.getByRole('combobox', { name: 'Visitors get' }).press('Enter');
  await page.getByRole('option', { name: 'An own page' }).click();
  await page
    .getByLabel('HTML', { exact: true })
    .fill(
      '<style>h1 { color: rgb(1, 2, 3) }</style><h1 style="margin: 7px">{{status}} {{path}}</h1>' +
        '<script>document.body.innerHTML = "ran"</script><img src=x onerror="document.body.innerHTML = \'ran\'">' +
        '<a href="/sites">away</a>',
    );
  const heading = preview.getByRole('heading', { name: '404 /cart' });
  await heading.waitFor();
  const style = await heading.evaluate((element) => {
    const { color, margin } = (globalThis as unknown as StyledWindow).getComputedStyle(element);
    return { color, margin };
  });
  t.deepEqual(style, { color: 'rgb(1, 2, 3)', margin: '7px' });
  await preview.getByRole('link', { name: 'away' }).click();
  t.true(await heading.isVisible());
  await saveButton(page).click();
  const { client } = stories.console;
  const saved = () => client.api<{ pages: unknown[] }>('GET', `/sites/${site.id}/error-pages`);
  await eventually(async () => (await saved()).pages.length === 1);
  t.is(visitor.context.pages().length, 1);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
