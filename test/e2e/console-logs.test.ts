// Request logs in the Web UI: sampling for an hour, a request found by what is known of it, everything about it in words, and
// the ways on from there.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { LogRowSchema } from '../../proto/gen/svc/node/v1/logs_pb.js';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  layoutFaults,
  screenshot,
  showTheme,
  signedInVisit,
  startBrowsedConsole,
} from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let node: ReportingNode;
let siteId: string;
let ruleId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  const clusterId = await api.cluster('logging');
  siteId = (await api.site(clusterId, 'shop.example')).id;
  node = await ReportingNode.enroll(running, clusterId, ['access-logs-v1', 'bans-v1', 'modsecurity-v1', 'rule-log-v1']);
  await node.beat();
  const rule = { name: 'No old API', phase: 'waf-custom', expression: 'starts_with(http.request.uri.path, "/old/")' };
  const action = { kind: 'block', statusCode: 403 };
  ruleId = (await api.ok('PUT', `/sites/${siteId}/rules`, { rules: [{ ...rule, enabled: true, action }] })).rules[0].id;
});
test.after.always(async () => {
  node?.stop();
  await browser?.close();
  await running?.stop();
});

let made = 0n;
const logged = (ago: number, more: MessageInitShape<typeof LogRowSchema> = {}): Uint8Array =>
  toBinary(
    LogRowSchema,
    create(LogRowSchema, {
      boot: 7n,
      row: ++made,
      atMs: BigInt(Date.now() - ago),
      siteId,
      client: new Uint8Array([203, 0, 113, 7]),
      method: 'GET',
      host: 'shop.example',
      path: `/products/${made}`,
      status: 200,
      bytesSent: 40_000n,
      bytesReceived: 600n,
      durationMs: 12,
      cacheStatus: 'HIT',
      sampleRate: 10_000,
      requestId: `request-${made}`,
      userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
      httpVersion: '2',
      tlsVersion: '1.3',
      secure: true,
      country: 'DE',
      asn: 64_500,
      asName: 'Example Network',
      ...more,
    }),
  );

/** 250 requests of half an hour; the last four are the ones that somebody looks for. */
async function served(): Promise<void> {
  const rows = Array.from({ length: 246 }, (_, at) => logged(30 * MINUTE_MS - at * 6000));
  const slow = { durationMs: 30_000, cacheStatus: 'MISS', upstream: '198.51.100.4:443' };
  rows.push(
    logged(40_000, { ...slow, path: '/checkout', status: 504, errorCode: 'origin-timeout', requestId: 'slow' }),
    logged(30_000, {
      ...{ path: '/old/api', status: 403, cacheStatus: '', blockReason: 'rule', blockRuleId: ruleId },
      ...{ ruleIds: [ruleId], errorCode: 'policy-denied', requestId: 'by-rule', method: 'POST' },
    }),
    logged(20_000, {
      ...{ path: '/search', status: 403, cacheStatus: '', blockReason: 'crs', wafBlocked: true, method: 'POST' },
      ...{
        wafRuleIds: [942_100],
        errorCode: 'waf-blocked',
        requestId: 'attack',
        client: new Uint8Array([192, 0, 2, 9]),
      },
    }),
    logged(10_000, {
      ...{ path: `/${'long-path-'.repeat(40)}`, query: '<b>"x"</b>=1', userAgent: '=cmd|calc', sampleRate: 100 },
      ...{ headers: [{ name: 'x-note', value: '\u202eabc' }], cacheStatus: 'MISS', upstream: '198.51.100.4:443' },
      ...{ upstreamStatus: 200, upstreamMs: 9, requestId: 'odd' },
    }),
  );
  await node.connection.call('reportLogs', { rows, ring: 1n } as never);
  const event = {
    id: 'waf-attack',
    siteId,
    kind: SecurityEventKind.WAF_MATCHED,
    occurredAtMs: BigInt(Date.now() - 20_000),
    waf: {
      ...{ requestId: 'attack', method: 'POST', path: '/search', address: '192.0.2.9', rules: [942_100] },
      ...{ score: 5, threshold: 5, blocked: true, matches: [{ rule: 942_100, part: 'argument', name: 'q' }] },
    },
  };
  await node.connection.call('reportSecurity', { events: [event] } as never);
}

