// Every form of the console with bad input, in a real browser over a real console: empty, the longest it takes and one
// more, and text that is right-to-left, emoji and HTML at once. It is taken and shown as text, or refused at its field.
import test from 'ava';
import type { Browser, Locator, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startBrowser } from '../helpers/browser.ts';
import { TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
import {
  type Field,
  type FormCase,
  filesWithForms,
  HOSTILE,
  KINDS,
  tryKind,
  tryTaken,
  word,
} from '../helpers/console-forms.ts';
import {
  answerQuestions,
  follow,
  signedInVisit,
  startBrowsedConsole,
  type Visit,
  visit,
} from '../helpers/console-pages.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { orAll } from '../helpers/long-form.ts';
import { Api, type Body } from '../helpers/resources.ts';

let browser: Browser;
let running: TestConsole & { origin: string };
let fleet: Fleet;
let api: Api;
let clusterId: string;
let nodeId: string;
let site: Body;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  clusterId = (await api.ok('GET', '/clusters')).items[0].id;
  fleet = await startTestFleet(running, clusterId, 1);
  nodeId = fleet.nodes[0]!.nodeId;
  site = await api.site(clusterId, 'forms.example.com', {
    origins: [{ address: '93.184.216.34' }],
    cacheRules: [{}],
  });
  // Forms of the other site change its domains.
  await api.site(clusterId, 'purges.example.com');
});

test.after.always(async () => {
  await browser?.close();
  await fleet?.stop();
  await running?.stop();
});

/** A form takes one and refuses the other; the long form also leaves it empty, and fills it to the limit. */
const SHORT_KINDS: readonly string[] = ['hostile', 'one too many'];

const operatorVisit = (path: string): Promise<Visit> => signedInVisit(browser, running.origin, path);

/** The visit of all forms: they load the page one after another, whose scripts the browser has compiled already. */
let shared: Promise<Visit> | undefined;
const sharedVisit = (): Promise<Visit> => {
  shared ??= operatorVisit('/account').then(async (visitor) => {
    // What leaves a page that has been changed is asked; the next kind of input may throw it away.
    visitor.page.on('dialog', (dialog) => dialog.accept());
    await answerQuestions(visitor.page, () => true);
    return visitor;
  });
  return shared;
};

/** The page of paths that nothing has. */
const ELSEWHERE = '/elsewhere';
/** Shows a page with nothing that was opened or typed on it; it is loaded once for each form. */
async function show(page: Page, path: string): Promise<void> {
  if (page.url() === 'about:blank') {
    await page.goto(path);
    return;
  }
  await follow(page, ELSEWHERE);
  await follow(page, path);
}

