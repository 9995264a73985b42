// One click to HTTPS: an operator asks for a certificate in the Web UI, is told what stands in the way and how far it is, and
// a browser opens the site over HTTP/2 and HTTP/3 from a real node.
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { freePort } from '../../bench/lib/servers.ts';
import { startBrowser, startHttpsBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { signedInVisit, startBrowsedConsole } from '../helpers/console-pages.ts';
import { saveButton, tracker } from '../helpers/console-stories.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Pebble, startTestPebble } from '../helpers/pebble.ts';

const HOST = 'one-click.example.com';
const PAGE = '<!doctype html><title>One click</title><h1>Hello over HTTPS</h1>';

let console: TestConsole & { origin: string };
let browser: Browser;
let pebble: Pebble;
let origin: Server;
let node: EdgeNode | undefined;
let clusterId: string;
let siteId: string;
let ports: { http: number; https: number };

test.before(async () => {
  const nodePort = await freePort();
  const env = {
    NODE_API_PORT: String(nodePort),
    SVC_NODE_API_URL: `https://localhost:${nodePort}`,
    SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8',
  };
  [console, browser] = await Promise.all([startBrowsedConsole({ env }), startBrowser()]);
  ports = { http: await freePort(), https: await freePort() };
  pebble = await startTestPebble({ httpPort: ports.http });
  origin = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(PAGE));
  await new Promise<void>((listening) => origin.listen(0, '127.0.0.1', listening));
  const { client } = console;
  clusterId = (await client.api<{ items: { id: string }[] }>('GET', '/clusters')).items[0]!.id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
    name: 'One click',
    domains: [HOST],
    origins: [{ address: '127.0.0.1', port: (origin.address() as AddressInfo).port }],
  });
  siteId = site.id;
});

test.after.always(async () => {
  await browser?.close();
  await node?.stop();
  await pebble?.stop();
  origin?.close();
  await console?.stop();
});

test.serial(
  'an own authority is named, by whom its server is vouched for, and a DNS credential is changed',
  async (t) => {
    const visitor = await signedInVisit(browser, console.origin, '/certificates');
    const { page } = visitor;
    await page.getByRole('button', { name: 'Custom CA', exact: true }).click();
    const authority = page.getByRole('dialog', { name: 'Custom CA' });
    await authority.getByLabel('Directory URL', { exact: true }).fill(pebble.url);
    await authority.getByRole('button', { name: 'Save', exact: true }).click();
    await authority.getByText(/certificate of the server is not trusted/).waitFor();
    await authority.getByLabel('CAs trusted for its server (PEM)', { exact: true }).fill(pebble.caPem);
    await authority.getByRole('button', { name: 'Save', exact: true }).click();
    await authority.waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'DNS credentials', exact: true }).click();
    await page.getByRole('button', { name: 'Add a DNS credential', exact: true }).first().click();
    const adding = page.getByRole('dialog', { name: 'Add a DNS credential' });
    for (const [label, text] of [
      ['Name', 'Own server'],
      ['Zone', 'example.com'],
      ['DNS server', 'ns.example.com'],
      ['TSIG key name', 'key.example.com'],
      ['Secret', 'c2VjcmV0IG9mIGEgdGVzdA=='],
    ] as const) {
      await adding.getByLabel(label, { exact: true }).fill(text);
    }
    await adding.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('button', { name: 'Edit Own server', exact: true }).click();
    const changing = page.getByRole('dialog', { name: 'Edit Own server' });
    t.is(await changing.getByLabel('DNS server', { exact: true }).inputValue(), 'ns.example.com');
    t.is(await changing.getByLabel('Secret', { exact: true }).inputValue(), '');
    await changing.getByLabel('DNS server', { exact: true }).fill('127.0.0.1:1');
    await changing.getByRole('button', { name: 'Save', exact: true }).click();
    await changing.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Test Own server', exact: true }).click();
    const trial = page.getByRole('dialog', { name: 'Test Own server' });
    await trial.getByText('Write the test record: failed. The console cannot reach the DNS server.').waitFor();
    await trial.getByText('Remove the test record: skipped').waitFor();
    await page.keyboard.press('Escape');
    await trial.waitFor({ state: 'detached' });
    const { items } = await console.client.api<{ items: object[] }>('GET', '/dns-credentials');
    t.like(items, [{ server: '127.0.0.1:1', keyName: 'key.example.com', zone: 'example.com' }]);
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
  },
);