const table = (page: Page) => page.getByRole('grid', { name: 'Logged requests' });
const sheet = (page: Page) => page.getByRole('dialog', { name: 'Request', exact: true });
const settings = (): Promise<Body> => api.ok('GET', `/sites/${siteId}/logs/settings`);

async function addFilter(page: Page, name: string, value: string): Promise<void> {
  await page.getByRole('combobox', { name: 'Filter', exact: true }).press('Enter');
  await page.getByRole('option', { name, exact: true }).click();
  await page.getByLabel('Value', { exact: true }).fill(value);
  await page.getByLabel('Value', { exact: true }).press('Enter');
}

test.serial('a site that logs nothing says so, and logs a share of its requests for an hour', async (t) => {
  const { page, faults, close } = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`);
  await page.getByText('Nodes log no requests of this site.').waitFor();
  await page.getByRole('heading', { name: 'No requests' }).waitFor();
  await screenshot(page, 'logs-off');
  t.deepEqual(await accessibilityFaults(page), []);
  const before = Date.now();
  await page.getByRole('button', { name: 'Log 10% of the requests for an hour' }).click();
  await page.getByText('Nodes log 10% of the requests, chosen by chance. Ends at', { exact: false }).waitFor();
  const saved = await settings();
  t.is(saved.sampleRate, 1000);
  t.true(Date.parse(saved.sampleUntil) >= before + HOUR_MS && Date.parse(saved.sampleUntil) <= Date.now() + HOUR_MS);
  // The end is taken away in the settings, and what else is logged is chosen there.
  await page.getByRole('button', { name: 'Log settings' }).click();
  await page.getByLabel('Share of requests').fill('100');
  await page.getByRole('combobox', { name: 'Until', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'No end' }).click();
  await page.getByText('Query string', { exact: true }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Nodes log all requests of this site.').waitFor();
  t.like(await settings(), { sampleRate: 10_000, sampleUntil: null, logQuery: true });
  await screenshot(page, 'logs-settings');
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);
  await close();
});

test.serial('requests are found by values that are pressed and typed, over time, and page after page', async (t) => {
  await served();
  const { page, faults, close } = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`, {
    theme: 'system',
  });
  const rows = table(page).locator('tbody tr');
  await page.getByText('100 requests shown').waitFor();
  await page.getByRole('slider', { name: 'Requests', exact: true }).locator('canvas').waitFor();
  await page.getByText('About 349 requests, estimated from a sample').waitFor();
  await page.getByRole('button', { name: 'Load more' }).click();
  await page.getByText('200 requests shown').waitFor();
  await page.getByRole('button', { name: 'Load more' }).click();
  await page.getByText('250 requests, these are all').waitFor();
  t.is(await rows.count(), 250);
  for (const theme of ['light', 'dark'] as const) {
    await showTheme(page, theme);
    t.deepEqual(await accessibilityFaults(page, theme === 'light' ? 'all' : 'colors'), []);
    await screenshot(page, `logs-${theme}`);
  }
  t.deepEqual(await layoutFaults(page), []);
  // A value of a row narrows the search, and the address keeps it.
  await rows.getByRole('button', { name: 'Filter by Status: 504' }).click();
  await page.waitForURL(/status=504/);
  await page.getByText('One request, this is all').waitFor();
  await page.getByRole('button', { name: 'Remove the filter Status: 504' }).click();
  await addFilter(page, 'Path starts with', '/old/');
  await page.waitForURL(/path=%2Fold%2F|path=\/old\//);
  await rows.getByText('POST /old/api').waitFor();
  await page.getByText('One request, this is all').waitFor();
  await page.getByRole('button', { name: 'Remove the filter Path starts with: /old/' }).click();
  // A value that no request can have is refused where it is typed.
  await addFilter(page, 'Visitor address', 'nowhere');
  await page.getByText('The filter cannot have this value.').waitFor();
  // The most frequent values.
  await page.getByRole('button', { name: 'Most frequent values' }).click();
  await page.getByRole('combobox', { name: 'Field', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'Blocked by', exact: true }).click();
  await page.getByRole('button', { name: 'Filter by Blocked by: WAF' }).first().click();
  await page.waitForURL(/blockReason=crs/);
  await page.getByText('One request, this is all').waitFor();
  await page.getByRole('button', { name: 'Remove the filter Blocked by: WAF' }).click();
  // A part of the time is brushed with the keyboard.
  const chart = page.getByRole('slider', { name: 'Requests', exact: true });
  await chart.locator('canvas').waitFor();
  await chart.focus();
  for (const key of ['Home', 'Shift+PageDown', 'Enter']) await page.keyboard.press(key);
  await page.waitForURL(/from=.*to=/);
  await page.getByText('Zoomed to').waitFor();
  t.deepEqual(faults(), []);
  await close();
});