const EMOJI = '🎉';
/** Any text up to a length in characters, however many bytes they are. */
const name = (longest: number, more: Partial<Field> = {}): Field => ({
  good: (serial) => `Form ${serial}`,
  anyText: true,
  longest: (serial) => `${serial}`.padEnd(longest, EMOJI),
  tooLong: EMOJI.repeat(longest + 1),
  ...more,
});
const number = (largest: number): Field => ({ longest: () => String(largest), tooLong: String(largest + 1) });
const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');
const cidr = (index: number) => `203.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
const label = (letters: number) => 'x'.repeat(letters);

const dialogWith = (page: Page) => page.getByRole('dialog').filter({ has: page.locator('form') });
const FOLDED = '.fold:not(.api-call) > [aria-expanded=false]';
/** Opens all that is folded. Handles, because a locator would count anew without those that were opened. */
async function unfold(box: Locator): Promise<void> {
  for (const folded of await box.locator(FOLDED).elementHandles()) await folded.click();
}

/** A dialog that a button of a page opens. */
const opened = (path: () => string, button: string) => async (page: Page) => {
  await show(page, path());
  await page
    .getByRole('button', { name: word(button), exact: true })
    .first()
    .click();
  const dialog = dialogWith(page);
  await dialog.waitFor();
  await unfold(dialog);
  return dialog;
};
/** The form of a page that holds a field. */
const onPage = (path: () => string, field: string) => async (page: Page) => {
  await show(page, path());
  const form = page.locator('form').filter({ has: page.getByLabel(word(field), { exact: true }) });
  await form.waitFor();
  await unfold(form);
  return form;
};

const domains: Field = {
  good: (serial) => `good-${serial}.forms.example.com`,
  longest: (serial) =>
    lines(50, (index) => `${`${index}-${serial}-`.padEnd(63, 'x')}.${label(63)}.${label(63)}.${label(61)}`),
  tooLong: lines(51, (index) => `many-${index}.forms.example.com`),
};
const html: Field = {
  optional: true,
  anyText: true,
  longest: (serial) => `<p>${serial}</p>`.padEnd(65_536, 'x'),
  tooLong: label(65_537),
};
/** The error pages of the site, with another kind of page for the status that is shown. */
const pageOf = (kind: string) => async (page: Page) => {
  await show(page, `/sites/${site.id}/error-pages`);
  await page.getByRole('combobox', { name: word('pages.visitorsGet') }).press('Enter');
  await page.getByRole('option', { name: word(kind) }).click();
  return page.locator('form');
};
const address = (serial: number) => `198.51.${100 + (serial >> 8)}.${serial & 255}`;

const FORMS: readonly FormCase[] = [
  {
    file: 'features/sites/CreateSite.vue',
    open: opened(() => '/sites', 'sites.create.title'),
    submit: 'sites.create.create',
    fields: {
      'sites.create.domains': domains,
      'sites.create.origin': {
        good: () => '93.184.216.34',
        longest: () => `${label(63)}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: `${label(63)}.${label(63)}.${label(63)}.${label(62)}`,
      },
      'sites.create.name': name(100, { optional: true }),
    },
    unique: 'sites.create.domains',
  },
  {
    file: 'features/logs/LogSettings.vue',
    open: onPage(() => `/sites/${site.id}/logs?settings=1`, 'logs.settings.sampleRate'),
    submit: 'shared.form.save',
    fields: {
      'logs.settings.sampleRate': { good: (serial) => String(serial % 100), longest: () => '100', tooLong: '100.01' },
      'logs.settings.logHeaders': {
        optional: true,
        good: (serial) => `x-note-${serial}`,
        longest: (serial) => lines(8, (index) => `${index}-${serial}-`.padEnd(64, 'x')),
        tooLong: lines(9, (index) => `x-${index}`),
      },
    },
    stays: true,
  },
  {
    file: 'features/sites/SettingsTab.vue',
    open: onPage(() => `/sites/${site.id}/settings`, 'sites.settings.bodyLimit'),
    submit: 'shared.form.save',
    fields: {
      'sites.create.name': name(100),
      'sites.settings.bodyLimit': number(10_737_418_240),
    },
    stays: true,
  },
  {
    file: 'features/sites/DomainsTab.vue',
    open: onPage(() => `/sites/${site.id}/domains`, 'sites.create.domains'),
    submit: 'shared.form.save',
    fields: { 'sites.create.domains': { ...domains, good: (serial) => `kept-${serial}.forms.example.com` } },
    stays: true,
  },
  {
    file: 'features/sites/OriginsTab.vue',
    open: onPage(() => `/sites/${site.id}/origins`, 'sites.origins.port'),
    submit: 'shared.form.save',
    fields: {
      'sites.origins.address': {
        longest: () => `${label(63)}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: label(254),
      },
      'sites.origins.port': number(65_535),
      'sites.origins.weight': number(100),
      'sites.origins.hostHeader': {
        optional: true,
        longest: () => `${label(63)}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: label(1025),
      },
      'sites.origins.sni': {
        optional: true,
        longest: () => `${label(63)}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: label(254),
      },
      'sites.origins.group': { optional: true, tooLong: label(33) },
      'sites.originSettings.tries': number(5),
      'sites.originSettings.maxFails': number(100),
      'sites.originSettings.recovery': number(3600),
      'sites.originSettings.keepaliveIdle': number(3600),
      'sites.originSettings.keepaliveMax': number(100_000),
      'sites.originSettings.connectTimeout': number(120_000),
      'sites.originSettings.sendTimeout': number(3_600_000),
      'sites.originSettings.readTimeout': number(3_600_000),
    },
    stays: true,
  },
  {
    file: 'features/certificates/EditDnsCredential.vue',
    open: opened(() => '/certificates/dns-credentials', 'certificates.dns.add'),
    submit: 'shared.form.save',
    fields: {
      'certificates.dns.name': name(100),
      'certificates.dns.zone': { good: () => 'example.org', longest: () => `${label(63)}.org`, tooLong: label(254) },
      'certificates.dns.server': {
        good: () => 'ns.example.org',
        longest: () => `${label(63)}.org`,
        tooLong: label(262),
      },
      'certificates.dns.keyName': {
        good: () => 'key.example.org',
        longest: () => `${label(63)}.org`,
        tooLong: label(254),
      },
      'certificates.dns.secret': {
        good: () => 'c2VjcmV0IG9mIGEgdGVzdA==',
        longest: () => 'AAAA'.repeat(256),
        tooLong: 'A'.repeat(1025),
      },
    },
  },
  {
    file: 'features/alerts/EditChannel.vue',
    open: opened(() => '/alerts/channels', 'alerts.channel.add'),
    submit: 'shared.form.save',
    fields: {
      'alerts.channel.name': name(100),
      'alerts.edit.url': {
        good: () => 'https://hook.example.org/',
        longest: () => 'https://hook.example.org/'.padEnd(4096, 'x'),
        tooLong: 'https://hook.example.org/'.padEnd(4097, 'x'),
      },
      'alerts.edit.bearer': { optional: true, longest: () => label(4096), tooLong: label(4097) },
    },
  },
  {
    file: 'features/alerts/SilenceAlerts.vue',
    open: async (page) => {
      const dialog = await opened(() => '/alerts/silences', 'alerts.silence.add')(page);
      await dialog.getByRole('checkbox', { name: word('alerts.kind.node_offline'), exact: true }).press('Space');
      return dialog;
    },
    submit: 'alerts.silence.add',
    fields: { 'alerts.silence.reason': name(200) },
  },
  {
    file: 'features/alerts/AlertLimits.vue',
    open: onPage(() => '/alerts/rules', 'alerts.limits.certificate'),
    submit: 'shared.form.save',
    fields: {
      'alerts.limits.certificate': number(720),
      'alerts.limits.ratio': number(1),
      'alerts.limits.requests': number(1_000_000),
      'alerts.limits.window': number(60),
    },
    stays: true,
  },
  {
    file: 'features/backups/BackupSchedule.vue',
    open: onPage(() => '/backups/schedule', 'backups.schedule.folder'),
    submit: 'shared.form.save',
    fields: {
      'backups.schedule.interval': number(168),
      // A folder must be allowed, and a key have its check sum: console-backups.test.ts saves both.
      'backups.schedule.folder': { optional: true, tooLong: `/${label(1024)}` },
      'backups.schedule.key': { optional: true, tooLong: label(201) },
      'backups.schedule.keep': number(365),
    },
    stays: true,
  },
  {
    file: 'features/dns/EditProvider.vue',
    open: async (page) => {
      const dialog = await opened(() => '/dns/providers', 'dns.providers.add')(page);
      await dialog.getByRole('combobox', { name: word('dns.providers.provider') }).press('Enter');
      await page.getByRole('option', { name: 'PowerDNS', exact: false }).click();
      await dialog.getByLabel('server_url').fill('https://dns.example.org');
      await dialog.getByLabel('api_key').fill('key-of-a-test');
      return dialog;
    },
    submit: 'shared.form.save',
    fields: {
      'dns.providers.name': name(100),
      'dns.providers.zone': { good: () => 'example.org', longest: () => `${label(63)}.org`, tooLong: label(254) },
    },
  },
  {
    file: 'features/dns/DnsProtection.vue',
    open: onPage(() => '/dns/protection', 'dns.protection.ratio'),
    submit: 'shared.form.save',
    fields: {
      'dns.protection.ratio': {
        good: (serial) => String(0.1 + (serial % 80) / 100),
        longest: () => '1',
        tooLong: '1.01',
      },
    },
    stays: true,
  },
  {
    file: 'features/dns/DnsSettings.vue',
    open: onPage(() => `/clusters/${clusterId}/dns`, 'dns.settings.domain'),
    submit: 'shared.form.save',
    fields: {
      'dns.settings.domain': {
        optional: true,
        good: (serial) => `cdn-${serial}.example.org`,
        longest: (serial) => `${`c${serial}`.padEnd(63, 'x')}.${label(63)}.example.org`,
        tooLong: label(181),
      },
      'dns.settings.ttl': number(3600),
    },
    stays: true,
  },
  {
    file: 'features/dns/NodeAddresses.vue',
    open: async (page) => {
      const node = `/nodes/${nodeId}/addresses`;
      await show(page, node);
      const form = page.locator('form');
      await form.waitFor();
      await form.getByRole('button', { name: word('dns.addresses.add') }).click();
      return form;
    },
    submit: 'shared.form.save',
    fields: {
      'dns.addresses.address': {
        good: (serial) => address(serial),
        longest: () => '2001:db8:1111:2222:3333:4444:5555:6666',
        tooLong: label(65),
      },
    },
    stays: true,
  },
  {
    file: 'features/alerts/EditMailServer.vue',
    open: opened(() => '/alerts/mail', 'alerts.mail.set'),
    submit: 'shared.form.save',
    fields: {
      'alerts.mail.host': {
        optional: true,
        good: () => '',
        longest: () => `${label(63)}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: `${label(63)}.${label(63)}.${label(63)}.${label(62)}`,
      },
      // Without a server there is none.
      'alerts.mail.from': {
        optional: true,
        good: () => 'console@example.org',
        longest: () => `${label(308)}@example.org`,
        tooLong: `${label(309)}@example.org`,
      },
    },
  },
  {
    // Its directory is read before it is saved (console-https.test.ts).
    file: 'features/certificates/EditAuthority.vue',
    open: opened(() => '/certificates', 'certificates.authority.title'),
    submit: 'shared.form.save',
    fields: {
      'certificates.authority.url': { optional: true, tooLong: `https://${label(2041)}` },
      'certificates.authority.ca': { optional: true },
    },
  },
  {
    file: 'features/certificates/SiteHttps.vue',
    open: onPage(() => `/sites/${site.id}/https#compression`, 'certificates.https.maxLength'),
    submit: 'shared.form.save',
    fields: { 'certificates.https.maxLength': { longest: () => '1 TiB', tooLong: '-1' } },
    stays: true,
  },
  {
    file: 'features/waf/WafTab.vue',
    open: onPage(() => `/sites/${site.id}/waf`, 'waf.strength.threshold'),
    submit: 'shared.form.save',
    fields: {
      'waf.strength.threshold': number(1000),
      'waf.strength.body': { longest: () => '128 MiB', tooLong: '-1' },
      'waf.off.rules': { optional: true, good: () => '942100', tooLong: lines(201, (index) => `${920_500 + index}`) },
      'waf.allowed.methods': { optional: true, good: () => 'PROPFIND', tooLong: lines(33, (index) => `M${index}`) },
      'waf.allowed.types': { optional: true, good: () => 'text/csv', tooLong: lines(65, (index) => `a/b${index}`) },
      'waf.allowed.charsets': { optional: true, good: () => 'koi8-r', tooLong: lines(33, (index) => `c${index}`) },
    },
    stays: true,
  },
  {
    file: 'features/waf/ExcludeDialog.vue',
    open: async (page) => {
      await show(page, `/sites/${site.id}/waf`);
      await page.getByRole('button', { name: word('waf.rules.open'), exact: true }).click();
      await page.getByRole('button', { name: 'Exclude 911100', exact: true }).click();
      const dialog = dialogWith(page);
      await dialog.waitFor();
      return dialog;
    },
    submit: 'waf.exclude.save',
    fields: {
      'waf.exclusions.path': { optional: true, good: (serial) => `/form-${serial}`, tooLong: `/${label(1024)}` },
    },
  },
  {
    file: 'features/protection/ProtectionTab.vue',
    open: onPage(() => `/sites/${site.id}/protection`, 'protection.strength.pass'),
    submit: 'shared.form.save',
    fields: {
      'protection.strength.pass': number(86_400),
      'protection.strength.pow': number(24),
      'protection.strength.powHigh': number(26),
    },
    stays: true,
  },
  {
    file: 'features/protection/GlobalSettings.vue',
    open: onPage(() => '/protection/incidents/defaults', 'protection.global.retention'),
    submit: 'shared.form.save',
    fields: { 'protection.global.retention': number(365) },
    stays: true,
  },
  {
    file: 'features/protection/GlobalSettings.vue',
    open: onPage(() => '/protection/incidents/defaults', 'protection.cc.siteQps'),
    submit: 'shared.form.save',
    fields: {
      'protection.cc.escalate': number(3600),
      'protection.cc.cooldown': number(86_400),
      'protection.cc.window': number(60),
      'protection.cc.siteQps': number(1_000_000),
      'protection.cc.urlQps': number(1_000_000),
      'protection.cc.ipQps': number(1_000_000),
      'protection.cc.ipBan': number(86_400),
      'protection.cc.originErrors': number(100),
      'protection.cc.originMin': number(1_000_000),
    },
    stays: true,
  },
  {
    file: 'features/bans/CreateBan.vue',
    open: async (page) => {
      const dialog = await opened(() => '/bans', 'bans.create.open')(page);
      await dialog.getByRole('combobox', { name: word('bans.terms.duration') }).press('Enter');
      await page.getByRole('option', { name: word('bans.terms.custom') }).click();
      return dialog;
    },
    submit: 'bans.create.create',
    fields: {
      'bans.create.address': {
        good: address,
        longest: (serial) => `2001:0db8:0000:0000:0000:0000:0000:${serial.toString(16).padStart(4, '0')}/128`,
        tooLong: '0.0.0.0/0',
      },
      'bans.terms.minutes': { good: () => '60', ...number(10_080) },
    },
  },
  {
    file: 'features/bans/BulkBans.vue',
    open: async (page) => {
      // The list of the time before stays while the page is not loaded anew.
      await page.goto('about:blank');
      return opened(() => '/bans', 'bans.bulk.open')(page);
    },
    submit: 'bans.bulk.start',
    fields: { 'bans.bulk.addresses': { good: address, tooLong: lines(1001, cidr) } },
  },
  {
    file: 'features/bans/BanSettingsPage.vue',
    open: onPage(() => '/bans/settings', 'bans.settings.maxTotal'),
    submit: 'shared.form.save',
    fields: { 'bans.settings.maxTotal': number(100_000) },
    stays: true,
  },
  {
    file: 'features/ip-lists/IpListPage.vue',
    open: onPage(() => '/ip-lists/new', 'ip-lists.list.name'),
    submit: 'ip-lists.edit.review',
    confirm: 'ip-lists.review.create',
    fields: {
      'ip-lists.list.name': {
        good: (serial) => `list_${serial}`,
        longest: (serial) => `list_${serial}`.padEnd(64, '_'),
        tooLong: label(65),
      },
      'ip-lists.edit.entries': {
        good: address,
        optional: true,
        longest: () => lines(10_000, cidr),
        tooLong: lines(10_001, cidr),
      },
    },
    unique: 'ip-lists.list.name',
  },
  {
    file: 'features/rules/RuleDialog.vue',
    open: async (page) => {
      await show(page, `/sites/${site.id}/rules`);
      await page.getByRole('button', { name: word('rules.add.add'), exact: true }).click();
      await page
        .getByRole('dialog')
        .getByRole('button', { name: word('rules.add.empty'), exact: true })
        .click();
      const dialog = dialogWith(page);
      await dialog.waitFor();
      return dialog;
    },
    submit: 'rules.edit.done',
    fields: { 'rules.edit.name': name(100) },
  },
  {
    file: 'features/rules/redirects/RedirectDialog.vue',
    open: opened(() => `/sites/${site.id}/redirects`, 'rules.redirect.add'),
    submit: 'rules.edit.done',
    fields: {
      'rules.redirect.source': {
        good: (serial) => `/old-${serial}`,
        longest: (serial) => `/${serial}`.padEnd(512, 'x'),
        tooLong: `/${label(512)}`,
      },
      'rules.redirect.target': {
        good: () => '/new',
        longest: () => `/${label(1023)}`,
        tooLong: `/${label(1024)}`,
      },
    },
  },
  {
    file: 'features/network/CreateCluster.vue',
    open: opened(() => '/clusters', 'network.clusters.new'),
    submit: 'network.create',
    fields: {
      'network.clusters.name': {
        good: (serial) => `cluster-${serial}`,
        longest: (serial) => `${serial}`.padEnd(64, 'x'),
        tooLong: label(65),
      },
      'network.clusters.description': name(500, { optional: true }),
    },
    unique: 'network.clusters.name',
  },
  {
    file: 'features/network/ClusterOverview.vue',
    open: onPage(() => `/clusters/${clusterId}/overview`, 'network.clusters.description'),
    submit: 'shared.form.save',
    fields: {
      'network.clusters.name': {
        good: (serial) => `edge-${serial}`,
        longest: (serial) => `${serial}`.padEnd(64, 'y'),
        tooLong: label(65),
      },
      'network.clusters.description': name(500, { optional: true }),
    },
    stays: true,
  },
  {
    file: 'features/network/ClientIpTab.vue',
    open: async (page) => {
      const path = () => `/clusters/${clusterId}/client-ip`;
      await show(page, path());
      await page.getByRole('combobox', { name: word('network.clientIp.mode') }).press('Enter');
      await page.getByRole('option', { name: word('network.clientIp.modes.header') }).click();
      return page.locator('form');
    },
    submit: 'shared.form.save',
    fields: {
      'network.clientIp.header': { good: () => 'x-forwarded-for', longest: () => label(64), tooLong: label(65) },
      'network.clientIp.trusted': {
        good: () => '203.0.113.0/24',
        longest: () => lines(64, cidr),
        tooLong: lines(65, cidr),
      },
    },
    stays: true,
  },
  {
    file: 'features/network/PortsTab.vue',
    open: onPage(() => `/clusters/${clusterId}/ports`, 'network.ports.http'),
    submit: 'shared.form.save',
    fields: {
      'network.ports.http': {
        good: () => '8080',
        optional: true,
        longest: () => lines(16, (index) => `${20_000 + index}`),
        tooLong: lines(17, (index) => `${20_000 + index}`),
      },
      'network.ports.https': {
        good: () => '8443',
        optional: true,
        longest: () => lines(16, (index) => `${30_000 + index}`),
        tooLong: lines(17, (index) => `${30_000 + index}`),
      },
    },
    stays: true,
  },
  {
    file: 'features/cache/tasks/NewTask.vue',
    open: opened(() => '/cache', 'cache.tasks.open'),
    submit: 'cache.tasks.purge',
    fields: {
      'cache.tasks.field.url': {
        good: (serial) => `https://purges.example.com/${serial}`,
        longest: (serial) => lines(500, (index) => `https://purges.example.com/${serial}/${index}`),
        tooLong: lines(501, (index) => `https://purges.example.com/${index}`),
      },
    },
  },
  {
    file: 'features/cache/CacheTab.vue',
    open: onPage(() => `/sites/${site.id}/cache`, 'cache.rules.edgeTtl'),
    submit: 'shared.form.save',
    fields: {
      'cache.rules.edgeTtl': number(31_536_000),
      'cache.rules.extensions': {
        good: () => 'css',
        optional: true,
        longest: () => lines(64, (index) => `e${index}`),
        tooLong: lines(65, (index) => `e${index}`),
      },
      'cache.rules.browserTtl': number(31_536_000),
      'cache.rules.whileRevalidate': number(2_592_000),
      'cache.rules.ifError': number(2_592_000),
      'cache.key.headers': {
        good: () => 'x-device',
        optional: true,
        longest: () => lines(8, (index) => `x-${index}`),
        tooLong: lines(9, (index) => `x-${index}`),
      },
    },
    stays: true,
  },
  {
    file: 'features/network/CacheTab.vue',
    open: onPage(() => `/clusters/${clusterId}/cache`, 'network.cache.maxSizeGb'),
    submit: 'shared.form.save',
    fields: { 'network.cache.maxSizeGb': number(65_536), 'network.cache.inactiveDays': number(90) },
    stays: true,
  },
  {
    file: 'features/network/HeaderLimitTab.vue',
    open: onPage(() => `/clusters/${clusterId}/header-limit`, 'network.headers.fieldBytes'),
    submit: 'shared.form.save',
    fields: { 'network.headers.fieldBytes': number(65_536) },
    stays: true,
  },
  {
    file: 'features/network/UnknownHostsTab.vue',
    open: onPage(() => `/clusters/${clusterId}/unknown-hosts`, 'network.scan.threshold'),
    submit: 'shared.form.save',
    fields: { 'network.scan.threshold': number(10_000), 'network.scan.ban': number(86_400) },
    stays: true,
  },
  {
    file: 'features/pages/MaintenanceTab.vue',
    open: onPage(() => `/sites/${site.id}/maintenance`, 'pages.maintenance.cidrs'),
    submit: 'shared.form.save',
    fields: {
      'pages.maintenance.cidrs': {
        good: () => '203.0.113.0/24',
        optional: true,
        longest: () => lines(64, cidr),
        tooLong: lines(65, cidr),
      },
      'pages.maintenance.paths': {
        good: () => '/status',
        optional: true,
        longest: () => lines(32, (index) => `/${index}`),
        tooLong: lines(33, (index) => `/${index}`),
      },
      'pages.maintenance.retryAfter': number(86_400),
      'pages.template': html,
    },
    stays: true,
  },
  {
    file: 'features/pages/ErrorPagesTab.vue',
    open: pageOf('pages.kind.page'),
    submit: 'shared.form.save',
    fields: {
      'pages.template': { anyText: true, longest: html.longest!, tooLong: html.tooLong! },
      'pages.responseStatus': { good: () => '404', longest: () => '599', tooLong: '600' },
    },
    stays: true,
  },
  {
    file: 'features/pages/ErrorPagesTab.vue',
    open: pageOf('pages.kind.redirect'),
    submit: 'shared.form.save',
    fields: {
      'pages.redirectUrl': {
        good: (serial) => `/sorry-${serial}?{{request_id}}`,
        longest: () => `/${label(4095)}`,
        tooLong: `/${label(4096)}`,
      },
    },
    stays: true,
  },
  {
    file: 'features/pages/PlatformPages.vue',
    open: onPage(() => '/error-pages', 'pages.platform.unknownHostTemplate'),
    submit: 'shared.form.save',
    fields: { 'pages.platform.unknownHostTemplate': html, 'pages.platform.siteDisabledTemplate': html },
    stays: true,
  },
  {
    file: 'features/rollouts/PolicyForm.vue',
    open: onPage(() => `/rollouts?clusterId=${clusterId}`, 'rollouts.policy.few'),
    submit: 'shared.form.save',
    fields: {
      'rollouts.policy.window': number(3600),
      'rollouts.policy.floor': number(1),
      'rollouts.policy.times': number(100),
      'rollouts.policy.few': number(1_000_000),
    },
    stays: true,
  },
  {
    file: 'features/network/EditGroup.vue',
    open: opened(() => `/clusters/${clusterId}/groups`, 'network.groups.new'),
    submit: 'shared.form.save',
    fields: { 'network.groups.name': name(64) },
    unique: 'network.groups.name',
  },
  {
    file: 'features/network/EditRegion.vue',
    open: opened(() => '/nodes/regions', 'network.regions.new'),
    submit: 'shared.form.save',
    fields: {
      'network.regions.name': name(64),
      'network.regions.code': {
        good: (serial) => `r-${serial}`,
        longest: (serial) => `${serial}`.padEnd(32, 'x'),
        tooLong: label(33),
      },
    },
    unique: 'network.regions.code',
  },
  {
    file: 'features/network/NodeCacheTab.vue',
    open: onPage(() => `/nodes/${nodeId}/cache`, 'network.cache.maxSizeGb'),
    submit: 'shared.form.save',
    fields: { 'network.cache.maxSizeGb': { ...number(65_536), optional: true } },
    stays: true,
  },
  {
    file: 'features/network/NodeSettings.vue',
    open: onPage(() => `/nodes/${nodeId}/settings`, 'network.nodes.name'),
    submit: 'shared.form.save',
    fields: { 'network.nodes.name': name(64) },
    stays: true,
  },
  {
    file: 'features/access/CreateKey.vue',
    open: opened(() => '/access/keys', 'access.keys.new'),
    submit: 'access.keys.create',
    fields: { 'access.keys.name': name(64) },
  },
  {
    file: 'features/access/EditServiceAccount.vue',
    open: opened(() => '/access/service-accounts', 'access.accounts.new'),
    submit: 'shared.form.save',
    fields: { 'access.accounts.name': name(64) },
    unique: 'access.accounts.name',
  },
  {
    file: 'features/setup/SiteStep.vue',
    open: onPage(() => '/setup?step=site', 'setup.site.domain'),
    submit: 'setup.site.create',
    fields: {
      'setup.site.domain': {
        good: (serial) => `first-${serial}.forms.example.com`,
        longest: (serial) => `${`${serial}-`.padEnd(63, 'x')}.${label(63)}.${label(63)}.${label(61)}`,
        tooLong: label(1025),
      },
      'setup.site.origin': { good: () => '93.184.216.34' },
    },
    unique: 'setup.site.domain',
  },
  {
    file: 'features/network/public/EnrollNode.vue',
    open: onPage(() => '/setup?step=node', 'network.enroll.name'),
    submit: 'network.enroll.create',
    fields: { 'network.enroll.name': name(64, { optional: true, unseen: true }) },
  },
  {
    file: 'features/system/public/NodeChannel.vue',
    open: onPage(() => '/settings', 'system.channel.url'),
    submit: 'system.channel.save',
    fields: { 'system.channel.url': { optional: true, tooLong: `https://${label(505)}` } },
    stays: true,
  },
  {
    file: 'features/system/SettingsPage.vue',
    open: onPage(() => '/settings', 'system.origins.cidrs'),
    submit: 'shared.form.save',
    fields: {
      'system.origins.cidrs': {
        optional: true,
        good: () => '10.0.0.0/8',
        tooLong: lines(257, (index) => `10.${index >> 8}.${index & 255}.0/24`),
      },
    },
    stays: true,
  },
  {
    file: 'features/system/SettingsPage.vue',
    open: onPage(() => '/settings', 'system.audit.days'),
    submit: 'shared.form.save',
    fields: { 'system.audit.days': number(3650) },
    stays: true,
  },
  {
    file: 'features/system/SettingsPage.vue',
    open: onPage(() => '/settings', 'system.usage.days'),
    submit: 'shared.form.save',
    fields: { 'system.usage.days': number(400) },
    stays: true,
  },
  {
    file: 'features/system/SettingsPage.vue',
    open: onPage(() => '/settings', 'system.logs.days'),
    submit: 'shared.form.save',
    fields: { 'system.logs.days': number(30), 'system.logs.most': number(10_000) },
    stays: true,
  },
];

