// HTTPS on its whole way: a certificate uploaded through the API, pulled by a real node, shown to clients, replaced under
// load, and served by a Caddy that was killed.
import { statSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import https from 'node:https';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Installation, startInstallation } from '../helpers/installation.ts';
import { ProtocolClient } from '../helpers/protocol-client.ts';
import { type TestAuthority, testAuthority, testCertificate } from '../helpers/site-certificates.ts';
import { TlsVisitors } from '../helpers/tls-visitors.ts';

const HOST = 'shop.example.com';
const APPLIED = { timeoutMs: 60_000, everyMs: 500 };
/** Visitors are told to come a thousand a second; a busy machine answers less, which is still a load. */
const LOADED = 300;

let installation: Installation;
let authority: TestAuthority;
let siteId: string;
let certificateId: string;
let first: string;

test.before('start everything', async () => {
  [installation, authority] = await Promise.all([startInstallation(), testAuthority('Stories of HTTPS')]);
  const { client, origin } = installation;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', { domains: [HOST], origins: [origin] });
  siteId = site.id;
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', () => installation?.stop());

/** One GET over a connection of its own, checked against the authority. */
function httpsGet(
  host: string,
  port = installation.edge.httpsPort,
): Promise<{ status: number; body: string; fingerprint: string }> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      {
        host: '127.0.0.1',
        port,
        servername: host,
        headers: { host },
        ca: authority.pem,
        agent: false,
        timeout: 10_000,
      },
      (response) => {
        const { fingerprint256 } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate();
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body, fingerprint: plain(fingerprint256) }),
        );
        response.on('error', reject);
      },
    );
    request.on('timeout', () => request.destroy(new Error('the edge does not answer')));
    request.on('error', reject);
    request.end();
  });
}

const plain = (fingerprint: string) => fingerprint.replaceAll(':', '').toLowerCase();
const issued = () => testCertificate([HOST], { issuer: authority });

test.serial('an uploaded certificate is shown to clients, and plain requests are redirected', async (t) => {
  const { client } = installation;
  await t.throwsAsync(httpsGet(HOST));
  const { chainPem, privateKeyPem, fingerprint } = await issued();
  first = fingerprint;
  ({ id: certificateId } = await client.api<{ id: string }>('POST', '/certificates/upload', {
    name: 'shop',
    chainPem,
    privateKeyPem,
  }));
  await client.api('PUT', `/sites/${siteId}/https`, { settings: { certificateId, forceHttps: true, hstsMaxAge: 300 } });
  const answer = await eventually(() => httpsGet(HOST), APPLIED);
  t.deepEqual(answer, { status: 200, body: 'origin', fingerprint });
  const redirected = await edgeGet(installation.edge, HOST, {}, '/a?b=c');
  t.is(redirected.status, 301);
  t.is(redirected.headers.location, `https://${HOST}/a?b=c`);
  const nodes = await client.api<{ items: { state: string }[] }>('GET', `/certificates/${certificateId}/nodes`);
  t.deepEqual(
    nodes.items.map(({ state }) => state),
    ['serving'],
  );
});

test.serial('HTTP/2 is spoken where the client offers it, with HSTS', async (t) => {
  const session = connectHttp2(`https://${HOST}:${installation.edge.httpsPort}`, {
    ca: authority.pem,
    createConnection: () =>
      connectTls({
        host: '127.0.0.1',
        port: installation.edge.httpsPort,
        servername: HOST,
        ca: authority.pem,
        ALPNProtocols: ['h2'],
      }),
  });
  t.teardown(() => session.destroy());
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({ ':path': '/', ':authority': HOST });
    stream.on('response', resolve);
    stream.on('error', reject);
    stream.resume();
  });
  t.is(headers[':status'], 200);
  t.is(headers['strict-transport-security'], 'max-age=300');
});

test.serial('names of no site get no handshake, and plain HTTP on a port of TLS is told so', async (t) => {
  await t.throwsAsync(httpsGet('nobody.example.com'));
  const answer = await edgeGet({ host: '127.0.0.1', port: installation.edge.httpsPort }, HOST);
  t.is(answer.status, 400);
  t.is(answer.headers['x-svc-error'], 'https-required');
});

