// Rules through a real console: made from a template, wrong and mended, ordered, saved, merged with what somebody else
// saved, read from a file, tried, counted; and bulk redirects with their files.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: replacements name their stars so
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Page } from 'playwright-core';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { accessibilityFaults, layoutFaults, settled } from '../helpers/console-pages.ts';
import { ConsoleStories, tracker } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const stories = new ConsoleStories(1);
test.before(() => stories.start());
test.after.always(() => stories.stop());

interface Rule {
  id: string;
  name: string;
  enabled: boolean;
  expression: string;
}
const rule = (name: string) => ({
  name,
  phase: 'waf-custom',
  expression: 'ssl eq true',
  enabled: true,
  action: { kind: 'block' },
});
const readRules = async (id: string) =>
  (await stories.console.client.api<{ rules: Rule[] }>('GET', `/sites/${id}/rules`)).rules;
const saveRules = (id: string, rules: readonly object[]) =>
  stories.console.client.api<{ rules: Rule[] }>('PUT', `/sites/${id}/rules`, { rules });
const saveGlobalRules = (rules: readonly object[]) =>
  stories.console.client.api<{ rules: Rule[] }>('PUT', '/platform-rules', { rules });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const gone = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' });

async function saveAll(page: Page): Promise<void> {
  await button(page, 'Review and save').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await gone(page);
}