/** Forms about passwords and codes, which have tests of their own below. */
const PROOFS = [
  'features/account/PasskeysSection.vue',
  'features/account/PasswordSection.vue',
  'features/account/TwoFactorSection.vue',
  'features/setup/AccountStep.vue',
  'shared/session/SignInForm.vue',
];

/** Forms in which something is chosen and nothing typed. */
const CHOICES = [
  'features/alerts/EditSubscription.vue',
  'features/addresses/AddToList.vue',
  'features/waf/ExcludeEventDialog.vue',
];

/** Forms that take certificates, which are made for the story (console-certificates.test.ts), or ask authorities for them. */
const CERTIFICATES = ['features/certificates/RequestHttps.vue', 'features/certificates/UploadCertificate.vue'];

/** Forms that save nothing: trials beside what was typed, and a draft of a rule (console-rules.test.ts, console-cache.test.ts). */
const TRIALS = [
  'features/cache/explain/ExplainPanel.vue',
  'features/rules/TryPanel.vue',
  'features/rules/redirects/PatternDialog.vue',
];

test('every form of the console is walked', (t) => {
  t.deepEqual(
    [...new Set([...FORMS.map(({ file }) => file), ...PROOFS, ...CHOICES, ...CERTIFICATES, ...TRIALS])].sort(),
    filesWithForms(),
  );
});

