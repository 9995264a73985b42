// What protects and changes requests does so over every version of HTTP, with a real console, agent and Caddy: bans,
// challenges, CC, rules of each phase, the address of clients, and what is counted.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { RuleInput } from '../../contract/scalars/rule.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';
import { existingRunFolders } from '../helpers/node-files.ts';
import { type ProtocolAnswer, ProtocolClient, type ProtocolRequest, type Version } from '../helpers/protocol-client.ts';
import { testAuthority, testCertificate } from '../helpers/site-certificates.ts';
import { Visitor } from '../helpers/visitor.ts';

const VERSIONS: readonly Version[] = [1, 2, 3];
/** One site for each, so that what is counted for it came over one version. */
const HOSTS: Record<Version, string> = { 1: 'one.example', 2: 'two.example', 3: 'three.example' };
const PROTO: Record<Version, string> = { 1: 'HTTP/1.1', 2: 'HTTP/2.0', 3: 'HTTP/3.0' };
/** Letters of JA4 for transport, version, name and, after the counts, the first protocol that a client offers. */
const JA4: Record<Version, RegExp> = { 1: /^t13d\d{4}00_/, 2: /^t13d\d{4}h2_/, 3: /^q13d\d{4}h3_/ };
const APPLIED = { timeoutMs: 90_000, everyMs: 500 };
const LONG_BYTES = 4_000_000;
/** Answered with a status that nothing else is. */
const MARK = '/mark';

let installation: Installation;
const clients = new Map<Version, ProtocolClient>();
const sites = new Map<Version, string>();
const undo: (() => unknown)[] = [];

/** Says what it got; /events goes on for as long as anybody listens, /long has many bytes, /mark has a status of its own. */
function origin(asked: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = asked;
  asked.resume();
  if (url === '/events') {
    const timer = setInterval(() => response.write('event\n'), 50);
    response.on('close', () => clearInterval(timer));
    return;
  }
  if (url === MARK) {
    response.writeHead(203, { 'content-length': 0 }).end();
    return;
  }
  const text = url === '/long' ? 'x'.repeat(LONG_BYTES) : JSON.stringify({ method, url, headers });
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': text.length }).end(text);
}

test.before('a console, a node, and a site with HTTPS for each version', async () => {
  installation = await startInstallation();
  const { client, edge } = installation;
  const server = createServer(origin);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  undo.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const authority = await testAuthority('Versions of HTTP');
  const { chainPem, privateKeyPem } = await testCertificate(Object.values(HOSTS), { issuer: authority });
  const upload = { name: 'all', chainPem, privateKeyPem };
  const { id: certificateId } = await client.api<{ id: string }>('POST', '/certificates/upload', upload);
  for (const version of VERSIONS) {
    const { port } = server.address() as AddressInfo;
    const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
      domains: [HOSTS[version]],
      origins: [{ address: '127.0.0.1', port }],
    });
    sites.set(version, site.id);
    await client.api('PUT', `/sites/${site.id}/https`, { settings: { certificateId, http3: true } });
    const speaks = await ProtocolClient.start(version, edge.httpsPort, authority.pem);
    clients.set(version, speaks);
    undo.push(() => speaks.close());
  }
  for (const version of VERSIONS) {
    const answer = await eventually(() => ask(version), { ...APPLIED, what: `HTTP ${version}` });
    if (answer.proto !== PROTO[version]) throw new Error(`HTTP ${version} was answered over ${answer.proto}`);
  }
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation?.errors() ?? []) t.log(line);
  if (!t.passed) t.log(installation?.node.log().split('\n').slice(-20).join('\n'));
});

test.after.always('stop everything', async () => {
  for (const each of undo) await each();
  await installation?.stop();
});

const from = (address: string, headers: Record<string, string> = {}) => ({ [CLIENT_IP_HEADER]: address, ...headers });

function ask(version: Version, path = '/', asked: ProtocolRequest = {}): Promise<ProtocolAnswer> {
  return clients.get(version)!.ask(HOSTS[version], path, { ...asked, headers: asked.headers ?? from('192.0.2.1') });
}

const outcome = ({ status, headers }: ProtocolAnswer) => `${status} ${headers['x-svc-error'] ?? ''}`.trim();

/** What the origin says of the request that it got. */
async function seen(version: Version, path: string, headers?: Record<string, string>) {
  const answer = await ask(version, path, headers && { headers });
  if (answer.status !== 200) throw new Error(`${path}: ${outcome(answer)}`);
  return JSON.parse(answer.body) as { url: string; headers: Record<string, string> };
}

/** The same story over each version, on its own site. */
function story(title: string, tell: (t: ExecutionContext, version: Version, siteId: string) => Promise<void>): void {
  for (const version of VERSIONS)
    test.serial(`HTTP ${version}: ${title}`, (t) => {
      t.timeout(300_000);
      return tell(t, version, sites.get(version)!);
    });
}

