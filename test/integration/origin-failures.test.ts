// Origins that die, hang, have an expired certificate or resolve to a forbidden address, with a real console, agent and edge:
// what visitors get, and what the console says of site and origin. In the same stack, a gRPC service that is set by the API,
// and a visitor in Chromium whose origin dies.
import { createServer, type Server } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server as NetServer } from 'node:net';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { freePort } from '../../bench/lib/servers.ts';
import { startBrowser } from '../helpers/browser.ts';
import type { TestConsole } from '../helpers/console.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { startNodeConsole } from '../helpers/local-edge.ts';
import { Overview } from '../helpers/overview.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

/** Allowed, while what `localhost` resolves to is not. */
const ADDRESS = '127.0.0.2';
const DAY_MS = 86_400_000;

let running: TestConsole;
let api: Api;
let clusterId: string;
let edge: EdgeNode;
let edgePort: number;
let browser: Browser | undefined;
const servers: (NetServer | Server)[] = [];

test.before('start', async () => {
  running = await startNodeConsole();
  api = new Api(running);
  clusterId = await api.cluster('failures');
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: [`${ADDRESS}/32`] });
  edgePort = await freePort();
  const listen = `127.0.0.1:${edgePort}`;
  edge = await startEdgeNode({ client: running.client, clusterId, listen, kernelBans: 'off' });
});

test.after.always('stop', async () => {
  await browser?.close();
  for (const server of servers) server.close();
  await edge?.stop();
  await running?.stop();
});

async function listen(server: NetServer): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve));
  return (server.address() as AddressInfo).port;
}

const ask = (host: string) => edgeGet({ host: '127.0.0.1', port: edgePort }, host, { 'accept-language': 'en' });

/** An origin that fails, and what becomes of it. */
const CASES = [
  {
    name: 'dies',
    origin: async () => ({ port: await freePort() }),
    page: [502, 'origin-unreachable'],
    cause: 'origin-unreachable',
    error: 'connect_failed',
  },
  {
    name: 'hangs',
    origin: async () => ({ port: await listen(createServer(() => undefined)) }),
    page: [504, 'origin-timeout'],
    cause: 'origin-timeout',
    error: 'timeout',
  },
  {
    name: 'expired',
    origin: async () => {
      const notBefore = new Date(Date.now() - 2 * DAY_MS);
      const notAfter = new Date(Date.now() - DAY_MS);
      const { pem, privateKeyPem } = await testCertificate([ADDRESS], { notBefore, notAfter });
      return { port: await listen(createHttpsServer({ cert: pem, key: privateKeyPem })), scheme: 'https' };
    },
    page: [502, 'origin-unreachable'],
    cause: 'origin-tls',
    error: 'tls_failed',
  },
  {
    name: 'forbidden',
    origin: async () => ({ address: 'localhost', port: 80 }),
    page: [502, 'no-origin'],
    cause: 'origin-forbidden',
    error: 'address_forbidden',
  },
] as const;

test('each failure of an origin has its page for visitors, and its cause in the console until the origin responds', async (t) => {
  const good = await listen(createServer((_request, response) => void response.end('ok')));
  const overview = new Overview(api);
  const failing = async (id: string): Promise<Body | undefined> =>
    (await overview.get(clusterId)).attention.find(
      ({ kind, named }: Body) => kind === 'site_failing' && named[0].id === id,
    );
  const sites = await Promise.all(
    CASES.map(async (one) => {
      const domain = `${one.name}.example`;
      const { id } = await api.site(clusterId, domain, {
        origins: [{ address: ADDRESS, port: good }],
        originSettings: { readTimeoutMs: 500 },
      });
      return { ...one, id, domain };
    }),
  );
  for (const { domain } of sites) await eventually(async () => (await ask(domain)).status === 200);
  await Promise.all(
    sites.map(async ({ id, name, domain, origin, page, cause, error }) => {
      const origins = [{ address: ADDRESS, ...(await origin()) }];
      const { revision } = await api.ok('PATCH', `/sites/${id}`, { origins });
      const [status, code] = page;
      const answer = await eventually(async () => {
        const got = await ask(domain);
        return got.status === status && got;
      });
      t.is(answer.headers['x-svc-error'], code, name);
      t.regex(answer.body, /This is not your fault/, name);
      t.true(answer.body.includes(String(answer.headers['x-request-id'])), name);
      const item = await eventually(
        async () => {
          await ask(domain);
          return failing(id);
        },
        { what: `${name} in the overview`, everyMs: 200 },
      );
      t.like(item, { level: 'act', problem: cause, revision }, name);
      const health = await eventually(
        async () => {
          const [found] = (await api.ok('GET', `/sites/${id}/origin-health`)).items;
          return found.traffic?.failures.length > 0 && found;
        },
        { what: `the health of ${name}`, everyMs: 200 },
      );
      t.like(health, { lastErrorCode: error, onlineNodes: 1 }, name);
      t.deepEqual(
        health.traffic.failures.map((failure: Body) => failure.error),
        [error],
        name,
      );
      await api.ok('POST', `/clusters/${clusterId}/revisions/${revision}/undo`, {});
      await eventually(
        async () => {
          await ask(domain);
          return (await failing(id)) === undefined;
        },
        { what: `the end of ${name}`, everyMs: 500 },
      );
      t.is((await ask(domain)).body, 'ok', name);
    }),
  );
});

