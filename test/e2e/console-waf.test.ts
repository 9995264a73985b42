// The WAF in the Web UI: switched on where nodes can, a preset, and from an event to an exclusion and back.
import test from 'ava';
import type { Browser } from 'playwright-core';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { signedInVisit, startBrowsedConsole } from '../helpers/console-pages.ts';
import { saveButton } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const HOUR_MS = 3_600_000;

let console: TestConsole & { origin: string };
let browser: Browser;
let api: Api;
let node: ReportingNode;
let siteId: string;
let oldSiteId: string;

test.before(async () => {
  [console, browser] = await Promise.all([startBrowsedConsole(), startBrowser()]);
  api = new Api(console);
  const clusterId = await api.cluster('inspecting');
  siteId = (await api.site(clusterId, 'inspected.example')).id;
  node = await ReportingNode.enroll(console, clusterId, ['modsecurity-v1', 'waf-exclusions-v1']);
  await node.beat();
  const oldClusterId = await api.cluster('old');
  oldSiteId = (await api.site(oldClusterId, 'old.example')).id;
  await (await ReportingNode.enroll(console, oldClusterId, ['bans-v1'])).beat();
});

test.after.always(async () => {
  await browser?.close();
  await console?.stop();
});

const settings = (id = siteId): Promise<Body> => api.ok('GET', `/sites/${id}/waf`);
const becomes = (check: (saved: Body) => boolean, what: string) =>
  eventually(async () => check(await settings()), { everyMs: 500, what });

test.serial('a site of nodes that cannot inspect is not switched on, and is switched off all the same', async (t) => {
  const visitor = await signedInVisit(browser, console.origin, `/sites/${oldSiteId}/waf`);
  const { page } = visitor;
  await page.getByText(/^Cannot be switched on: /).waitFor();
  const block = page.getByRole('radio', { name: /^Block/ });
  t.true(await block.isDisabled());
  await api.ok('PATCH', `/sites/${oldSiteId}/waf`, { mode: 'detect' });
  await page.getByText(/^Cannot be switched on: /).waitFor({ state: 'detached' });
  t.false(await block.isDisabled());
  await page.getByRole('radio', { name: /^Off/ }).check();
  await saveButton(page).click();
  await page.getByText(/^Cannot be switched on: /).waitFor();
  t.is((await settings(oldSiteId)).mode, 'off');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a mode and a preset are saved, and a rule is found by its text', async (t) => {
  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf`);
  const { page } = visitor;
  await page.getByRole('radio', { name: /^Detect/ }).check();
  await page.getByRole('radio', { name: /^Strict/ }).check();
  t.is(await page.getByLabel('Threshold', { exact: true }).inputValue(), '5');
  await page.getByText('Families of rules: 0 excluded').click();
  await page.getByRole('checkbox', { name: /^933 · PHP code/ }).check();
  await saveButton(page).click();
  await page.getByRole('heading', { name: 'Before you block' }).waitFor();
  t.like(await settings(), { mode: 'detect', paranoiaLevel: 2, requestBodyLimit: 1_048_576, excludedFamilies: [933] });

  await page.getByRole('button', { name: 'Find a rule', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Rules' });
  await dialog.getByLabel('Id, text or tag').fill('libinjection sql');
  await dialog.getByRole('button', { name: 'Exclude 942100', exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'from an event its match is excluded in a dialog that says what that silences, and taken back',
  async (t) => {
    const waf = {
      requestId: 'request-1',
      method: 'POST',
      path: '/editor',
      address: '192.0.2.7',
      rules: [942_100],
      score: 5,
      threshold: 5,
      blocked: false,
      matches: [{ rule: 942_100, part: 'argument', name: 'items.3.text' }],
    };
    const occurredAtMs = BigInt(Date.now() - HOUR_MS / 2);
    await node.connection.call('reportSecurity', {
      events: [{ id: 'waf-1', siteId, kind: SecurityEventKind.WAF_MATCHED, occurredAtMs, waf }],
    } as never);
    const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf-events?rule=942100`);
    const { page } = visitor;
    await page.getByRole('button', { name: 'Open POST /editor', exact: true }).click();
    const event = page.getByRole('dialog', { name: 'Request in which rules matched' });
    await event.getByText('In the argument “items.3.text”', { exact: true }).waitFor();
    await event.getByRole('button', { name: 'Exclude 942100: In the argument “items.3.text”', exact: true }).click();

    const exclude = page.getByRole('dialog', { name: 'Exclude what was wrong' });
    await exclude.getByText('Would have silenced 1 of one event of the last 7 days.').waitFor();
    t.is(await exclude.getByLabel('Name', { exact: true }).inputValue(), 'items.*.text');
    await exclude.getByLabel('Path', { exact: true }).fill('/elsewhere');
    await exclude.getByText('Would have silenced 0 of one event of the last 7 days.').waitFor();
    await exclude.getByLabel('Path', { exact: true }).fill('/edit');
    await exclude.getByRole('switch', { name: 'Also paths that begin with it' }).press('Space');
    await exclude.getByText('Would have silenced 1 of one event of the last 7 days.').waitFor();
    await exclude.getByRole('button', { name: 'Exclude', exact: true }).click();
    await page
      .getByText(/^Excluded: 942100 does not look at the argument “items\.\*\.text” at paths that begin/)
      .waitFor();
    t.like((await settings()).exclusions[0], {
      ruleId: 942_100,
      path: '/edit',
      pathPrefix: true,
      name: 'items.*.text',
    });

    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await becomes(({ exclusions }) => exclusions.length === 0, 'no exclusion');
    t.is((await settings()).paranoiaLevel, 2);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);