test.serial('the button says what stands in the way, then how far it is, and the site has HTTPS', async (t) => {
  t.timeout(600_000);
  const visitor = await signedInVisit(browser, console.origin, `/sites/${siteId}/https`);
  const { page } = visitor;
  await page.getByText('This site is served over HTTP only.').waitFor();
  await page.getByRole('button', { name: 'Get a certificate', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'HTTPS for this site' });
  const ask = dialog.getByRole('button', { name: 'Get the certificate', exact: true });
  await dialog.getByText(`Domains requested: ${HOST}.`).waitFor();
  await dialog.getByText(/^No node of the cluster .* is online\./).waitFor();
  await dialog.getByText(`${HOST} does not resolve. Add a DNS record that points to the nodes.`).waitFor();
  t.true(await ask.isDisabled());
  // Nodes and where names point are nothing to DNS; with which credential is for a person to say.
  await dialog.getByRole('combobox', { name: 'Validation', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'DNS-01, by a DNS record', exact: true }).click();
  await dialog.getByRole('combobox', { name: 'DNS credential', exact: true }).click();
  await page.getByRole('option', { name: 'Own server', exact: true }).click();
  t.is(await dialog.getByText('Fix this first:').count(), 0);
  t.false(await ask.isDisabled());
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();

  node = await startEdgeNode({
    client: console.client,
    clusterId,
    listen: `127.0.0.1:${ports.http}`,
    httpsListen: `127.0.0.1:${ports.https}`,
    kernelBans: 'off',
  });
  await page.getByRole('button', { name: 'Get a certificate', exact: true }).click();
  await dialog.getByRole('combobox', { name: 'Certificate authority (CA)', exact: true }).press('Enter');
  await page.getByRole('option', { name: 'Custom CA', exact: true }).click();
  await dialog.getByText(`${HOST} does not resolve. Add a DNS record that points to the nodes.`).waitFor();
  t.is(await dialog.getByText(/^No node of the cluster/).count(), 0);
  t.true(await ask.isDisabled());
  await dialog.getByRole('switch', { name: 'Request the certificate anyway', exact: true }).press('Space');
  await dialog.getByLabel('Email address', { exact: true }).fill('ops@example.org');
  await dialog.getByRole('button', { name: 'Dry run', exact: true }).click();
  await dialog.getByText('Every step succeeded. Nothing was kept.').waitFor();
  await ask.click();
  const progress = page.getByRole('region', { name: 'Certificate issuance' });
  await progress.getByText('The certificate is issued.').waitFor();
  await page.getByText(/^HTTPS with .*, valid until/).waitFor();

  await page.getByRole('link', { name: 'Protocols', exact: true }).click();
  await page.getByRole('switch', { name: 'HTTP/3', exact: true }).press('Space');
  await saveButton(page).click();
  // Leaving before it is saved would be asked about.
  await tracker(page).first().waitFor();
  await eventually(async () => (await page.getByText(/unsaved changes?/).count()) === 0, {
    what: 'nothing is unsaved',
  });
  await page.getByRole('link', { name: 'Open the certificate' }).click();
  await page.getByText('Issued and renewed automatically').waitFor();
  await page.getByText('Serving', { exact: true }).waitFor();

  const fingerprint = page.locator('.certificate-page__code');
  const before = await fingerprint.textContent();
  await page.getByRole('button', { name: 'Renew now', exact: true }).click();
  const renewing = page.getByRole('dialog', { name: 'Renew One click now?' });
  await renewing.getByRole('button', { name: 'Renew now', exact: true }).click();
  await renewing.waitFor({ state: 'detached' });
  await eventually(async () => (await fingerprint.textContent()) !== before, {
    timeoutMs: 180_000,
    what: 'the next certificate',
  });
  await page.getByText('Serving', { exact: true }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

for (const protocol of ['h2', 'h3'] as const) {
  test.serial(`a browser opens the page without a warning over ${protocol}`, async (t) => {
    const site = `${HOST}:${ports.https}`;
    // Shown by a chain that leads to the authority's root, which the browser is told by the key alone.
    const spki = await eventually(() => keyOf(HOST, ports.https), { timeoutMs: 180_000, everyMs: 500 });
    await eventually(
      async () => {
        const chromium = await startHttpsBrowser({ site, spki, http3: protocol === 'h3' });
        try {
          const page = await chromium.newPage();
          const answer = await page.goto(`https://${site}/`);
          t.is(answer?.status(), 200);
          await page.getByRole('heading', { name: 'Hello over HTTPS' }).waitFor();
          const used = await page.evaluate<string>(`performance.getEntriesByType('navigation')[0].nextHopProtocol`);
          t.is(used, protocol);
          return true;
        } finally {
          await chromium.close();
        }
      },
      { timeoutMs: 120_000, everyMs: 2_000, what: `the page over ${protocol}` },
    );
  });
}

/** Base64 of the SHA-256 of the key that the node shows, to whoever trusts the authority's root and checks the name. */
function keyOf(host: string, port: number): Promise<string> {
  return new Promise((found, failed) => {
    const socket = connect({ host: '127.0.0.1', port, servername: host, ca: pebble.rootPem }, () => {
      const spki = socket.getPeerX509Certificate()!.publicKey.export({ type: 'spki', format: 'der' });
      socket.destroy();
      found(createHash('sha256').update(spki).digest('base64'));
    });
    socket.on('error', failed);
  });
}