story('a ban ends what is open and refuses what comes, until it is lifted', async (t, version, siteId) => {
  const { client } = installation;
  const [banned, other] = [`203.0.113.${version}`, `203.0.113.10${version}`];
  const speaks = clients.get(version)!;
  const open = speaks.open(HOSTS[version], '/events', { headers: from(banned) });
  const going = speaks.open(HOSTS[version], '/events', { headers: from(other) });
  t.teardown(() => going.cancel());
  await eventually(() => open.body !== '' && going.body !== '', { what: 'both to be under way' });
  const ban = { scope: 'site', siteId, cidr: banned, reason: 'abuse', durationSeconds: 3600 };
  const { id } = await client.api<{ id: string }>('POST', '/bans', ban);
  await open.over;
  t.not(open.ended, '', 'nobody takes a part for the whole');
  t.is(outcome(await ask(version, '/', { headers: from(banned) })), '403 ip-banned');
  const before = going.body.length;
  await eventually(() => going.body.length > before, { what: 'the other client to go on' });
  t.is(going.ended, undefined);
  await client.api('DELETE', `/bans/${id}`);
  const lifted = async () => (await ask(version, '/', { headers: from(banned) })).status === 200;
  await eventually(lifted, { ...APPLIED, what: 'the lift' });
});

story('Under Attack challenges everybody, and who passes is served', async (t, version, siteId) => {
  const { client } = installation;
  const protect = (change: object) => client.api('PATCH', `/sites/${siteId}/protection`, change);
  const visitor = new Visitor(`198.51.100.${version}`);
  const speaks = clients.get(version)!;
  t.teardown(() => visitor.close());
  await protect({ underAttack: true });
  const challenged = async () => (await visitor.get(speaks, HOSTS[version])).challenge === 'js';
  await eventually(challenged, { ...APPLIED, what: 'the challenge' });
  const verified = await visitor.passJs(speaks, HOSTS[version], '/cart?id=1');
  t.is(verified.headers.location, '/cart?id=1');
  t.is((await visitor.get(speaks, HOSTS[version])).status, 200);
  await protect({ underAttack: false });
  await eventually(async () => (await ask(version)).status === 200, { ...APPLIED, what: 'the end' });
});

story('CC bans a client that asks too often, and nobody else', async (t, version, siteId) => {
  const { client } = installation;
  const cc = { enabled: true, windowSeconds: 5, siteQps: 0, urlQps: 0, ipQps: 5, ipBanSeconds: 600 };
  await client.api('PATCH', `/sites/${siteId}/protection`, { cc: { ...cc, originErrorPercent: 0 } });
  const address = `203.0.113.20${version}`;
  const overdone = async () => outcome(await ask(version, '/', { headers: from(address) })) === '403 ip-banned';
  await eventually(overdone, { everyMs: 1, what: 'the ban' });
  t.is((await ask(version, '/', { headers: from(`192.0.2.10${version}`) })).status, 200);
  const listed = await eventually(
    async () => {
      const path = `/bans?siteId=${siteId}&source=auto`;
      return (await client.api<{ items: { cidr: string; reason: string }[] }>('GET', path)).items[0];
    },
    { ...APPLIED, what: 'the console to know it' },
  );
  t.like(listed, { cidr: `${address}/32`, reason: 'cc_ip_rate' });
  await client.api('PATCH', `/sites/${siteId}/protection`, { cc: { enabled: false } });
});

const rule = (phase: RuleInput['phase'], expression: string, action: Record<string, unknown>) => ({
  name: 'rule',
  phase,
  expression,
  enabled: true,
  action,
});
const at = (path: string) => `http.request.uri.path eq "${path}"`;

/** One of each phase, each for a path of its own. */
const RULES = [
  rule('request-transform', at('/first'), { kind: 'rewrite', value: '/second' }),
  rule('request-transform', 'ssl eq true', {
    kind: 'request_header',
    header: 'x-version',
    expression: 'concat(http.request.version, " ", http.request.scheme)',
  }),
  rule('request-transform', 'true', { kind: 'request_header', header: 'x-ja4', expression: 'tls.ja4' }),
  rule('redirect', at('/shop'), { kind: 'redirect', value: '/items', statusCode: 308 }),
  rule('config', at('/small'), { kind: 'config', requestBodyLimit: 3 }),
  rule('waf-custom', at('/legal'), { kind: 'block', statusCode: 451 }),
  rule('waf-custom', at('/login'), { kind: 'challenge', type: 'js' }),
  rule('ratelimit', at('/api'), { kind: 'rate_limit', limit: 3, windowSeconds: 3600, key: 'tls.ja4' }),
  rule('origin', at('/host'), { kind: 'origin', hostHeader: 'inner.example' }),
  rule('response-transform', 'true', { kind: 'response_header', header: 'x-answered', value: 'yes' }),
  rule('compression', at('/long'), { kind: 'compression', algorithms: ['gzip'] }),
];

