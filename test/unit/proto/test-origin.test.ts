// What a test of an origin says of each way in which an origin may be wrong, over real sockets.
import { createServer } from 'node:http';
import { createServer as createH2 } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type TestedOrigin, testOrigin } from '../../../proto/origin-test/test-origin.ts';
import { testCertificate } from '../../helpers/site-certificates.ts';

const HOST = '127.0.0.1';

async function listen(t: ExecutionContext, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

interface Asked extends Partial<Omit<TestedOrigin, 'origin'>> {
  address?: string;
  scheme?: 'http' | 'https';
  sni?: string;
  hostHeader?: string;
}

async function tried(
  port: number,
  { address = HOST, scheme = 'http', sni = '', hostHeader = '', ...more }: Asked = {},
) {
  const origin = { address, scheme, port, sni, hostHeader, weight: 1, backup: false, group: '' };
  const common = { host: '', path: '/', tlsVerify: true, protocol: 'http1' as const, timeoutMs: 30_000 };
  const result = await testOrigin({ origin, ...common, allow: ['127.0.0.0/8'], ...more });
  const steps = result.steps.map(({ step, failure }) => (failure ? `${step}: ${failure}` : step)).join(', ');
  return { ...result, steps };
}

test('an origin that responds: its status, to the host that visitors would ask for', async (t) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.headers.host} ${request.url}`);
    response.writeHead(request.url === '/down' ? 503 : 200).end('x'.repeat(100_000));
  });
  const port = await listen(t, server);
  t.like(await tried(port), { steps: 'address, connect, response', address: HOST, status: 200 });
  t.like(await tried(port, { host: 'shop.example', path: '/down' }), { status: 503 });
  await tried(port, { host: 'shop.example', hostHeader: 'inner.example' });
  t.deepEqual(asked, [`${HOST}:${port} /`, 'shop.example /down', 'inner.example /']);
});

test('an origin that cannot be reached: the step that fails, and why', async (t) => {
  const closed = createTcp();
  const port = await listen(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  t.like(await tried(port), { steps: 'address, connect: refused', status: null });
  t.like(await tried(port, { address: 'nowhere.invalid' }), { steps: 'address: not_found', address: null });
  t.like(await tried(port, { allow: [] }), { steps: 'address: forbidden', address: HOST, range: '127.0.0.0/8' });
});

test('a server that does not speak HTTP, ends the connection, or says nothing', async (t) => {
  const garbage = createTcp((socket) => socket.on('error', () => undefined).end('SSH-2.0-nobody\r\n'));
  t.is((await tried(await listen(t, garbage))).steps, 'address, connect, response: not_http');
  const ends = createTcp((socket) => socket.on('error', () => undefined).on('data', () => socket.destroy()));
  t.is((await tried(await listen(t, ends))).steps, 'address, connect, response: closed');
  const silent = createTcp((socket) => t.teardown(() => socket.destroy()));
  t.is((await tried(await listen(t, silent), { timeoutMs: 300 })).steps, 'address, connect, response: timeout');
});

test('TLS: certificates of other names and authorities, and servers without TLS', async (t) => {
  const { pem, privateKeyPem } = await testCertificate(['origin.example'], { authority: true });
  const server = createHttps({ cert: pem, key: privateKeyPem }, (_request, response) => response.end());
  const port = await listen(t, server);
  const https = { scheme: 'https' as const };
  t.is((await tried(port, https)).steps, 'address, connect, tls: certificate_untrusted');
  t.like(await tried(port, { ...https, tlsVerify: false }), { steps: 'address, connect, tls, response', status: 200 });
  t.is(
    (await tried(port, { ...https, tlsVerify: false, protocol: 'http2' })).steps,
    'address, connect, tls: not_http2',
  );
  const plain = await listen(t, createServer());
  t.is((await tried(plain, https)).steps, 'address, connect, tls: handshake');
});

test('HTTP/2 to origins, and origins that do not speak it', async (t) => {
  const server = createH2((_request, response) => response.writeHead(204).end());
  t.like(await tried(await listen(t, server), { protocol: 'http2' }), { status: 204 });
  const plain = await listen(
    t,
    createServer((_request, response) => response.end()),
  );
  t.is((await tried(plain, { protocol: 'http2' })).steps, 'address, connect, response: not_http');
});
