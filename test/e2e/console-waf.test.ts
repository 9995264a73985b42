// The WAF in the Web UI: switched on where nodes can, a preset, from an event to an exclusion and back, and from a day of
// detecting to blocking.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { layoutFaults, screenshot, signedInVisit, startBrowsedConsole } from '../helpers/console-pages.ts';
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
  node = await ReportingNode.enroll(console, clusterId, ['modsecurity-v1', 'waf-exclusions-v1', 'rule-log-v1']);
  await node.beat();
  const oldClusterId = await api.cluster('old');
  oldSiteId = (await api.site(oldClusterId, 'old.example')).id;
  await (await ReportingNode.enroll(console, oldClusterId, ['bans-v1'])).beat();
});

test.after.always(async () => {
  await browser?.close();
  await console?.stop();
});

let told = 0;
/** A request as a node tells of it. */
const attack = (more: Body = {}): Body => ({
  id: `waf-${++told}`,
  siteId,
  kind: SecurityEventKind.WAF_MATCHED,
  occurredAtMs: BigInt(Date.now() - HOUR_MS / 2),
  waf: {
    requestId: `told-${told}`,
    method: 'POST',
    path: '/editor',
    address: '192.0.2.7',
    rules: [942_100],
    score: 5,
    threshold: 5,
    blocked: false,
    matches: [{ rule: 942_100, part: 'argument', name: 'content' }],
    ...more,
  },
});
const report = (events: readonly Body[]) => node.connection.call('reportSecurity', { events } as never);

const settings = (id = siteId): Promise<Body> => api.ok('GET', `/sites/${id}/waf`);
const becomes = (check: (saved: Body) => boolean, what: string) =>
  eventually(async () => check(await settings()), { everyMs: 500, what });