story('rules of each phase read and change the same', async (t, version, siteId) => {
  await installation.client.api('PUT', `/sites/${siteId}/rules`, { rules: RULES });
  const ruled = async () => (await ask(version, '/nothing')).headers['x-answered'] === 'yes';
  await eventually(ruled, { ...APPLIED, what: 'the rules' });
  const first = await seen(version, '/first');
  t.is(first.url, '/second');
  t.is(first.headers['x-version'], `${PROTO[version]} https`);
  t.regex(first.headers['x-ja4']!, JA4[version]);
  t.is(first.headers['x-forwarded-proto'], 'https');
  const shop = await ask(version, '/shop');
  t.is(`${shop.status} ${shop.headers.location}`, '308 /items');
  const small = (body: string) => ask(version, '/small', { method: 'POST', body, headers: from('192.0.2.1') });
  t.is(outcome(await small('abcd')), '413 body-too-large');
  t.is(outcome(await small('abc')), '200');
  t.is(outcome(await ask(version, '/legal')), '451 policy-denied');
  t.is((await ask(version, '/login')).headers['x-svc-challenge'], 'js');
  // Wherever it comes from: what is counted is the client's program.
  const api: string[] = [];
  for (let turn = 1; turn <= 4; turn++)
    api.push(outcome(await ask(version, '/api', { headers: from(`192.0.2.${turn}`) })));
  t.deepEqual(api, ['200', '200', '200', '429 policy-denied']);
  t.is((await seen(version, '/host')).headers.host, 'inner.example');
  const long = await ask(version, '/long', { headers: from('192.0.2.1', { 'accept-encoding': 'gzip' }) });
  t.is(long.headers['content-encoding'], 'gzip');
  await installation.client.api('PUT', `/sites/${siteId}/rules`, { rules: [] });
  const gone = async () => (await ask(version, '/nothing')).headers['x-answered'] === undefined;
  await eventually(gone, { ...APPLIED, what: 'no rules' });
});

story('the address of a client is the one that who is trusted names', async (t, version) => {
  const { headers } = await seen(version, '/', from('198.51.100.77', { 'x-forwarded-for': '192.0.2.9' }));
  t.is(headers['x-real-ip'], '198.51.100.77');
  t.is(headers['x-forwarded-for'], '192.0.2.9, 127.0.0.1');
  t.is((await seen(version, '/', {})).headers['x-real-ip'], '127.0.0.1');
});

/** A head as HTTP/1.1 writes it. */
const headBytes = (line: string, fields: Record<string, string>): number =>
  `${line}\r\n\r\n`.length +
  Object.entries(fields).reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);

interface Counted {
  requests: number;
  received: number;
  sent: number;
  statuses: Record<string, number>;
}

/** What the console has of a site; nothing is under way there. */
async function counted(database: pg.Client, siteId: string): Promise<Counted> {
  const { rows } = await database.query<{ requests: string; received: string; sent: string; statuses: object | null }>(
    'select requests, bytes_received as received, bytes_sent as sent, statuses from usage_minute where site_id = $1',
    [siteId],
  );
  const sum: Counted = { requests: 0, received: 0, sent: 0, statuses: {} };
  for (const row of rows) {
    sum.requests += Number(row.requests);
    sum.received += Number(row.received);
    sum.sent += Number(row.sent);
    for (const [code, count] of Object.entries(row.statuses ?? {}))
      sum.statuses[code] = (sum.statuses[code] ?? 0) + Number(count);
  }
  return sum;
}

/** An agent that is told to end takes what was counted first; it is started again. */
async function drained(): Promise<void> {
  const { node } = installation;
  const { agent } = await eventually(() => node.pids(), { what: 'the node' });
  process.kill(agent, 'SIGTERM');
  await eventually(() => (node.pids()?.agent ?? agent) !== agent, { timeoutMs: 180_000, what: 'the agent' });
}

