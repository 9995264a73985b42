// Stories of a site that is created and changed, in a real browser over a real console: each change is followed home, and
// people who edit the same form lose nothing.
import test from 'ava';
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
  await second.page.getByLabel('Failures in a row until it is down').fill('7');
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

test.serial('two tabs edit one field: a person chooses, and the other edits of the form survive', async (t) => {
  const site = await stories.newSite();
  const first = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const second = await stories.operatorVisit(`/sites/${site.id}/settings`);
  const mine = 'Mine <script>alert(1)</script> 🎉 العربية';
  await second.page.getByLabel('Name', { exact: true }).fill(mine);
  await second.page.getByLabel('Largest request body').fill('1048576');
  await first.page.getByLabel('Name', { exact: true }).fill('Theirs');
  await saveButton(first.page).click();
  await eventually(async () => (await stories.readSite(site.id)).name === 'Theirs');
  await saveButton(second.page).click();
  const dialog = second.page.getByRole('dialog', { name: 'Somebody else changed the same fields' });
  await dialog.getByText('Theirs').waitFor();
  await dialog.getByText(mine).click();
  await dialog.getByRole('button', { name: 'Save this choice' }).click();
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