test.serial(
  'a request says in words what became of it, and leads to a ban, a rule, a trial and its event',
  async (t) => {
    const { page, faults, close } = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`, {
      theme: 'system',
    });
    const open = async (path: string) => {
      await table(page)
        .getByRole('button', { name: `Show everything about ${path}` })
        .click();
      await sheet(page).waitFor();
    };
    await open('GET /checkout');
    await sheet(page).getByText('The visitor got status 504', { exact: false }).waitFor();
    await sheet(page).getByText('The origin timed out.', { exact: false }).waitFor();
    await sheet(page)
      .getByText('The node connected to the origin 198.51.100.4:443, but got no response headers.')
      .waitFor();
    await sheet(page).getByText('The response was not in the cache.').waitFor();
    await page.keyboard.press('Escape');

    await open('POST /old/api');
    await sheet(page).getByText('A rule blocked the request. Rule: “No old API”.').waitFor();
    t.deepEqual(await accessibilityFaults(page), []);
    await screenshot(page, 'logs-request');
    await sheet(page).getByRole('link', { name: 'Make a rule from this' }).click();
    const dialog = page.getByRole('dialog', { name: 'New rule' });
    await dialog.waitFor();
    t.is(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'Requests like POST /old/api');
    await dialog.getByText('/old/api', { exact: false }).first().waitFor();
    await screenshot(page, 'logs-rule');
    await dialog.getByRole('button', { name: 'Done', exact: true }).click();
    await page.getByText('Requests like POST /old/api').first().waitFor();
    await page.goto(`/sites/${siteId}/logs`);

    await open('POST /search');
    await sheet(page).getByText('The WAF blocked the request as an attack.').waitFor();
    await sheet(page).getByText('SQL injection in the argument “q”').waitFor();
    await screenshot(page, 'logs-attack');
    await sheet(page).getByRole('link', { name: 'Open the WAF event of this request' }).click();
    await page.getByRole('grid', { name: 'WAF events' }).getByRole('button', { name: 'Open POST /search' }).click();
    await page.getByRole('link', { name: 'Open the logged request' }).click();
    await page.waitForURL(/requestId=attack/);
    await open('POST /search');
    await sheet(page).getByRole('link', { name: 'Try this request' }).click();
    await page.getByRole('button', { name: 'Test', exact: true }).waitFor();
    t.is(await page.getByLabel('URL', { exact: true }).inputValue(), 'https://shop.example/search');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.goBack();
    await open('POST /search');
    await sheet(page).getByRole('link', { name: 'Ban this address' }).click();
    await page.getByRole('dialog').getByText('192.0.2.9', { exact: false }).first().waitFor();
    t.deepEqual(faults(), []);
    await close();
  },
);

test.serial('requests are followed as they end, also held while paused, and narrowed by a filter', async (t) => {
  const { page, faults, close } = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`);
  await page.getByRole('button', { name: 'Follow live' }).click();
  await page.waitForURL(/live=1/);
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('heading', { name: 'Waiting for requests' }).waitFor();
  t.deepEqual(await accessibilityFaults(page), []);
  const tell = (...paths: string[]) =>
    node.connection.call('reportLogTail', { rows: paths.map((path) => logged(0, { path })) } as never);
  await tell('/tail/one', '/tail/two');
  await eventually(
    async () =>
      (await table(page).locator('tbody tr code.log-request').allInnerTexts()).join() === 'GET /tail/two,GET /tail/one',
    { what: 'the latest is on top' },
  );
  await page.getByRole('button', { name: 'Pause' }).click();
  await tell('/tail/three');
  await page.getByText('One request came meanwhile.').waitFor();
  t.is(await table(page).locator('tbody tr').count(), 2);
  await screenshot(page, 'logs-tail');
  await page.getByRole('button', { name: 'Continue' }).click();
  await table(page).getByText('GET /tail/three').waitFor();
  // Another filter is another stream: nothing of the one before stays.
  await addFilter(page, 'Path starts with', '/other/');
  await page.getByRole('heading', { name: 'Waiting for requests' }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await tell('/tail/four', '/other/five');
  await table(page).getByText('GET /other/five').waitFor();
  t.is(await table(page).locator('tbody tr').count(), 1);
  await table(page).getByRole('button', { name: 'Show everything about GET /other/five' }).click();
  await sheet(page).getByText('The visitor got status 200', { exact: false }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Stop following' }).click();
  await page.getByRole('slider', { name: 'Requests', exact: true }).locator('canvas').waitFor();
  t.deepEqual(await layoutFaults(page), []);
  t.deepEqual(faults(), []);
  await close();
});

test.serial('hostile values are text, and the same page is there in Chinese and on a phone', async (t) => {
  const chinese = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs?requestId=odd`, {
    language: 'zh-CN',
  });
  await chinese.page.getByText('共 1 个请求，已全部显示').waitFor();
  await chinese.page.getByRole('grid').locator('tbody tr').first().focus();
  await chinese.page.keyboard.press('Enter');
  const detail = chinese.page.getByRole('dialog', { name: '请求' });
  await detail.getByText('此行约代表 100 个请求').waitFor();
  await detail.getByText('<b>"x"</b>=1', { exact: false }).first().waitFor();
  t.deepEqual(await layoutFaults(chinese.page), []);
  await screenshot(chinese.page, 'logs-request-zh');
  t.deepEqual(chinese.faults(), []);
  await chinese.close();
  const phone = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`, { width: 375 });
  await phone.page.getByText('100 requests shown').waitFor();
  t.deepEqual(await layoutFaults(phone.page), []);
  await screenshot(phone.page, 'logs-phone');
  t.deepEqual(phone.faults(), []);
  await phone.close();
});

