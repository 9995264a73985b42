// The story of a bad hour in the Web UI: one site is flooded while the origin of another fails. An operator who opens the console
// finds both, sees why, and acts. The steps are counted and told.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { freePort } from '../../bench/lib/servers.ts';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { layoutFaults, screenshot, signedInVisit, startBrowsedConsole } from '../helpers/console-pages.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { edgeSend } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER } from '../helpers/installation.ts';
import { Api } from '../helpers/resources.ts';
import { rollUpTraffic } from '../helpers/rolled-up-traffic.ts';
import { type Address, Visitor } from '../helpers/visitor.ts';

const ATTACKER = '203.0.113.9';
const FAILED = 40;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let node: EdgeNode;
let edge: Address;
let origin: Server;
let failingId: string;
let floodedId: string;

test.before(async () => {
  browser = await startBrowser();
  const nodePort = await freePort();
  const env = { NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` };
  running = await startBrowsedConsole({ env });
  api = new Api(running);
  const clusterId = await api.cluster('hong-kong');
  const loopback = ['127.0.0.0/8'];
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: loopback });
  await api.ok('PUT', `/clusters/${clusterId}/client-ip`, {
    settings: { mode: 'header', trustedCidrs: loopback, header: CLIENT_IP_HEADER },
  });
  origin = createServer((_request, response) => response.end('news'));
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  const { port } = origin.address() as AddressInfo;
  const siteOf = async (domain: string, at: number): Promise<string> => {
    const body = { clusterId, domains: [domain], origins: [{ address: '127.0.0.1', port: at }] };
    return (await api.ok('POST', '/sites', body)).site.id;
  };
  failingId = await siteOf('shop.example', await freePort());
  floodedId = await siteOf('news.example', port);
  await api.ok('PATCH', `/sites/${floodedId}/waf`, { mode: 'block' });
  // A level that a test reaches in seconds, and no ban: that is the operator's.
  await api.ok('PATCH', `/sites/${floodedId}/protection`, {
    cc: {
      enabled: true,
      maxLevel: 'js',
      windowSeconds: 5,
      siteQps: 20,
      urlQps: 0,
      ipQps: 0,
      originErrorPercent: 0,
      escalateAfterSeconds: 1,
      cooldownSeconds: 600,
    },
  });
  edge = { host: '127.0.0.1', port: await freePort() };
  const listen = `${edge.host}:${edge.port}`;
  node = await startEdgeNode({ client: running.client, clusterId, listen, kernelBans: 'off' });
});
test.after.always(async () => {
  await node?.stop();
  origin?.closeAllConnections();
  origin?.close();
  await browser?.close();
  await running?.stop();
});

/** The origin of the one site is away. The other is attacked and flooded from one address, until its level rises. */
async function badHour(): Promise<void> {
  const served = () => edgeSend(edge, 'news.example', {}).then(({ status }) => status === 200);
  await eventually(() => served().catch(() => false), { what: 'the edge to serve' });
  const attack = {
    method: 'POST',
    path: '/login',
    headers: { [CLIENT_IP_HEADER]: ATTACKER, 'content-type': 'application/x-www-form-urlencoded' },
    body: "user=1' OR '1'='1' UNION SELECT password FROM users--",
  };
  await eventually(async () => (await edgeSend(edge, 'news.example', attack)).status === 403, { what: 'the WAF' });
  for (let sent = 0; sent < FAILED; sent++) await edgeSend(edge, 'shop.example', {});
  const attacker = new Visitor(ATTACKER);
  try {
    await eventually(async () => (await attacker.get(edge, 'news.example')).challenge === 'js', {
      everyMs: 1,
      what: 'the level to rise',
    });
  } finally {
    attacker.close();
  }
  // What the node tells comes by itself: counts of a minute once it has ended, events within seconds.
  const failures = async () => {
    await rollUpTraffic(running);
    const { statuses } = await api.ok('GET', `/analytics/traffic?range=24h&siteId=${failingId}`);
    const counted: { status: number; requests: number }[] = statuses;
    return counted.filter(({ status }) => status >= 500).reduce((sum, { requests }) => sum + requests, 0) >= FAILED;
  };
  await eventually(failures, { everyMs: 2000, timeoutMs: 240_000, what: 'the failures to be counted' });
  const seen = async () => {
    const waf = await api.ok('GET', `/sites/${floodedId}/waf/events?pageSize=1`);
    const { items } = await api.ok('GET', `/sites/${floodedId}/security/events?pageSize=1`);
    return waf.items.length > 0 && items.length > 0;
  };
  await eventually(seen, { what: 'the events of the flood' });
}

test('a flood and a failing origin are found, understood and acted on in a few clicks', async (t) => {
  t.timeout(600_000);
  await badHour();
  const { page, faults } = await signedInVisit(browser, running.origin, '/');
  const story = counting();

  // Which site fails, and since when: the list of sites shows the last day of each.
  await story.click(page.getByRole('link', { name: 'Sites', exact: true }));
  const row = page.getByRole('row').filter({ hasText: 'shop.example' });
  const spark = row.getByRole('img', { name: /requests in 24 hours, [0-9]+ of them failed/ });
  await spark.waitFor();
  await screenshot(page, 'attack-sites');
  await story.click(spark);
  await page.getByRole('region', { name: 'Failures by cause' }).getByText('Origin not reachable').waitFor();
  const chart = page.getByRole('slider', { name: 'Requests', exact: true });
  await chart.locator('canvas').waitFor();
  await screenshot(page, 'attack-statistics');
  const understood = story.done();

  // The origin has moved: its new address is saved.
  await story.click(page.getByRole('link', { name: 'Origins', exact: true }));
  await page.getByLabel('Address or host name', { exact: true }).first().fill('93.184.216.77');
  await story.click(page.getByRole('button', { name: 'Save', exact: true }).first());
  await eventually(async () => (await api.ok('GET', `/sites/${failingId}`)).origins[0].address === '93.184.216.77', {
    what: 'the saved origin',
  });

  // The flood: who it is, what else is known of the address, and a ban.
  await story.click(page.getByRole('link', { name: 'Incidents & Under Attack' }));
  await story.click(page.getByRole('link', { name: ATTACKER, exact: true }).first());
  await page.getByRole('heading', { name: 'WAF events of the last 24 hours' }).waitFor();
  await page.getByRole('slider', { name: 'WAF events of the last 24 hours' }).locator('canvas').waitFor();
  await page.getByText('POST /login').first().waitFor();
  t.deepEqual(await layoutFaults(page), []);
  await screenshot(page, 'attack-address');
  await story.click(page.getByRole('button', { name: 'Ban', exact: true }));
  const dialog = page.getByRole('dialog');
  await story.click(dialog.getByRole('button', { name: 'Ban', exact: true }));
  const ban = await eventually(async () => {
    const { items } = await api.ok('GET', '/bans?source=manual');
    return items.length > 0 && items[0];
  });
  t.is(ban.cidr, `${ATTACKER}/32`);
  const acted = story.done();
  t.true(understood.clicks <= 3, `${understood.clicks} clicks to the cause`);
  t.true(acted.clicks <= 8, `${acted.clicks} clicks to the ban`);
  t.log(`cause: ${understood.clicks} clicks, ${understood.seconds} s; ban: ${acted.clicks} clicks, ${acted.seconds} s`);
  t.deepEqual(faults(), []);

  const narrow = await signedInVisit(browser, running.origin, `/sites/${failingId}`, {
    language: 'zh-CN',
    theme: 'dark',
    width: 400,
  });
  await narrow.page.getByRole('slider', { name: '请求数', exact: true }).locator('canvas').waitFor();
  t.deepEqual(await layoutFaults(narrow.page), []);
  await screenshot(narrow.page, 'attack-site-zh-400');
  t.deepEqual(narrow.faults(), []);
});

/** Counts what an operator does. */
function counting() {
  const began = performance.now();
  let clicks = 0;
  return {
    click: async (what: ReturnType<Page['getByRole']>) => {
      clicks++;
      await what.click();
    },
    done: () => ({ clicks, seconds: Math.round((performance.now() - began) / 100) / 10 }),
  };
}
