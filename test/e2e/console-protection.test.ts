// Protection in a real browser: Under Attack on and off, strength by presets, what is happening to a site and to all of
// them while nodes report it, and the pages themselves in both themes and widths.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import type { Connection } from '../../bench/fleet/connection.ts';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  follow,
  layoutFaults,
  screenshot,
  settled,
  signedInVisit,
  startBrowsedConsole,
  until,
  type Visit,
  type VisitOptions,
} from '../helpers/console-pages.ts';
import { tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne, startTestFleet } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

const MINUTE = 60_000;

let browser: Browser;
let running: TestConsole & { origin: string };
let fleet: Fleet;
let api: Api;
/** A site of a cluster whose nodes run what they are told. */
let calm: Body;
/** Sites of a cluster whose node reports attacks. */
let attacked: Body;
let quiet: Body;
let reporter: { connection: Connection; name: string; beat: () => Promise<unknown> };

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  const [first] = (await api.ok('GET', '/clusters')).items;
  fleet = await startTestFleet(running, first.id, 2);
  const clusterId = await api.cluster('attacked');
  const site = (cluster: string, name: string) =>
    api.site(cluster, `${name.toLowerCase()}.example.com`, { name, origins: [{ address: '93.184.216.34' }] });
  calm = await site(first.id, 'Calm');
  attacked = await site(clusterId, 'Flooded');
  quiet = await site(clusterId, 'Quiet');
  await api.node(clusterId, 'left-behind', { features: ['bans-v1'] });
  const identity = await enrollOne(running, clusterId, ['bans-v1', 'challenge-v1']);
  const connection = connectAs(running, identity);
  const { name } = await api.ok('GET', `/nodes/${identity.nodeId}`);
  const beat = async () => {
    await connection.call('heartbeat', { info: { features: ['bans-v1', 'challenge-v1'] } });
    await eventually(async () => (await api.ok('GET', `/nodes/${identity.nodeId}`)).online);
  };
  reporter = { connection, name, beat };
});

test.beforeEach('the node that reports is online', () => reporter.beat());

test.after.always(async () => {
  await browser?.close();
  reporter?.connection.destroy();
  await fleet?.stop();
  await running?.stop();
});

/** A signed-in visit that must end without faults. */
const operatorVisit = (path: string, options?: VisitOptions): Promise<Visit> =>
  signedInVisit(browser, running.origin, path, options);

const protectionOf = (site: Body): Promise<Body> => api.ok('GET', `/sites/${site.id}/protection`);

let events = 0;
/** What a node reports of the attacked site: a level, a path, two addresses and a ban. */
async function newReport(): Promise<void> {
  const now = Date.now();
  const event = (minutes: number, more: Body): Body => ({
    id: `story-${events++}`,
    siteId: attacked.id,
    kind: SecurityEventKind.SITE_LEVEL,
    occurredAtMs: BigInt(now - minutes * MINUTE),
    metric: 'site_qps',
    observed: 1500.5,
    threshold: 1000,
    ...more,
  });
  const topIps = [
    { value: '2001:db8:5:6:7::8', count: 900n },
    { value: '203.0.113.7', count: 90n },
  ];
  await reporter.connection.call('reportSecurity', {
    events: [
      event(9, { level: 1, previousLevel: 0, topIps, topPaths: [{ value: '/login?<b>', count: 80n }] }),
      event(6, { level: 2, previousLevel: 1 }),
      event(3, { kind: SecurityEventKind.PATH_LEVEL, path: '/login', level: 4, previousLevel: 3, metric: 'url_qps' }),
      event(2, {
        kind: SecurityEventKind.IP_BANNED,
        address: '203.0.113.7',
        level: 2,
        previousLevel: 2,
        metric: 'ip_qps',
      }),
    ],
    sites: [{ siteId: attacked.id, level: 2, paths: [{ path: '/login', level: 4 }] }],
    hasState: true,
  });
  await reporter.connection.call('reportBans', {
    bans: [
      {
        siteId: attacked.id,
        cidr: '203.0.113.7',
        createdAtMs: BigInt(now),
        expiresAtMs: BigInt(now + 10 * MINUTE),
        reason: 'cc_ip_rate',
        metric: 'ip_qps',
        observed: 120n,
        threshold: 50n,
        windowSeconds: 10,
      },
    ],
  });
}