test.serial('rules of all sites can be tried as soon as there is a site', async (t) => {
  const visitor = await stories.operatorVisit('/platform-rules');
  const { page } = visitor;
  await button(page, 'Test a request').click();
  const panel = page.getByRole('region', { name: 'Test a request' });
  await panel.getByText('Create a site first').waitFor();
  await panel.getByRole('link', { name: 'New site' }).waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  const site = await stories.newSite();
  const url = panel.getByLabel('URL', { exact: true });
  await url.waitFor();
  t.is(await url.inputValue(), `https://${site.domains[0]}/`);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a rule is made from a template, refused where it is wrong, mended, ordered and saved', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
  const { page } = visitor;
  await page.getByRole('heading', { name: 'No rules yet' }).waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await page.getByRole('button', { name: /^Block a country/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Text', exact: true }).click();
  await dialog.getByLabel('Condition', { exact: true }).fill('ip.geoip.country gt "DE"');
  await dialog.getByText('Character 18: This comparison works only with numbers.').waitFor();
  t.is(await dialog.locator('.expression-input__drawn .is-wrong').textContent(), 'gt');
  await button(page, 'Done').click();
  t.true(await dialog.isVisible(), 'a rule that is wrong does not go into the list');
  t.deepEqual(await accessibilityFaults(page), []);
  await dialog.getByLabel('Condition', { exact: true }).fill('ip.geoip.country eq "DE"');
  await button(page, 'Done').click();
  await gone(page);

  await button(page, 'Add a rule').click();
  await button(page, 'Empty rule').click();
  await page.getByLabel('Name', { exact: true }).fill('Second');
  await button(page, 'Done').click();
  await gone(page);
  await button(page, 'Second').focus();
  await page.keyboard.press('Alt+ArrowUp');
  await page.getByText('Now at position 1 of 2.').waitFor();
  t.is(await page.evaluate<string>('document.activeElement.textContent'), 'Second', 'the focus goes along');
  await page
    .getByRole('group', { name: /^Rule Second/ })
    .locator('.el-switch')
    .click();
  await saveAll(page);
  await tracker(page).first().waitFor();
  t.deepEqual(
    (await readRules(site.id)).map(({ name, enabled }) => [name, enabled]),
    [
      ['Second', true],
      ['Block a country', false],
    ],
  );
  t.true(await button(page, 'Review and save').isDisabled(), 'nothing is left to save');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'what two people did comes together rule by rule, and a choice is asked where both changed one',
  async (t) => {
    const site = await stories.newSite();
    const { rules } = await saveRules(site.id, [rule('One'), rule('Two'), rule('Three')]);
    const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
    const { page } = visitor;
    const rename = async (from: string, to: string) => {
      await button(page, from).click();
      await page.getByLabel('Name', { exact: true }).fill(to);
      await button(page, 'Done').click();
      await gone(page);
    };
    await rename('One', 'One of mine');
    await rename('Two', 'Two of mine');
    // Meanwhile somebody else.
    const [, two, three] = rules as [Rule, Rule, Rule];
    await saveRules(site.id, [rules[0]!, { ...two, name: 'Two of theirs' }, { ...three, name: 'Three of theirs' }]);
    await button(page, 'Review and save').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
    const choice = page.getByRole('dialog', { name: 'Another user changed the same fields' });
    await choice.getByText('Two of theirs').first().waitFor();
    t.is(await choice.getByRole('group').count(), 1, 'only one was changed by both');
    t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
    await choice.getByText('Your value').click();
    await button(page, 'Save these values').click();
    await gone(page);
    await page.locator('.save-bar.is-dirty').waitFor({ state: 'detached' });
    t.deepEqual(
      (await readRules(site.id)).map(({ name }) => name),
      ['One of mine', 'Two of mine', 'Three of theirs'],
    );
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('a redirect from a pattern shows where an example goes, and becomes a rule', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/redirects`);
  const { page } = visitor;
  await page.getByRole('link', { name: 'Redirect a pattern', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Redirect a pattern' });
  await dialog.getByText('Fill in both patterns and a URL to see where it leads.').waitFor();
  await dialog.getByRole('button', { name: '/blog/* → /news/${1}', exact: true }).click();
  await dialog.getByText('Redirects to /news/2026/hello').waitFor();
  await dialog.getByLabel('Example URL', { exact: true }).fill('https://www.example.com/shop');
  await dialog.getByText('Not redirected: the URL does not match the pattern.').waitFor();
  await dialog.getByLabel('To', { exact: true }).fill('/news/${2}');
  await button(page, 'Done').click();
  await dialog.getByText(/use only stars of the first pattern/).waitFor();
  await dialog.getByLabel('To', { exact: true }).fill('/news/${1}');
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await button(page, 'Done').click();
  await gone(page);
  await saveAll(page);
  await tracker(page).first().waitFor();
  t.like(await readRules(site.id), [
    {
      name: '/blog/* → /news/${1}',
      phase: 'redirect',
      enabled: true,
      expression: 'http.request.uri.path wildcard "/blog/*"',
      action: {
        kind: 'redirect',
        target: 'wildcard_replace(http.request.uri.path, "/blog/*", "/news/${1}")',
        statusCode: 301,
        preserveQuery: true,
      },
    },
  ]);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('rules are read from a file, which is refused with the rule and field that is wrong', async (t) => {
  const folder = temporaryFolder(t);
  const site = await stories.newSite();
  const { rules } = await saveRules(site.id, [rule('Kept'), rule('Dropped')]);
  const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
  const { page } = visitor;
  await button(page, 'Kept').waitFor();
  const take = async (content: unknown) => {
    const path = join(folder, 'rules.json');
    writeFileSync(path, JSON.stringify(content));
    await page.getByLabel('Import JSON', { exact: true }).setInputFiles(path);
    return page.getByRole('dialog', { name: 'Rules of rules.json' });
  };
  const refused = await take({ rules: [{ ...rule('Bad'), phase: 'nowhere' }] });
  await refused.getByText('Rule 1, phase').waitFor();
  t.true(await refused.getByRole('button', { name: /^Import .* rules?$/ }).isDisabled());
  await refused.getByRole('button', { name: 'Cancel' }).click();
  await gone(page);

  const good = await take({ rules: [rule('From the file'), rules[0]] });
  await good.getByText('Dropped').waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await good.getByRole('button', { name: 'Import 2 rules' }).click();
  await gone(page);
  await saveAll(page);
  const saved = await readRules(site.id);
  t.deepEqual(
    saved.map(({ name }) => name),
    ['From the file', 'Kept'],
  );
  t.is(saved[1]?.id, rules[0]?.id, 'a rule that was known stays the same one');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('what may not be meant stands beside a rule once it was saved', async (t) => {
  const site = await stories.newSite();
  await saveRules(site.id, [{ ...rule('Not a check'), expression: 'http.user_agent ne "check"' }]);
  const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
  const { page } = visitor;
  const row = page.getByRole('group', { name: /^Rule Not a check/ });
  await row.getByText('The condition also matches requests without http.user_agent').waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a request is tried on rules that are not saved', async (t) => {
  const site = await stories.newSite();
  await saveRules(site.id, [{ ...rule('Admin'), expression: 'starts_with(http.request.uri.path, "/admin/")' }]);
  const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
  const { page } = visitor;
  await button(page, 'Test a request').click();
  const panel = page.getByRole('region', { name: 'Test a request' });
  const outcome = panel.getByRole('region', { name: 'Result' });
  const attempt = async (url: string) => {
    await panel.getByLabel('URL', { exact: true }).fill(url);
    await button(page, 'Test').click();
  };
  await attempt('no address');
  await panel.locator('.field__error').first().waitFor();
  await attempt(`https://${site.domains[0]}/admin/x`);
  await outcome.getByText('Blocked').first().waitFor();
  await outcome.getByText('by the rule Admin').waitFor();
  t.true(await outcome.getByText('http.request.uri.path', { exact: true }).first().isVisible(), 'what it read');
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await page
    .getByRole('group', { name: /^Rule Admin/ })
    .locator('.el-switch')
    .click();
  await button(page, 'Test').click();
  await outcome.getByText('Passed to the cache and the origin').waitFor();
  t.true((await readRules(site.id))[0]?.enabled, 'nothing was saved');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('rules of all sites stand above those of a site, where they can only be read', async (t) => {
  const site = await stories.newSite();
  await saveRules(site.id, [rule('Own')]);
  const visitor = await stories.operatorVisit('/platform-rules');
  const { page } = visitor;
  await page.getByRole('button', { name: /^Challenge bots/ }).click();
  await button(page, 'Done').click();
  await gone(page);
  await saveAll(page);
  await page.goto(`/sites/${site.id}/rules`);
  const group = page.getByRole('group', { name: /^Rule Challenge bots/ });
  await group.getByText('Global').waitFor();
  t.is(await group.getByRole('switch').count(), 0);
  await group.getByRole('link', { name: 'Challenge bots' }).click();
  await page.getByRole('heading', { name: 'Global rules', level: 1 }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('rules of all sites are tried on the site that is chosen, before its own', async (t) => {
  const [one, other] = [await stories.newSite(), await stories.newSite()];
  await saveRules(other.id, [{ ...rule('Own'), expression: 'http.request.uri.path eq "/own"' }]);
  await saveGlobalRules([{ ...rule('Everywhere'), expression: `http.host eq "${other.domains[0]}"` }]);
  const visitor = await stories.operatorVisit('/platform-rules');
  const { page } = visitor;
  await button(page, 'Test a request').click();
  const panel = page.getByRole('region', { name: 'Test a request' });
  const url = panel.getByLabel('URL', { exact: true });
  const outcome = panel.getByRole('region', { name: 'Result' });
  const choose = async ({ name, domains }: { name: string; domains: string[] }) => {
    await panel.getByRole('combobox', { name: 'Site', exact: true }).press('Enter');
    await page.getByRole('option', { name, exact: true }).click();
    await eventually(async () => (await url.inputValue()) === `https://${domains[0]}/own`, {
      what: 'the other domain',
    });
  };
  await url.fill(`${await url.inputValue()}own`);
  const top = async (label: string) => (await panel.getByLabel(label, { exact: true }).boundingBox())?.y;
  t.is(await top('Visitor address'), await top('URL'), 'fields of one line');
  await choose(one);
  await button(page, 'Test').click();
  await outcome.getByText('Passed to the cache and the origin').waitFor();
  await choose(other);
  await outcome.waitFor({ state: 'detached' });
  await button(page, 'Test').click();
  await outcome.getByText('by the rule Everywhere').waitFor();
  t.true(await outcome.getByText('http.host', { exact: true }).first().isVisible(), 'what it read');
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await page
    .getByRole('group', { name: /^Rule Everywhere/ })
    .locator('.el-switch')
    .click();
  await button(page, 'Test').click();
  await outcome.getByText('by the rule Own').waitFor();
  const { rules } = await stories.console.client.api<{ rules: Rule[] }>('GET', '/platform-rules');
  t.true(rules[0]?.enabled, 'nothing was saved');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a rule of all sites that uses an IP list is found from there', async (t) => {
  const { id } = await stories.console.client.api<{ id: string }>('POST', '/ip-lists', {
    name: 'office',
    kind: 'collection',
    entries: ['192.0.2.1'],
  });
  await saveGlobalRules([{ ...rule('Not from the office'), expression: 'ip.src in $office' }]);
  const visitor = await stories.operatorVisit(`/ip-lists/${id}`);
  const { page } = visitor;
  await page.getByRole('link', { name: 'Not from the office' }).click();
  await page.getByRole('heading', { name: 'Global rules', level: 1 }).waitFor();
  await page.getByRole('group', { name: /^Rule Not from the office/ }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('a rule is dragged to another place, and it is the one that counts as moved', async (t) => {
  const site = await stories.newSite();
  await saveRules(site.id, [rule('One'), rule('Two'), rule('Three')]);
  const visitor = await stories.operatorVisit(`/sites/${site.id}/rules`);
  const { page } = visitor;
  const row = (name: string) => page.getByRole('group', { name: new RegExp(`^Rule ${name}`) });
  await row('Two').locator('.rule__grip').dragTo(row('One'));
  await page.getByText('Now at position 1 of 3.').waitFor();
  await button(page, 'Review and save').click();
  const moved = page.getByRole('dialog').getByRole('listitem');
  await moved.getByText('from position 2 to 1 of its phase').waitFor();
  t.is(await moved.count(), 1);
  t.is(await moved.locator('b').textContent(), 'Two');
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await gone(page);
  t.deepEqual(
    (await readRules(site.id)).map(({ name }) => name),
    ['Two', 'One', 'Three'],
  );
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('beside each rule stands what nodes told of the last 24 hours', async (t) => {
  const api = new Api(stories.console);
  const clusterId = await api.cluster('counted');
  const { id } = await api.site(clusterId, 'counted.example.com', { origins: [{ address: '93.184.216.34' }] });
  const { rules } = await saveRules(id, [
    rule('Blocks'),
    { ...rule('Counts'), action: { kind: 'log' } },
    rule('Never matches'),
  ]);
  const everywhere = await saveGlobalRules([rule('Everywhere')]);
  const node = await ReportingNode.enroll(stories.console, clusterId, ['rule-log-v1']);
  t.teardown(() => node.stop());
  await node.beat();
  const [blocks, counts] = rules as [Rule, Rule];
  const hit = (ruleId: string, event: RuleEvent, count: bigint, platform = false) => ({
    ruleId,
    event,
    count,
    platform,
  });
  const minute = BigInt(Math.floor(Date.now() / 60_000) * 60);
  const told = [hit(blocks.id, RuleEvent.BLOCKED, 1234n), hit(counts.id, RuleEvent.LOGGED, 5n)];
  // Rules of all sites count for the node.
  const ofNode = [hit(everywhere.rules[0]!.id, RuleEvent.BLOCKED, 6n, true)];
  const minutes = [
    { siteId: id, minute, requests: 1245n, rules: told },
    { siteId: '', minute, requests: 0n, rules: ofNode },
  ];
  await node.connection.call('reportStats', { minutes, sequence: 1n });
  const visitor = await stories.operatorVisit(`/sites/${id}/rules`);
  const { page } = visitor;
  const hits = (name: string) => page.getByRole('group', { name: new RegExp(`^Rule ${name}`) }).locator('.rule__hits');
  await hits('Blocks').getByText('1,234 blocked', { exact: true }).waitFor();
  await hits('Counts').getByText('5 counted', { exact: true }).waitFor();
  t.is(await hits('Never matches').count(), 0);
  await page.getByText('Each rule shows its requests of the last 24 hours').waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await page.goto('/platform-rules');
  await hits('Everywhere').getByText('6 blocked', { exact: true }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('redirects are read from a file with line errors, searched, paged, edited and saved', async (t) => {
  const folder = temporaryFolder(t);
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/redirects`);
  const { page } = visitor;
  // What is added to a list that is not there yet would be added to an empty one.
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/sites/bulkRedirects/get', async (route) => {
    await held;
    await route.continue();
  });
  await page.reload();
  await button(page, 'Add a redirect').waitFor();
  t.true(await button(page, 'Add a redirect').isDisabled());
  t.true(await button(page, 'Import CSV').first().isDisabled());
  release();
  await page.getByRole('heading', { name: 'No redirects yet' }).waitFor();
  t.true(await button(page, 'Add a redirect').isEnabled());
  await page.unroute('**/sites/bulkRedirects/get');
  const path = join(folder, 'moved.csv');
  const lines = Array.from({ length: 120 }, (_, index) => `/old-${String(index).padStart(3, '0')},/new-${index},308`);
  writeFileSync(path, ['source,target,status', ...lines, '/bad,nowhere', '/odd,/x,200'].join('\n'));
  await page.getByLabel('Import CSV', { exact: true }).setInputFiles(path);
  const dialog = page.getByRole('dialog', { name: 'Redirects of moved.csv' });
  await dialog.getByText('120 redirects in the file.').waitFor();
  await dialog.getByText('Line 122:').waitFor();
  await dialog.getByText('Line 123: The status must be').waitFor();
  t.deepEqual([...(await layoutFaults(page)), ...(await accessibilityFaults(page))], []);
  await button(page, 'Import 120 redirects').click();
  await gone(page);
  await page.getByLabel('Search source or target').fill('old-11');
  await page.getByRole('row').filter({ hasText: '/old-119' }).waitFor();
  t.is(await page.getByRole('row').count(), 11, 'ten and the heading');
  await button(page, 'Edit /old-110').click();
  await page.getByRole('dialog').getByLabel('Target', { exact: true }).fill('https://elsewhere.example.com/');
  await button(page, 'Done').click();
  await gone(page);
  await button(page, 'Delete /old-111').click();
  await saveAll(page);
  const { redirects } = await stories.console.client.api<{ redirects: { source: string; target: string }[] }>(
    'GET',
    `/sites/${site.id}/bulk-redirects`,
  );
  t.is(redirects.length, 119);
  t.is(redirects.find(({ source }) => source === '/old-110')?.target, 'https://elsewhere.example.com/');
  await settled(page);
  await page.getByLabel('Search source or target').fill('');
  await page.getByRole('button', { name: /next/i }).click();
  await page.getByRole('row').filter({ hasText: '/old-060' }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