test.serial(
  'a certificate is replaced and a port opened and closed under load, and not one request fails',
  async (t) => {
    t.timeout(600_000);
    const { client, edge, clusterId } = installation;
    await client.api('PUT', `/sites/${siteId}/https`, { settings: { certificateId, http3: true } });
    const quic = await ProtocolClient.start(3, edge.httpsPort, authority.pem);
    t.teardown(() => quic.close());
    await eventually(() => quic.ask(HOST), APPLIED);
    let asking = true;
    const overQuic = { answered: 0, failures: [] as string[] };
    const visitQuic = (async () => {
      while (asking) {
        const { status, proto } = await quic.ask(HOST).catch((error: unknown) => ({ status: 0, proto: String(error) }));
        if (status === 200 && proto === 'HTTP/3.0') overQuic.answered += 1;
        else overQuic.failures.push(`${status} ${proto}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    const visitors = new TlsVisitors({ port: edge.httpsPort, host: HOST, ca: authority.pem, perSecond: 1000 });
    const failed = () => visitors.failed > 0 || overQuic.failures.length > 0;
    /** The edge is really under load, over each protocol. */
    const more = async (count: number) => {
      const [before, quicBefore] = [visitors.total, overQuic.answered];
      const came = () => visitors.total >= before + count && overQuic.answered >= quicBefore + 10;
      await eventually(() => (came() && visitors.rate >= LOADED) || failed(), { ...APPLIED, what: 'the load' });
    };
    const port = await freePort();
    const certificates = [first];
    const asks = (): Promise<boolean> =>
      httpsGet(HOST, port).then(
        ({ status }) => status === 200,
        () => false,
      );
    try {
      await more(1000);
      for (let round = 0; round < 2; round++) {
        const { chainPem, privateKeyPem, fingerprint } = await issued();
        certificates.push(fingerprint);
        await client.api('PUT', `/certificates/${certificateId}`, { chainPem, privateKeyPem });
        await eventually(() => visitors.fingerprints.has(fingerprint) || failed(), APPLIED);
        await more(100);
      }
      await client.api('PUT', `/clusters/${clusterId}/listen-ports`, { httpPorts: [], httpsPorts: [port] });
      await client.api('PATCH', `/sites/${siteId}`, { ports: { http: [80], https: [443, port] } });
      await eventually(asks, APPLIED);
      const opened = await ProtocolClient.start(3, port, authority.pem);
      t.teardown(() => opened.close());
      const answer = await eventually(() => opened.ask(`${HOST}:${port}`), APPLIED);
      t.like(answer, { status: 200, proto: 'HTTP/3.0' });
      t.is(answer.headers['alt-svc'], `h3=":${port}"; ma=86400`);
      await more(1000);
      await client.api('PATCH', `/sites/${siteId}`, { ports: { http: [80], https: [443] } });
      await client.api('PUT', `/clusters/${clusterId}/listen-ports`, { httpPorts: [], httpsPorts: [] });
      await eventually(async () => !(await asks()), APPLIED);
      await more(1000);
    } finally {
      asking = false;
      await Promise.all([visitors.stop(), visitQuic]);
    }
    t.log({ ...visitors.answered, http3: overQuic.answered });
    t.deepEqual([...visitors.failures, ...overQuic.failures], []);
    for (const count of Object.values(visitors.answered)) t.true(count > 0);
    for (const seen of visitors.fingerprints) t.true(certificates.includes(seen));
  },
);

test.serial('a Caddy that was killed serves it from the disk of the node', async (t) => {
  const { node } = installation;
  const { caddy } = node.pids()!;
  process.kill(caddy, 'SIGKILL');
  await eventually(() => node.pids() !== undefined && node.pids()!.caddy !== caddy, APPLIED);
  t.is((await eventually(() => httpsGet(HOST), APPLIED)).status, 200);
});

test.serial(
  'an agent that is killed while it takes a certificate over takes it over again, and visitors notice nothing',
  async (t) => {
    const { client, edge, node } = installation;
    const pack = join(node.stateDir, 'edge', 'certificates.pack');
    const visitors = new TlsVisitors({ port: edge.httpsPort, host: HOST, ca: authority.pem, perSecond: 50 });
    try {
      for (const dies of ['when it was told', 'when it is on disk'] as const) {
        const { chainPem, privateKeyPem, fingerprint } = await issued();
        const { agent } = await eventually(() => node.pids(), APPLIED);
        const { size } = statSync(pack);
        const put = client.api('PUT', `/certificates/${certificateId}`, { chainPem, privateKeyPem });
        await (dies === 'when it was told' ? put : eventually(() => statSync(pack).size > size, { everyMs: 1 }));
        process.kill(agent, 'SIGKILL');
        await put;
        const isShown = () => visitors.fingerprints.has(fingerprint) || visitors.failed > 0;
        await eventually(isShown, { ...APPLIED, what: `the certificate of an agent that died ${dies}` });
        t.not(node.pids()?.agent, agent, dies);
      }
    } finally {
      await visitors.stop();
    }
    t.deepEqual(visitors.failures, []);
  },
);

test.serial('a certificate that a site uses stays', async (t) => {
  const error = await t.throwsAsync(installation.client.api('DELETE', `/certificates/${certificateId}`));
  t.regex(String((error as Error & { answer?: { body: unknown } }).message), /409|CERTIFICATE_IN_USE/);
});