test.serial('a site of nodes that cannot inspect is not switched on, and is switched off all the same', async (t) => {
  const visitor = await signedInVisit(browser, console.origin, `/sites/${oldSiteId}/waf`);
  const { page } = visitor;
  await page.getByText(/^Upgrade required: /).waitFor();
  const block = page.getByRole('radio', { name: /^Block/ });
  t.true(await block.isDisabled());
  await api.ok('PATCH', `/sites/${oldSiteId}/waf`, { mode: 'detect' });
  await eventually(() => page.getByRole('radio', { name: /^Detect/ }).isChecked(), { what: 'the page shows the mode' });
  await page.getByText(/^Upgrade required: /).waitFor({ state: 'detached' });
  t.false(await block.isDisabled());
  await page.getByRole('radio', { name: /^Off/ }).check();
  await saveButton(page).click();
  await page.getByText(/^Upgrade required: /).waitFor();
  await eventually(async () => (await settings(oldSiteId)).mode === 'off', { what: 'the mode is saved' });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a mode and a preset are saved, and a rule is found by its text', async (t) => {
  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf`);
  const { page } = visitor;
  await page.getByRole('radio', { name: /^Detect/ }).check();
  await page.getByRole('radio', { name: /^Strict/ }).check();
  t.is(await page.getByLabel('Threshold', { exact: true }).inputValue(), '5');
  await page.getByText('Rule families: 0 excluded').click();
  await page.getByRole('checkbox', { name: /^933 · PHP code/ }).check();
  await saveButton(page).click();
  await page.getByRole('heading', { name: 'Before you block' }).waitFor();
  t.like(await settings(), { mode: 'detect', paranoiaLevel: 2, requestBodyLimit: 1_048_576, excludedFamilies: [933] });

  await page.getByRole('button', { name: 'Find a rule', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Rules' });
  await dialog.getByLabel('ID, text or tag').fill('libinjection sql');
  await dialog.getByRole('button', { name: 'Exclude 942100', exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'from an event its match is excluded in a dialog that says what that silences, and taken back',
  async (t) => {
    await report([
      attack({ requestId: 'request-1', matches: [{ rule: 942_100, part: 'argument', name: 'items.3.text' }] }),
    ]);
    const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf-events?rule=942100`);
    const { page } = visitor;
    await page.getByRole('button', { name: 'Open POST /editor', exact: true }).click();
    const event = page.getByRole('dialog', { name: 'Request that matched rules' });
    await event.getByText('In the argument “items.3.text”', { exact: true }).waitFor();
    await event.getByRole('button', { name: 'Exclude 942100: In the argument “items.3.text”', exact: true }).click();

    const exclude = page.getByRole('dialog', { name: 'Exclude a false positive' });
    await exclude.getByText('Would have suppressed 1 of one event of the last 7 days.').waitFor();
    t.is(await exclude.getByLabel('Name', { exact: true }).inputValue(), 'items.*.text');
    await exclude.getByLabel('Path', { exact: true }).fill('/elsewhere');
    await exclude.getByText('Would have suppressed 0 of one event of the last 7 days.').waitFor();
    await exclude.getByLabel('Path', { exact: true }).fill('/edit');
    await exclude.getByRole('switch', { name: 'Include all paths with this prefix' }).press('Space');
    await exclude.getByText('Would have suppressed 1 of one event of the last 7 days.').waitFor();
    await exclude.getByRole('button', { name: 'Exclude', exact: true }).click();
    await page
      .getByText(/^Excluded: 942100 does not inspect the argument “items\.\*\.text” on paths that start/)
      .waitFor();
    t.like((await settings()).exclusions[0], {
      ruleId: 942_100,
      path: '/edit',
      pathPrefix: true,
      name: 'items.*.text',
    });

    await page.locator('#main').getByRole('button', { name: 'Undo', exact: true }).click();
    await becomes(({ exclusions }) => exclusions.length === 0, 'no exclusion');
    t.is((await settings()).paranoiaLevel, 2);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('all matches of an event are excluded at once, and undone', async (t) => {
  const places = [
    { rule: 942_100, part: 'argument', name: 'items.3.text', points: 5 },
    { rule: 941_110, part: 'header', name: 'X-Note', points: 15 },
  ];
  await report([
    attack({
      requestId: 'many',
      path: '/save',
      rules: [942_100, 941_110],
      score: 25,
      rulesSeen: 2,
      matchesSeen: 3,
      matches: places,
    }),
  ]);
  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf-events?request=many`);
  const { page } = visitor;
  await page.getByText('Script injection (XSS) in the header “X-Note”. Also: SQL injection').waitFor();
  await page.getByRole('button', { name: 'Open POST /save', exact: true }).click();
  const event = page.getByRole('dialog', { name: 'Request that matched rules' });
  await event.getByText(/^3 matches seen, 2 kept\./).waitFor();
  await event.getByRole('button', { name: 'Exclude 942100: In the argument “items.3.text”', exact: true }).click();
  const exclude = page.getByRole('dialog', { name: 'Exclude a false positive' });
  await exclude.getByText(/would still be blocked by 941110 in the header “X-Note”\.$/).waitFor();
  await exclude.getByRole('button', { name: 'Cancel', exact: true }).click();

  await page.getByRole('button', { name: 'Open POST /save', exact: true }).click();
  await event.getByRole('button', { name: 'Exclude all matches of this event', exact: true }).click();
  const all = page.getByRole('dialog', { name: 'Exclude all matches of this event' });
  await all.getByText('942100 does not inspect the argument “items.*.text” on /save.', { exact: true }).waitFor();
  await all.getByText('941110 does not inspect the header “X-Note” on /save.', { exact: true }).waitFor();
  await all.getByText(/would still be blocked by matches that it did not keep\.$/).waitFor();
  await screenshot(page, 'waf-exclude-all');
  await all.getByRole('button', { name: 'Add 2 exclusions', exact: true }).click();
  await page.getByText('Added 2 exclusions.', { exact: true }).waitFor();
  t.is((await settings()).exclusions.length, 2);
  await page.locator('#main').getByRole('button', { name: 'Undo', exact: true }).click();
  await becomes(({ exclusions }) => exclusions.length === 0, 'no exclusion');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a pack is suggested by events, used, undone, and says what it excludes and why', async (t) => {
  const { id, clusterId } = await api.site((await api.ok('GET', `/sites/${siteId}`)).clusterId, 'packed.example');
  const path = `/sites/${id}/waf`;
  await api.ok('PATCH', path, { mode: 'detect' });
  const told = [
    { path: '/wp-admin/post.php', matches: [{ rule: 942_100, part: 'argument', name: 'content', points: 5 }] },
    { path: '/wp-admin/post.php', matches: [{ rule: 942_100, part: 'argument', name: 'search', points: 5 }] },
    { path: '/.env', rules: [930_130], matches: [{ rule: 930_130, part: 'all', name: '', points: 5 }] },
  ];
  await report(told.map((more) => ({ ...attack({ ...more, rulesSeen: 1, matchesSeen: 1 }), siteId: id })));
  const visitor = await signedInVisit(browser, console.origin, path);
  const { page } = visitor;
  const suggestions = page.getByRole('region', { name: 'Suggested packs' });
  await suggestions.getByText(/^The pack WordPress would have suppressed 1 of 3 events of the last 7 days\./).waitFor();
  t.is(await suggestions.getByRole('button').count(), 1);
  await suggestions.getByRole('button', { name: 'Use the pack WordPress', exact: true }).click();
  await page.getByText('This site uses the pack WordPress.', { exact: true }).waitFor();
  const packs = async (): Promise<string[]> => (await settings(id)).packs;
  t.deepEqual(await packs(), ['wordpress']);
  const box = page.getByRole('group', { name: 'Packs' }).getByRole('checkbox', { name: /^WordPress/ });
  await eventually(() => box.isChecked(), { what: 'the pack is on' });
  await page.locator('#main').getByRole('button', { name: 'Undo', exact: true }).click();
  await eventually(async () => (await packs()).length === 0, { what: 'no pack' });
  await suggestions.waitFor();

  await page
    .getByRole('group', { name: 'Packs' })
    .getByRole('checkbox', { name: /^Grafana/ })
    .check();
  await page.getByRole('button', { name: 'Exclusions for Grafana', exact: true }).click();
  await page.getByText(/^Panels of SQL data sources/).waitFor();
  await page.getByText(/^Arguments not inspected on \/api\/ds\/query: json\.queries\.\*\.rawSql/).waitFor();
  // The node knows exclusions, and not the switch of the exceptions.
  t.is(await page.getByText(/^Upgrade required: /).count(), 0);
  await page.getByRole('switch', { name: 'Apply built-in exceptions' }).press('Space');
  await page.getByText(/^Upgrade required: .* without waf-exceptions-v1 keep the previous settings/).waitFor();
  t.deepEqual(await layoutFaults(page), []);
  await screenshot(page, 'waf-packs');
  await saveButton(page).click();
  await eventually(async () => (await packs()).includes('grafana'), { what: 'the pack is saved' });
  t.false((await settings(id)).builtInExceptions);
  const { revision } = (await api.ok('GET', `/clusters/${clusterId}/revisions`)).items[0];
  const { fields } = (await api.ok('GET', `/clusters/${clusterId}/revisions/${revision}/diff`)).items[0];
  t.deepEqual(fields, [
    { path: 'builtInExceptions', from: true, to: false },
    { path: 'packs', from: [], to: ['grafana'] },
  ]);
  for (const [language, theme, width] of [
    ['zh-CN', 'dark', 1440],
    ['zh-CN', 'light', 375],
  ] as const) {
    const other = await signedInVisit(browser, console.origin, path, { language, theme, width });
    await other.page.getByRole('button', { name: 'Grafana 的排除项', exact: true }).click();
    await other.page.getByText(/^SQL 数据源的面板用 rawSql 发送查询/).waitFor();
    t.deepEqual(await layoutFaults(other.page), [], `${language} ${width}`);
    await screenshot(other.page, `waf-packs-${language}-${width}`);
    await other.close();
  }
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const shownEvents = (page: Page) => page.getByRole('button', { name: /^Open (GET|POST) / });
const showsEvents = (page: Page, count: number, what: string) =>
  eventually(async () => (await shownEvents(page).count()) === count, { what });

test.serial('events are found by result, rule, path, client and request', async (t) => {
  await report([
    attack({
      requestId: 'stopped',
      path: '/login',
      rules: [941_100],
      blocked: true,
      address: '2001:db8::7',
      matches: [],
    }),
    ...['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.3', '192.0.2.3'].map((address) => attack({ address })),
  ]);
  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/security`);
  const { page } = visitor;
  await page.getByRole('link', { name: 'Show WAF events', exact: true }).click();
  await showsEvents(page, 8, 'all events');
  await page.getByRole('combobox', { name: 'Result', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'Blocked', exact: true }).click();
  await showsEvents(page, 1, 'what was blocked');
  await page.getByRole('button', { name: 'Open POST /login', exact: true }).waitFor();
  await page.getByRole('combobox', { name: 'Result', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'Not blocked', exact: true }).click();
  await showsEvents(page, 7, 'what went on');
  await page.goto(`/sites/${siteId}/waf-events`);
  for (const [label, value, count] of [
    ['Rule ID', '941100', 1],
    ['Path starts with', '/edit', 6],
    ['Address', '192.0.2.3', 3],
    ['Address', '192.0.2.0/30', 5],
    ['Request ID', 'stopped', 1],
  ] as const) {
    const field = page.getByRole('searchbox', { name: label, exact: true });
    await field.fill(value);
    await showsEvents(page, count, `${label} ${value}`);
    await field.fill('');
    await showsEvents(page, 8, 'all events again');
  }
  await page.getByRole('searchbox', { name: 'Request ID', exact: true }).fill('nobody');
  await page.locator('main').getByText(/^No /).first().waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('after a day of detecting what looks false is excluded, and the rest is blocked', async (t) => {
  const sql = api.sql;
  await sql('site_waf')
    .where({ site_id: siteId })
    .update({ mode_since: new Date(Date.now() - 25 * HOUR_MS) });
  const minute = BigInt(Math.floor((Date.now() - HOUR_MS) / 60_000) * 60);
  const counts = [{ name: 'waf.attack', count: 40n }];
  const rules = [{ ruleId: '942100', platform: false, event: RuleEvent.WAF_MATCHED, count: 40n }];
  await node.connection.call('reportStats', {
    sequence: 1n,
    minutes: [{ siteId, minute, requests: 1000n, counts, rules }],
  } as never);
  // As the console writes it of itself.
  await sql('security_event').insert({
    occurred_at: new Date(),
    site_id: siteId,
    kind: 'waf_share',
    level: 0,
    previous_level: 0,
    metric: 'waf_share',
    observed: 31.25,
    threshold: 7,
    top_ips: '[]',
    top_paths: '[]',
  });

  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/security`);
  const { page } = visitor;
  const events = page.getByRole('table', { name: 'Events' });
  await events.getByText('Share of attacks in requests, %: 31.3, limit 7').waitFor();
  t.is(await events.getByText('Deleted node').count(), 0);

  await page.goto(`/sites/${siteId}/waf`);
  const top = page.getByRole('table', { name: 'Top rules' });
  await top.getByText('SQL Injection Attack Detected via libinjection').waitFor();
  await top.getByText(/^Query fragments/).waitFor();
  const guidance = page.getByRole('region', { name: 'Before you block' });
  await guidance.getByText('In the last 24 hours, block mode would have stopped 40 of 1,000 requests.').waitFor();
  await guidance.getByText('5 requests from 3 visitors').waitFor();
  await guidance.getByRole('button', { name: 'Exclude 942100: In the argument “content”', exact: true }).click();
  const exclude = page.getByRole('dialog', { name: 'Exclude a false positive' });
  await exclude.getByText('Would have suppressed 5 of 8 events of the last 7 days.').waitFor();
  await exclude.getByRole('button', { name: 'Exclude', exact: true }).click();
  await page.getByText(/^Excluded: 942100 does not inspect the argument “content” on \/editor/).waitFor();
  t.like((await settings()).exclusions[0], { ruleId: 942_100, path: '/editor', part: 'argument', name: 'content' });
  await page.locator('#main').getByRole('button', { name: 'Undo', exact: true }).click();
  await becomes(({ exclusions }) => exclusions.length === 0, 'no exclusion');
  for (const [language, width] of [
    ['zh-CN', 1440],
    ['zh-CN', 375],
    ['en', 375],
  ] as const) {
    const other = await signedInVisit(browser, console.origin, `/sites/${siteId}/waf`, { language, width });
    await other.page.getByText('942100').first().waitFor();
    t.deepEqual(await layoutFaults(other.page), [], `${language} ${width}`);
    await screenshot(other.page, `waf-${language}-${width}`);
    await other.page.goto(`/sites/${siteId}/waf-events`);
    await other.page.getByText('/login').first().waitFor();
    t.deepEqual(await layoutFaults(other.page), [], `events ${language} ${width}`);
    await screenshot(other.page, `waf-events-${language}-${width}`);
    await other.close();
  }
  await screenshot(page, 'waf-en-1440');

  await guidance.getByRole('button', { name: 'Switch to block', exact: true }).click();
  const confirm = page.getByRole('dialog', { name: 'Switch the WAF of inspected.example to block?' });
  await confirm.getByText('In the last 24 hours, block mode would have stopped 40 of 1,000 requests.').waitFor();
  await confirm.getByRole('button', { name: 'Switch to block', exact: true }).click();
  await guidance.waitFor({ state: 'detached' });
  t.is((await settings()).mode, 'block');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