test.serial('rows are downloaded at once, and written to a file in the background', async (t) => {
  const { page, faults, close } = await signedInVisit(browser, running.origin, `/sites/${siteId}/logs`);
  await page.getByText('100 requests shown').waitFor();
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  const [csv] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  t.regex(csv.suggestedFilename(), /\.csv$/);
  await page.getByText('The file contains all matching requests.').waitFor();
  await page.getByRole('button', { name: 'Export all as NDJSON' }).click();
  await page.getByText('The file is ready.', { exact: false }).waitFor();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download', exact: true }).click(),
  ]);
  t.regex(file.suggestedFilename(), /\.ndjson$/);
  t.deepEqual(faults(), []);
  await close();
  // The dossier of an address leads to its requests.
  const dossier = await signedInVisit(browser, running.origin, '/addresses/192.0.2.9');
  // The attack that its node told of, and the request itself.
  await dossier.page
    .getByRole('table', { name: 'Logged requests' })
    .getByRole('link', { name: 'POST /search' })
    .waitFor();
  t.is(await dossier.page.getByRole('link', { name: 'POST /search' }).count(), 2);
  t.deepEqual(await accessibilityFaults(dossier.page), []);
  t.deepEqual(await layoutFaults(dossier.page), []);
  await screenshot(dossier.page, 'logs-address');
  await dossier.page.getByRole('link', { name: 'Open the logs of this site' }).click();
  await dossier.page.waitForURL(/ip=192\.0\.2\.9/);
  await eventually(async () => (await table(dossier.page).locator('tbody tr').count()) === 1, { what: 'its request' });
  t.deepEqual(dossier.faults(), []);
  await dossier.close();
});