let reported: Promise<void> | undefined;
const reportAttack = (): Promise<void> => {
  reported ??= newReport();
  return reported;
};

test.serial(
  'Under Attack of a site: the page says what it does, switches it on, follows it home, and off',
  async (t) => {
    const visitor = await operatorVisit(`/sites/${calm.id}/protection`);
    const { page } = visitor;
    const dialog = page.getByRole('dialog');
    await page.getByText('Visitors are not challenged while the level is normal.').waitFor();
    await page.getByRole('button', { name: 'Switch on' }).click();
    await dialog.getByText('Every visitor must pass the challenge below').waitFor();
    await dialog.getByText('One domain').waitFor();
    await dialog.getByText('2 nodes').waitFor();
    // The input is below what it shows.
    await dialog.getByRole('combobox', { name: 'Challenge' }).click({ force: true });
    await page.getByRole('option', { name: 'Proof of work' }).click();
    await dialog.getByRole('button', { name: 'Switch on' }).click();
    await tracker(page).getByText('2 of 2 nodes').waitFor();
    await page.getByText('Every visitor must pass “Proof of work” first').waitFor();
    const on = await protectionOf(calm);
    t.deepEqual([on.underAttack, on.underAttackChallenge], [true, 'pow']);

    await page.getByRole('button', { name: 'Switch off' }).click();
    await dialog.getByText('Visitors are no longer challenged').waitFor();
    await dialog.getByRole('button', { name: 'Switch off' }).click();
    await page.getByText('Visitors are not challenged while the level is normal.').waitFor();
    t.false((await protectionOf(calm)).underAttack);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

/** Waits until the element with these words has the focus. */
const focused = (page: Page, words: string) =>
  until(page, `document.activeElement?.textContent?.trim() === ${JSON.stringify(words)}`);

test.serial('Under Attack by keyboard: the dialog takes the focus and gives it back', async (t) => {
  const visitor = await operatorVisit(`/sites/${calm.id}/protection`);
  const { page } = visitor;
  const dialog = page.getByRole('dialog');
  const release = Promise.withResolvers<void>();
  await page.getByRole('button', { name: 'Switch on' }).focus();
  await page.keyboard.press('Enter');
  await dialog.getByText('One domain').waitFor();
  await until(page, `document.querySelector('[role=dialog]').contains(document.activeElement)`);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await focused(page, 'Switch on');

  // What it touches is looked up: it is asked at once, and answered when that is known.
  await page.route('**/rpc/sites/get', async (route) => {
    await release.promise;
    await route.continue();
  });
  await page.keyboard.press('Enter');
  const confirm = dialog.locator('.el-dialog__footer button').last();
  await dialog.locator('button.is-loading').waitFor();
  release.resolve();
  await dialog.getByText('One domain').waitFor();
  await confirm.focus();
  await page.keyboard.press('Enter');
  await page.getByText('Every visitor must pass “Proof of work” first').waitFor();
  await focused(page, 'Switch off');
  await api.ok('PATCH', `/sites/${calm.id}/protection`, { underAttack: false });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('presets are chosen by keyboard, other values are custom, and only what changed is saved', async (t) => {
  const visitor = await operatorVisit(`/sites/${calm.id}/protection`);
  const { page } = visitor;
  const strength = page.getByRole('radiogroup', { name: 'Challenge strength' });
  await strength.getByRole('radio', { name: 'Standard' }).focus();
  await page.keyboard.press('ArrowRight');
  t.true(await strength.getByRole('radio', { name: 'Strict' }).isChecked());
  await page.getByText('Takes about 0.5s on a phone, under 0.1s on a desktop', { exact: true }).waitFor();
  t.is(await strength.getByRole('radio').count(), 3);
  await page.getByLabel('Pass validity').fill('1000');
  t.true(await strength.getByRole('radio', { name: 'Custom' }).isChecked());
  const sent = page.waitForRequest('**/rpc/protection/update');
  await page.getByLabel('Pass validity').press('Enter');
  const { expectedUpdatedAt, ...input } = (await sent).postDataJSON() as Body;
  t.deepEqual(input, { id: calm.id, passTtlSeconds: 1000, powDifficulty: 18, powHighDifficulty: 22 });
  t.is(typeof expectedUpdatedAt, 'string');
  await tracker(page).getByText('2 of 2 nodes').waitFor();
  t.like(await protectionOf(calm), {
    passTtlSeconds: 1000,
    powDifficulty: 18,
    powHighDifficulty: 22,
    underAttack: false,
  });

  // What the server refuses is said where one looks.
  await page.getByLabel('Harder proof of work', { exact: true }).fill('17');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('The harder proof of work needs at least 18 bits.').waitFor();
  await page.getByRole('button', { name: 'Discard changes' }).click();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('CC mitigation: switched on, with thresholds of its own or those of the template', async (t) => {
  const visitor = await operatorVisit(`/sites/${calm.id}/protection`);
  const { page } = visitor;
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await page.getByText('CC mitigation (HTTP flood protection) is off. High load never raises the level.').waitFor();
  t.is(await page.getByLabel('Whole site').count(), 0);
  await page.getByText('Raise the level under load', { exact: true }).click();
  await page.getByRole('radiogroup', { name: 'Thresholds' }).getByRole('radio', { name: 'Loose' }).check();
  t.is(await page.getByLabel('Whole site').inputValue(), '3000');
  await page.getByLabel('Whole site').fill('2500');
  await save.click();
  await page
    .getByText('CC mitigation (HTTP flood protection) is on. High load raises the level up to “Proof of work”.')
    .waitFor();
  t.like((await protectionOf(calm)).effectiveCc, { siteQps: 2500, urlQps: 600, maxLevel: 'pow' });

  await page.getByText('Follow the template', { exact: true }).click();
  await save.click();
  await page.getByText('is on by the template').waitFor();
  await page.getByText('Effective thresholds').click();
  await page.getByText('1,000 / s').first().waitFor();
  const { cc, effectiveCc } = await protectionOf(calm);
  t.deepEqual([cc.followTemplate, cc.siteQps, effectiveCc.siteQps], [true, 2500, 1000]);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const REHEARSAL_WORDS = {
  en: {
    client: 'One visitor',
    presets: 'Thresholds',
    strict: 'Strict',
    one: 'At least one visitor banned (actual: 2).',
    two: 'At least 2 visitors banned (actual: 2).',
    unknown: 'Sites raised: no data. No node has reported requests.',
    save: 'Save',
    discard: 'Discard changes',
  },
  'zh-CN': {
    client: '单个访客',
    presets: '阈值',
    strict: '严格',
    one: '至少 1 个访客被封禁（实际为 2）。',
    two: '至少 2 个访客被封禁（实际为 2）。',
    unknown: '升级的站点：没有相关数据。没有节点上报请求数。',
    save: '保存',
    discard: '放弃更改',
  },
} as const;

test.serial('before thresholds are saved the form says what they would have done in the last hour', async (t) => {
  await api.ok('PATCH', `/sites/${quiet.id}/protection`, { cc: { enabled: true, ipQps: 70 } });
  const banned = (address: string, observed: number): Body => ({
    id: `rehearsed-${events++}`,
    siteId: quiet.id,
    kind: SecurityEventKind.IP_BANNED,
    occurredAtMs: BigInt(Date.now() - MINUTE),
    level: 0,
    previousLevel: 0,
    metric: 'ip_qps',
    observed,
    threshold: 70,
    address,
  });
  await reporter.connection.call('reportSecurity', {
    events: [banned('203.0.113.41', 80), banned('203.0.113.42', 90)],
  });
  for (const language of ['en', 'zh-CN'] as const) {
    const words = REHEARSAL_WORDS[language];
    const visitor = await operatorVisit(`/sites/${quiet.id}/protection`, { language });
    const { page } = visitor;
    const told = page.getByRole('status').filter({ has: page.getByRole('listitem') });
    await page.getByLabel(words.client, { exact: true }).fill('85');
    await told.getByText(words.one, { exact: true }).waitFor();
    await page
      .getByRole('radiogroup', { name: words.presets, exact: true })
      .getByRole('radio', { name: words.strict })
      .check();
    await told.getByText(words.two, { exact: true }).waitFor();
    await told.getByText(words.unknown, { exact: true }).waitFor();
    t.true(await page.getByRole('button', { name: words.save, exact: true }).isEnabled());
    t.deepEqual(await accessibilityFaults(page), []);
    await page.getByRole('button', { name: words.discard }).click();
    await told.waitFor({ state: 'detached' });
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  }
  await api.ok('PATCH', `/sites/${quiet.id}/protection`, { cc: { enabled: false } });
});

test.serial('a site under attack: levels of nodes, who weighs most, and a ban in a few clicks', async (t) => {
  const visitor = await operatorVisit(`/sites/${attacked.id}/security`);
  const { page } = visitor;
  await page.getByText('The level did not change in this period.').waitFor();
  await page.getByRole('heading', { name: 'No events' }).waitFor();
  await reportAttack();
  await page.reload();
  const now = page.getByRole('region', { name: 'Current level' });
  await now.getByText('JavaScript check').waitFor();
  await now.getByText('/login').waitFor();
  await now.getByText('Captcha').waitFor();
  await now.getByText('unknown').waitFor();
  await now.getByText('No report yet').waitFor();
  await page.getByRole('slider', { name: 'Highest level over time' }).locator('canvas').waitFor();
  await page.getByText('Show as table').click();
  const drawn = page.getByRole('table', { name: 'Highest level over time' }).getByRole('row');
  t.deepEqual(
    (await drawn.allTextContents()).slice(1).map((row) => row.replace(/^.*[AP]M/, '').trim()),
    ['Normal', 'Cookie redirect', 'JavaScript check', 'JavaScript check'],
  );
  const list = page.getByRole('table', { name: 'Events' });
  await list.getByText('Requests per second from the visitor: 1,500.5, limit 1,000').waitFor();
  t.is(await list.getByRole('row').count(), 5);
  await page.goto(`/sites/${attacked.id}/security?kind=ip_banned&range=1h`);
  // The address is named beside the events, too.
  await list.getByText('203.0.113.7').first().waitFor();
  t.is(await list.getByRole('row').count(), 2);

  await page.getByRole('link', { name: 'Ban 2001:db8:5:6::/64' }).click();
  const dialog = page.getByRole('dialog');
  t.is(await dialog.getByLabel('Address or range').inputValue(), '2001:db8:5:6::/64');
  await dialog.getByText('Flooded').first().waitFor();
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
  const [ban] = await eventually(async () => {
    const { items } = await api.ok('GET', `/bans?source=manual&siteId=${attacked.id}`);
    return items.length > 0 && items;
  });
  t.like(ban, { cidr: '2001:db8:5:6::/64', scope: 'site' });
  t.is(Math.round((Date.parse(ban.expiresAt) - Date.parse(ban.createdAt)) / 1000), 3600);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('incidents: the flooded site is found among all and switched in three clicks', async (t) => {
  await reportAttack();
  const visitor = await operatorVisit('/sites');
  const { page } = visitor;
  await page.getByRole('link', { name: 'Incidents & Under Attack' }).click();
  const above = page.getByRole('table', { name: 'Sites above normal' });
  await above.getByRole('link', { name: 'Flooded' }).waitFor();
  t.is(await above.getByText('Quiet').count(), 0);
  await above.getByText(reporter.name).waitFor();
  await page.getByRole('table', { name: 'Latest automatic bans' }).getByText('203.0.113.7/32').waitFor();
  await page.getByRole('list', { name: 'Top IPs of the last hour' }).getByText('2001:db8:5:6:7::8').waitFor();
  await page.getByRole('button', { name: 'Under Attack of Flooded' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
  await page.getByText('One site has its own Under Attack on.').waitFor();
  t.true((await protectionOf(attacked)).underAttack);
  // What needs somebody is said on every page.
  await page.reload();
  await page
    .getByRole('button', { name: /things? need/ })
    .or(page.locator('.health.is-watch, .health.is-act'))
    .first()
    .waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

const INCIDENTS = {
  en: {
    above: 'Sites above normal',
    bans: 'Latest automatic bans',
    came: 'One row changed. Move out of the table to update it.',
    lift: (cidr: string) => `Lift the ban of ${cidr}`,
    confirm: 'Lift',
    calm: 'No site is above its normal level.',
  },
  'zh-CN': {
    above: '高于正常等级的站点',
    bans: '最新的自动封禁',
    came: '有 1 行发生变化，移开后显示最新。',
    lift: (cidr: string) => `解除对 ${cidr} 的封禁`,
    confirm: '解除',
    calm: '没有站点高于正常等级。',
  },
} as const;
for (const [index, language] of (['en', 'zh-CN'] as const).entries()) {
  const words = INCIDENTS[language];
  test.serial(
    `incidents: rows stay under the pointer, a ban is lifted in its row, and good news is one line: ${language}`,
    async (t) => {
      const level = (sites: [site: Body, level: number][]) =>
        reporter.connection.call('reportSecurity', {
          events: [],
          sites: sites.map(([{ id: siteId }, level]) => ({ siteId, level, paths: [] })),
          hasState: true,
        });
      const now = Date.now();
      await reporter.connection.call('reportBans', {
        bans: [
          {
            siteId: attacked.id,
            cidr: `203.0.113.${20 + index}`,
            createdAtMs: BigInt(now),
            expiresAtMs: BigInt(now + 10 * MINUTE),
            reason: 'cc_ip_rate',
            metric: 'ip_qps',
            observed: 120n,
            threshold: 50n,
            windowSeconds: 10,
          },
        ],
      });
      await level([[attacked, 2]]);
      const visitor = await operatorVisit('/protection/incidents', { language });
      const { page } = visitor;
      const rows = page.getByRole('table', { name: words.above }).locator('tbody tr');
      await rows.filter({ hasText: 'Flooded' }).hover();
      await level([
        [attacked, 2],
        [quiet, 4],
      ]);
      await page.getByText(words.came).waitFor();
      t.is(await rows.count(), 1, 'under the pointer nothing moves');
      await page.mouse.move(0, 0);
      await rows.nth(1).waitFor();
      t.true((await rows.first().textContent())?.includes('Quiet'), 'the highest level stands first');

      const cidr = `203.0.113.${20 + index}/32`;
      await page.getByRole('button', { name: words.lift(cidr) }).click();
      await page.getByRole('dialog').getByRole('button', { name: words.confirm, exact: true }).click();
      await page.getByRole('table', { name: words.bans }).getByText(cidr).waitFor({ state: 'detached' });
      t.is(await page.locator('.incidents__global .el-button--danger').count(), 1);

      await page.mouse.move(0, 0);
      await level([]);
      await page.getByText(words.calm).waitFor();
      t.is(await page.locator('.incidents__global .el-button--danger').count(), 0, 'red only while there is something');
      t.deepEqual(await accessibilityFaults(page), []);
      await level([[attacked, 2]]);
      t.deepEqual(visitor.faults(), []);
      await visitor.close();
    },
  );
}

const HEAD = {
  en: {
    level: 'JavaScript check',
    requests: '2 requests/s',
    changed: 'Site protection changed',
    all: 'Site history',
  },
  'zh-CN': { level: 'JavaScript 校验', requests: '每秒 2 个请求', changed: '更改站点防护', all: '站点历史' },
} as const;
for (const language of ['en', 'zh-CN'] as const) {
  const words = HEAD[language];
  test.serial(
    `the head of a site says level, Under Attack, requests and who changed it last; History has the rest: ${language}`,
    async (t) => {
      const levels = { sites: [{ siteId: attacked.id, level: 2, paths: [] }], hasState: true };
      await reporter.connection.call('reportSecurity', levels);
      await api.ok('PATCH', `/sites/${attacked.id}/protection`, { underAttack: true });
      const minute = new Date(Math.floor(Date.now() / MINUTE - 1) * MINUTE);
      const requests = { site_id: attacked.id, minute, requests: 120 };
      await api.sql('site_request_minute').insert(requests).onConflict(['site_id', 'minute']).merge();
      const visitor = await operatorVisit(`/sites/${attacked.id}/origins`, { language });
      const { page } = visitor;
      const head = page.locator('.page-head');
      for (const text of [words.level, 'Under Attack', words.requests])
        await head.getByText(text, { exact: true }).waitFor();
      t.deepEqual(await accessibilityFaults(page), []);
      await head.getByRole('link', { name: words.changed }).click();
      const row = page
        .getByRole('grid', { name: words.all })
        .getByRole('row')
        .filter({ hasText: words.changed })
        .first();
      await row.focus();
      await page.keyboard.press('Enter');
      const sheet = page.getByRole('dialog', { name: words.changed });
      await sheet.getByText('site.protection_update').waitFor();
      t.deepEqual(await accessibilityFaults(page), []);
      await page.keyboard.press('Escape');
      await sheet.waitFor({ state: 'detached' });
      t.true(
        await row.evaluate((element) => element === element.ownerDocument.activeElement),
        'the focus is given back',
      );
      // Switched off elsewhere: the head follows.
      await api.ok('PATCH', `/sites/${attacked.id}/protection`, { underAttack: false });
      await head.getByText('Under Attack', { exact: true }).waitFor({ state: 'detached' });
      t.deepEqual(visitor.faults(), []);
      await visitor.close();
    },
  );
}

test.serial('Under Attack of all sites names what it touches; template and retention are saved', async (t) => {
  await api.ok('PATCH', `/sites/${attacked.id}/protection`, { underAttack: true });
  await api.ok('PATCH', `/sites/${calm.id}/protection`, { cc: { enabled: true, followTemplate: true } });
  const visitor = await operatorVisit('/protection/incidents');
  const { page } = visitor;
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Switch on globally' }).click();
  await dialog.getByText('3 sites').waitFor();
  await dialog.getByText('4 nodes').waitFor();
  await dialog.getByText('Upgrade required to challenge visitors: left-behind').waitFor();
  await dialog.getByRole('button', { name: 'Switch on' }).click();
  await page.getByText('Every visitor of every site is challenged first.').waitFor();
  t.true((await protectionOf(quiet)).platformUnderAttack);
  await page.goto(`/sites/${quiet.id}/protection`);
  await page.getByText('On globally', { exact: true }).waitFor();
  await page.goto('/protection/incidents');
  await page.getByRole('button', { name: 'Switch off globally' }).click();
  await dialog.getByText('One site keeps Under Attack on by its own setting.').waitFor();
  await dialog.getByRole('button', { name: 'Switch off' }).click();
  await page.getByText('Sites challenge visitors by their own settings and level only.').waitFor();

  await page.getByRole('link', { name: 'Defaults', exact: true }).click();
  await page.getByLabel('Keep security events for').fill('6');
  await page.getByText('At least 7.').waitFor();
  await page.getByLabel('Keep security events for').fill('14');
  await page.getByRole('button', { name: 'Save', exact: true }).first().click();
  await eventually(async () => (await api.ok('GET', '/settings/protection')).eventRetentionDays === 14);
  await page.getByRole('radiogroup', { name: 'Thresholds' }).getByRole('radio', { name: 'Strict' }).check();
  await page.getByRole('button', { name: 'Save', exact: true }).last().click();
  await eventually(async () => (await protectionOf(calm)).effectiveCc.siteQps === 300);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('the pages fit and can be used by everybody, in both themes and widths, with their dialogs', async (t) => {
  const press = (name: RegExp) => async (page: Page) => {
    await page.getByRole('button', { name }).first().click();
    await page.getByRole('dialog').getByRole('button').nth(2).waitFor();
  };
  const looks: readonly (readonly [string, string, ((page: Page) => Promise<unknown>)?])[] = [
    ['protection', `/sites/${quiet.id}/protection`],
    ['protection-cc', `/sites/${calm.id}/protection`, (page) => page.locator('main .fold__button').first().click()],
    ['protection-dialog', `/sites/${quiet.id}/protection`, press(/^Switch on$|^开启$/)],
    ['security', `/sites/${attacked.id}/security`, (page) => page.locator('.series canvas').waitFor()],
    ['security-empty', `/sites/${quiet.id}/security`],
    ['incidents', '/protection/incidents'],
    ['incidents-dialog', '/protection/incidents', press(/^Switch on globally$|^全局开启$/)],
    ['incidents-defaults', '/protection/incidents/defaults'],
  ];
  await reportAttack();
  const faults: string[] = [];
  for (const [language, theme] of [
    ['en', 'light'],
    ['en', 'dark'],
    ['zh-CN', 'light'],
  ] as const) {
    const visitor = await operatorVisit('/sites', { language, theme });
    const { page } = visitor;
    for (const [index, [name, path, act]] of looks.entries()) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await reporter.beat();
      // What was opened on the page before would be in the way.
      if (looks[index - 1]?.[2]) await page.goto(path);
      else await follow(page, path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await settled(page);
      await act?.(page);
      for (const width of [1440, 375]) {
        await page.setViewportSize({ width, height: 900 });
        const wrong = await layoutFaults(page);
        // Of the other theme axe judges colours, which are the same at each width.
        if (language === 'en' && (theme === 'light' || width === 1440))
          wrong.push(...(await accessibilityFaults(page)));
        faults.push(...wrong.map((fault) => `${name} ${language} ${theme} ${width}: ${fault}`));
        await screenshot(page, `${name}-${language}-${theme}-${width}`);
      }
    }
    faults.push(...visitor.faults());
    await visitor.close();
  }
  t.deepEqual(faults, []);
});
