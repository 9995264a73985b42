// Compression with a real console, agent and Caddy: settings of a site, rules, and what clients and origins see of them.
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import test from 'ava';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';

const DOMAIN = 'compressed.example';
const PAGE = '<p>the same again and again</p>\n'.repeat(100);

const decoders: Record<string, (from: Buffer) => Promise<Buffer>> = {
  gzip: promisify(zlib.gunzip),
  br: promisify(zlib.brotliDecompress),
  zstd: promisify(zlib.zstdDecompress),
};

let installation: Installation;
let siteId: string;
let asked: IncomingHttpHeaders = {};
const origin = createServer(({ headers }, response) => {
  asked = headers;
  if (headers['if-none-match']?.split(', ').includes('"page"')) {
    response.writeHead(304, { etag: '"page"' }).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'text/html', etag: '"page"', 'content-length': PAGE.length }).end(PAGE);
});

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

function get(headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const all = { ...headers, host: DOMAIN, [CLIENT_IP_HEADER]: '192.0.2.1' };
    const sent = request({ ...installation.edge, headers: all, agent: false, timeout: 5000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const decode = decoders[response.headers['content-encoding'] ?? ''] ?? (async (raw: Buffer) => raw);
        decode(Buffer.concat(chunks)).then(
          (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: body.toString() }),
          reject,
        );
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('the edge does not answer')));
    sent.on('error', reject);
    sent.end();
  });
}

const coding = async (accepted: string) => (await get({ 'accept-encoding': accepted })).headers['content-encoding'];

test.before('a console, a node, a site and its origin', async () => {
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  installation = await startInstallation();
  const { site } = await installation.client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: [DOMAIN],
    origins: [{ address: '127.0.0.1', port: (origin.address() as AddressInfo).port }],
  });
  siteId = site.id;
  await eventually(async () => (await get()).status === 200, { what: 'the site' });
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await installation?.stop();
  origin.closeAllConnections();
  origin.close();
});

test.serial('a site that nobody changed has gzip, and its origin is asked for what can be compressed', async (t) => {
  const { headers, body } = await get({ 'accept-encoding': 'zstd, br, gzip' });
  t.is(headers['content-encoding'], 'gzip');
  t.is(headers.vary, 'Accept-Encoding');
  t.is(headers.etag, 'W/"page"');
  t.is(body, PAGE);
  t.is(asked['accept-encoding'], undefined);
  const plain = await get();
  t.deepEqual([plain.headers['content-encoding'], plain.headers.etag, plain.body], [undefined, '"page"', PAGE]);
  const again = await get({ 'accept-encoding': 'gzip', 'if-none-match': 'W/"page"' });
  t.deepEqual([again.status, again.headers.etag], [304, 'W/"page"']);
});

test.serial('the codings that are saved are at the node, and a rule chooses among them', async (t) => {
  const { client } = installation;
  await client.api('PUT', `/sites/${siteId}/https`, { settings: { zstd: true, brotli: true, brotliLevel: 4 } });
  await eventually(async () => (await coding('zstd, br, gzip')) === 'zstd', { what: 'Zstandard at the node' });
  for (const each of ['zstd', 'br', 'gzip']) {
    const { headers, body } = await get({ 'accept-encoding': each });
    t.deepEqual([headers['content-encoding'], body], [each, PAGE]);
  }
  t.is(await coding('zstd;q=0.5, br'), 'br');

  const rule = { name: 'rule', phase: 'compression', expression: 'true', enabled: true };
  const saved = (algorithms: string[]) =>
    client.api('PUT', `/sites/${siteId}/rules`, { rules: [{ ...rule, action: { kind: 'compression', algorithms } }] });
  await saved(['gzip', 'br']);
  await eventually(async () => (await coding('zstd, br, gzip')) === 'gzip', { what: 'the order of the rule' });
  t.is(await coding('zstd, br, gzip;q=0'), 'br');
  await saved([]);
  await eventually(async () => (await coding('zstd, br, gzip')) === undefined, { what: 'no coding' });
  await client.api('PUT', `/sites/${siteId}/rules`, { rules: [] });
  await eventually(async () => (await coding('zstd, br, gzip')) === 'zstd', { what: 'the rule gone' });
});

test.serial('without any coding origins are told what the client accepts', async (t) => {
  await installation.client.api('PUT', `/sites/${siteId}/https`, { settings: { gzip: false } });
  await eventually(async () => (await coding('gzip, br')) === undefined, { what: 'no compression' });
  t.is(asked['accept-encoding'], 'gzip, br');
  const { headers } = await get({ 'accept-encoding': 'gzip' });
  t.deepEqual([headers.vary, headers.etag], [undefined, '"page"']);
});