test('a gRPC service that is set by the API is reached through the edge, with trailers and errors of its protocol', async (t) => {
  const origin = createHttp2Server();
  origin.on('stream', (stream, headers) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-path': headers[':path'] }));
    stream.pipe(stream);
  });
  const port = await listen(origin);
  const { id } = await api.site(clusterId, 'grpc.example', {
    origins: [{ address: ADDRESS, port }],
    originSettings: { protocol: 'http2', grpc: true },
  });
  const message = Buffer.from([0, 0, 0, 0, 2, 8, 1]);
  const callService = () =>
    new Promise<{ body: Buffer; status: string; error: string; path: string }>((resolve, reject) => {
      const session = connect(`http://127.0.0.1:${edgePort}`);
      session.on('error', reject);
      const stream = session.request({
        ':method': 'POST',
        ':authority': 'grpc.example',
        ':path': '/echo.Echo/Say',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      const parts: Buffer[] = [];
      let fields: Record<string, unknown> = {};
      stream.on('response', (headers) => {
        fields = { ...fields, ...headers };
      });
      stream.on('trailers', (trailers) => {
        fields = { ...fields, ...trailers };
      });
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('error', reject);
      stream.on('end', () => {
        session.close();
        const text = (name: string) => String(fields[name] ?? '');
        resolve({
          body: Buffer.concat(parts),
          status: text('grpc-status'),
          error: text('x-svc-error'),
          path: text('x-path'),
        });
      });
      stream.end(message);
    });
  const answer = await eventually(async () => {
    const got = await callService();
    return got.status === '0' && got;
  });
  t.deepEqual(answer, { body: message, status: '0', error: '', path: '/echo.Echo/Say' });
  await api.ok('PATCH', `/sites/${id}`, { origins: [{ address: ADDRESS, port: await freePort() }] });
  const dead = await eventually(async () => {
    const got = await callService();
    return got.status !== '0' && got;
  });
  t.deepEqual([dead.status, dead.error], ['14', 'origin-unreachable']);
});

test('a browser stays on its origin, and moves with its next request once that origin is gone', async (t) => {
  const named = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      const server = createServer((_request, response) => void response.end(name));
      return { name, server, port: await listen(server) };
    }),
  );
  await api.site(clusterId, 'affinity.example', {
    origins: named.map(({ port }) => ({ address: ADDRESS, port })),
    originSettings: { sessionAffinity: { enabled: true, ttlSeconds: 3600 } },
  });
  await eventually(async () => (await ask('affinity.example')).status === 200);
  browser = await startBrowser('*.example');
  const context = await browser.newContext();
  const page = await context.newPage();
  const load = async () => {
    const response = await page.goto(`http://affinity.example:${edgePort}/`);
    return [response?.status(), await page.locator('body').textContent()];
  };
  const [, first] = await load();
  const pin = (await context.cookies()).find(({ name }) => name === 'ew_affinity_http');
  t.true(pin?.httpOnly);
  for (let again = 0; again < 12; again++) t.deepEqual(await load(), [200, first]);
  const gone = named.find(({ name }) => name === first)!;
  gone.server.close();
  gone.server.closeAllConnections();
  const [status, second] = await load();
  t.is(status, 200);
  t.not(second, first);
  for (let again = 0; again < 12; again++) t.deepEqual(await load(), [200, second]);
});