test.serial('bytes, requests and statuses count the same over each version, to the byte', async (t) => {
  t.timeout(600_000);
  const database = new pg.Client({ connectionString: installation.databaseUrl });
  await database.connect();
  t.teardown(() => database.end());
  const expected = new Map<Version, { received: number; sent: number }>();
  /** Asks and adds what that has to count. */
  const noted = async (version: Version, method: string, path: string, status: string, body?: string) => {
    const headers = from('192.0.2.77', { 'user-agent': 'counted' });
    const answer = await ask(version, path, { method, headers, body });
    const length: Record<string, string> = body === undefined ? {} : { 'content-length': String(body.length) };
    const sum = expected.get(version) ?? { received: 0, sent: 0 };
    const head = headBytes(`${method} ${path} HTTP/1.1`, { host: HOSTS[version], ...headers, ...length });
    sum.received += head + (body?.length ?? 0);
    sum.sent += headBytes(`HTTP/1.1 ${status}`, answer.headers) + answer.body.length;
    expected.set(version, sum);
  };
  let marks = 0;
  // Counts arrive in the order they were made: with the last mark, the console has all of before.
  const marked = async () => {
    marks++;
    for (const version of VERSIONS) await noted(version, 'GET', MARK, '203 Non-Authoritative Information');
    await drained();
    return eventually(
      async () => {
        const now = new Map<Version, Counted>();
        for (const version of VERSIONS) now.set(version, await counted(database, sites.get(version)!));
        return [...now.values()].every(({ statuses }) => statuses['203'] === marks) ? now : undefined;
      },
      { timeoutMs: 240_000, everyMs: 1000, what: 'the marks to be counted' },
    );
  };
  const before = await marked();
  expected.clear();
  for (const version of VERSIONS) {
    await noted(version, 'GET', '/?a=b', '200 OK');
    await noted(version, 'POST', '/upload', '200 OK', 'u'.repeat(100_000));
    await noted(version, 'HEAD', '/', '200 OK');
    await noted(version, 'GET', '/long', '200 OK');
    await noted(version, 'GET', '/.svc/none', '404 Not Found');
  }
  const after = await marked();
  for (const version of VERSIONS) {
    const [now, then] = [after.get(version)!, before.get(version)!];
    t.is(now.requests - then.requests, 6, `HTTP ${version}`);
    t.is(now.received - then.received, expected.get(version)!.received, `HTTP ${version}: received`);
    t.is(now.sent - then.sent, expected.get(version)!.sent, `HTTP ${version}: sent`);
    t.is((now.statuses['200'] ?? 0) - (then.statuses['200'] ?? 0), 4, `HTTP ${version}`);
    t.is((now.statuses['404'] ?? 0) - (then.statuses['404'] ?? 0), 1, `HTTP ${version}`);
  }

  const got = new Map<Version, number>();
  for (const version of VERSIONS) {
    const stream = clients.get(version)!.open(HOSTS[version], '/events', { headers: from('192.0.2.78') });
    await eventually(() => stream.body.length > 60, { what: 'some events' });
    stream.cancel();
    await stream.over;
    got.set(version, stream.body.length);
  }
  // A client knows of the end of its stream before the edge does.
  const ended = await eventually(
    async () => {
      const now = await marked();
      const all = VERSIONS.every((v) => (now.get(v)!.statuses['200'] ?? 0) > (after.get(v)!.statuses['200'] ?? 0));
      return all ? now : undefined;
    },
    { timeoutMs: 300_000, what: 'the aborted streams to be counted' },
  );
  for (const version of VERSIONS) {
    const [now, then] = [ended.get(version)!, after.get(version)!];
    t.is((now.statuses['200'] ?? 0) - (then.statuses['200'] ?? 0), 1, 'its answer began');
    const sent = now.sent - then.sent;
    // With the heads of marks.
    t.true(
      sent >= got.get(version)! && sent < got.get(version)! + 2000,
      `HTTP ${version}: ${sent} of an aborted stream`,
    );
  }
});

test.serial('a node tells nobody of the fingerprints of clients but its rules', async (t) => {
  const socketPath = join(existingRunFolders(installation.node.stateDir)[0]!, 'edge.sock');
  const status = await new Promise((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', path: '/debug/fingerprint', timeout: 20_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    call.on('timeout', () => call.destroy(new Error('the edge does not answer')));
    call.on('error', reject);
    call.end();
  });
  t.is(status, 404);
});

test.serial(
  'HTTP 3: a client goes on when the data plane ends or is killed and its agent starts another',
  async (t) => {
    t.timeout(300_000);
    const { node } = installation;
    const speaks = clients.get(3)!;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const open = speaks.open(HOSTS[3], '/events', { headers: from('192.0.2.1') });
      await eventually(() => open.body !== '', { what: 'events' });
      const { caddy } = node.pids()!;
      process.kill(caddy, signal);
      await eventually(() => (node.pids()?.caddy ?? caddy) !== caddy, { ...APPLIED, what: 'another Caddy' });
      // The client still knows its connection; its packets tell it that there is none.
      const again = await eventually(() => ask(3), { ...APPLIED, what: `an answer after ${signal}` });
      t.is(`${again.status} ${again.proto}`, '200 HTTP/3.0');
      await open.over;
      t.not(open.ended, '', 'nobody takes a part for the whole');
      if (signal === 'SIGKILL') t.regex(open.ended!, /stateless reset/);
    }
  },
);