for (const form of FORMS) {
  const named = `${form.file.split('/').at(-1)!.slice(0, -4)}: ${word(Object.keys(form.fields)[0]!)}`;
  test.serial(`${named} takes what is typed as text, or refuses it at its field`, async (t) => {
    const { page, faults: faultsSoFar } = await sharedVisit();
    const earlier = faultsSoFar().length;
    await page.goto('about:blank');
    let box: Locator | undefined;
    const faults: string[] = [];
    for (const kind of orAll(KINDS, (one) => SHORT_KINDS.includes(one))) {
      if (!form.stays || !box) box = await form.open(page);
      faults.push(...(await tryKind(page, box, form, kind)));
    }
    if (form.unique) faults.push(...(await tryTaken(page, form)));
    t.deepEqual([...faults, ...faultsSoFar().slice(earlier)], []);
  });
}

const field = (page: Page, key: string) => page.getByLabel(word(key), { exact: true });
const press = (page: Page, key: string) => page.getByRole('button', { name: word(key), exact: true }).click();
/** Waits until a field says that it is wrong. */
const refuses = (box: Page | Locator, key: string) =>
  box
    .locator('.is-wrong')
    .filter({ has: field('page' in box ? box.page() : box, key) })
    .first()
    .waitFor();

test.serial('sign-in: text of any kind is wrong or refused at its field, and what was typed stays', async (t) => {
  const visitor = await visit(browser, running.origin);
  const { page } = visitor;
  await page.goto('/login');
  await field(page, 'shared.signIn.email').fill('somebody@example.com');
  await field(page, 'shared.signIn.password').fill(HOSTILE);
  await press(page, 'shared.signIn.signIn');
  await page.getByText('The email address or password is wrong.').waitFor();
  await field(page, 'shared.signIn.email').fill(HOSTILE);
  await press(page, 'shared.signIn.signIn');
  await page.getByText('The email address or password is wrong.').waitFor();
  t.is(await field(page, 'shared.signIn.email').inputValue(), HOSTILE);
  await field(page, 'shared.signIn.email').fill(`${label(250)}@example.com`);
  await press(page, 'shared.signIn.signIn');
  await refuses(page, 'shared.signIn.email');
  await field(page, 'shared.signIn.email').fill('somebody@example.com');
  await field(page, 'shared.signIn.password').fill(EMOJI.repeat(129));
  await press(page, 'shared.signIn.signIn');
  await refuses(page, 'shared.signIn.password');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('account: passwords and codes that are wrong are refused at their fields', async (t) => {
  const visitor = await operatorVisit('/account');
  const { page } = visitor;
  const change = page.locator('form').filter({ has: field(page, 'account.password.next') });
  await change.getByLabel(word('account.password.current'), { exact: true }).fill(HOSTILE);
  await change.getByLabel(word('account.password.next'), { exact: true }).fill('too short');
  await press(page, 'account.password.change');
  await refuses(change, 'account.password.next');
  await change.getByLabel(word('account.password.next'), { exact: true }).fill(EMOJI.repeat(129));
  await press(page, 'account.password.change');
  await refuses(change, 'account.password.next');
  await change.getByLabel(word('account.password.next'), { exact: true }).fill(EMOJI.repeat(64));
  await press(page, 'account.password.change');
  await refuses(change, 'account.password.current');
  await change.getByLabel(word('account.password.next'), { exact: true }).fill('');

  const factor = page.locator('form').filter({ has: page.getByText(word('account.twoFactor.title')) });
  await press(page, 'account.twoFactor.switchOn');
  await factor.getByLabel(word('account.password.current'), { exact: true }).fill(HOSTILE);
  await press(page, 'account.twoFactor.goOn');
  await refuses(factor, 'account.password.current');
  await factor.getByLabel(word('account.password.current'), { exact: true }).fill(TEST_OPERATOR.password);
  await press(page, 'account.twoFactor.goOn');
  for (const code of ['000000', HOSTILE, '123456789']) {
    await factor.getByLabel(word('shared.signIn.totp'), { exact: true }).fill(code);
    await press(page, 'shared.signIn.confirm');
    await refuses(factor, 'shared.signIn.totp');
  }
  await field(page, 'account.passkeys.name').fill(EMOJI.repeat(65));
  await refuses(page, 'account.passkeys.name');
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('first run: what the account cannot be is refused at its field', async (t) => {
  const fresh = await startBrowsedConsole({ setUp: false });
  const visitor = await visit(browser, fresh.origin);
  const { page } = visitor;
  const [token, person, email, password] = [
    'setup.account.token',
    'setup.account.name',
    'shared.signIn.email',
    'shared.signIn.password',
  ] as const;
  const fill = async (texts: readonly string[]) => {
    for (const [index, key] of [token, person, email, password].entries()) await field(page, key).fill(texts[index]!);
    await press(page, 'setup.account.create');
  };
  try {
    await page.goto('/setup');
    await field(page, token).waitFor();
    await fill(['', '', '', '']);
    for (const key of [token, person, email, password]) await refuses(page, key);
    await fill([HOSTILE, HOSTILE, HOSTILE, 'short']);
    for (const key of [email, password]) await refuses(page, key);
    await fill(['wrong', EMOJI.repeat(101), 'a@example.com', EMOJI.repeat(129)]);
    for (const key of [person, password]) await refuses(page, key);
    await fill([HOSTILE, HOSTILE, 'a@example.com', EMOJI.repeat(128)]);
    await refuses(page, token);
    await fill([fresh.setupToken!, HOSTILE, 'a@example.com', EMOJI.repeat(128)]);
    await page.getByRole('heading', { name: word('setup.title.channel') }).waitFor();
    await page.goto('/account');
    await page.getByText(HOSTILE).first().waitFor();
    t.deepEqual(visitor.faults(), []);
  } finally {
    await visitor.close();
    await fresh.stop();
  }
});
