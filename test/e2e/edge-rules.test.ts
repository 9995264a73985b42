// Rules with a real console, agent and Caddy: what each phase makes of a request, as a client and an origin see it.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { RuleInput } from '../../contract/scalars/rule.ts';
import { type EdgeAnswer, edgeSend } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';
import { rawRequest } from '../helpers/raw-http.ts';
import { Visitor } from '../helpers/visitor.ts';

const DOMAIN = 'ruled.example';
const CLIENT = '192.0.2.1';

/** What an origin of the test says of the request that it got. */
interface Seen {
  origin: string;
  method: string;
  url: string;
  headers: Record<string, string>;
}

let installation: Installation;
let siteId: string;
const ports = { one: 0, two: 0 };
const undo: (() => void)[] = [];

async function startOrigin(origin: keyof typeof ports): Promise<void> {
  const server = createServer((request: IncomingMessage, response) => {
    const { method, url, headers } = request;
    response.setHeader('x-origin', origin);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ origin, method, url, headers }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ports[origin] = (server.address() as AddressInfo).port;
  undo.push(() => {
    server.closeAllConnections();
    server.close();
  });
}

const rule = (phase: RuleInput['phase'], expression: string, action: Record<string, unknown>) => ({
  name: 'rule',
  phase,
  expression,
  enabled: true,
  action,
});

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  address?: string;
}

function ask(path = '/', { address = CLIENT, headers = {}, ...rest }: Ask = {}): Promise<EdgeAnswer> {
  return edgeSend(installation.edge, DOMAIN, { path, headers: { ...headers, [CLIENT_IP_HEADER]: address }, ...rest });
}

async function seen(path?: string, options?: Ask): Promise<Seen> {
  const { status, body } = await ask(path, options);
  if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
  return JSON.parse(body) as Seen;
}

const outcome = ({ status, headers }: EdgeAnswer) => `${status} ${headers['x-svc-error'] ?? ''}`.trim();

let version = 0;

/** Saves rules, and waits until they are at the node: the last one says so in every answer. */
async function ruled(rules: ReturnType<typeof rule>[], path = `/sites/${siteId}/rules`): Promise<void> {
  const mark = String(++version);
  const marks = rule('response-transform', 'true', {
    kind: 'response_header',
    header: path.startsWith('/sites') ? 'x-version' : 'x-platform-version',
    value: mark,
  });
  await installation.client.api('PUT', path, { rules: [...rules, marks] });
  await eventually(async () => (await ask('/nothing')).headers[marks.action.header as string] === mark, {
    what: 'the rules at the node',
  });
}

test.before('a console, a node, a site and two origins', async () => {
  await startOrigin('one');
  await startOrigin('two');
  installation = await startInstallation();
  const { site } = await installation.client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: [DOMAIN],
    origins: [{ address: '127.0.0.1', port: ports.one }],
  });
  siteId = site.id;
  await eventually(async () => (await ask()).status === 200, { what: 'the site' });
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
  if (!t.passed) t.log(installation.node.log().split('\n').slice(-20).join('\n'));
});

test.after.always('stop everything', async () => {
  await installation?.stop();
  for (const each of undo) each();
});

test.serial('request-transform: origins get another path, query and header, and no line is split', async (t) => {
  await ruled([
    rule('request-transform', 'true', {
      kind: 'rewrite',
      target: 'concat("/v2", http.request.uri.path)',
      setQuery: [
        { name: 'from', expression: 'http.request.uri.path' },
        { name: 'a', value: 'b c' },
      ],
      removeQuery: ['utm_source'],
    }),
    rule('request-transform', 'starts_with(http.request.uri.path, "/v2/")', {
      kind: 'request_header',
      header: 'X-Tier',
      expression: 'concat(http.request.method, " ", http.request.uri.path)',
    }),
    rule('request-transform', 'true', { kind: 'request_header', header: 'x-secret', remove: true }),
  ]);
  const { url, headers } = await seen('/x?utm_source=y&z=1', { headers: { 'x-secret': '1', 'x-tier': 'none' } });
  t.is(url, '/v2/x?z=1&a=b%20c&from=%2Fx');
  t.is(headers['x-tier'], 'GET /v2/x');
  t.is(headers['x-secret'], undefined);
  const edge = `http://${installation.edge.host}:${installation.edge.port}`;
  for (const [target, path] of [
    ['/a%20HTTP/1.1', '/v2/a%20HTTP/1.1'],
    ['/%252F', '/v2/%252F'],
    [`http://${DOMAIN}/abs%20olute`, '/v2/abs%20olute'],
    ['/a%3Fb', '/v2/a%3Fb'],
  ] as const) {
    const answer = await rawRequest(edge, `GET ${target} HTTP/1.1\r\nHost: ${DOMAIN}\r\n\r\n`);
    t.is((JSON.parse(answer.body) as Seen).url.split('?')[0], path, target);
  }
});

test.serial('redirect: rules and bulk redirects lead elsewhere, by what the client asked for', async (t) => {
  const { client } = installation;
  await client.api('PUT', `/sites/${siteId}/bulk-redirects`, {
    redirects: [
      { source: '/old', target: '/by-path' },
      {
        source: `${DOMAIN}/old%20page`,
        target: 'https://www.example.com/new?x#y',
        statusCode: 308,
        preserveQuery: true,
      },
    ],
  });
  await ruled([
    rule('request-transform', 'http.request.uri.path eq "/renamed"', { kind: 'rewrite', value: '/old' }),
    rule('redirect', 'starts_with(http.request.uri.path, "/shop/")', {
      kind: 'redirect',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is of the language of rules
      target: 'regex_replace(http.request.uri.path, "^/shop/([0-9]+)$", "/items/${1}")',
      preserveQuery: true,
      statusCode: 303,
    }),
  ]);
  await eventually(async () => (await ask('/old')).status === 301, { what: 'the bulk redirects' });
  const leads = async (path: string) => {
    const { status, headers } = await ask(path);
    return `${status} ${headers.location ?? ''}`.trim();
  };
  t.is(await leads('/shop/7?a=1'), '303 /items/7?a=1');
  t.is(await leads('/old'), '301 /by-path');
  t.is(await leads('/old%20page?a=1'), '308 https://www.example.com/new?x&a=1#y');
  t.is(await leads('/renamed'), '200', 'a rewrite leads no redirect astray');
  await client.api('PUT', `/sites/${siteId}/bulk-redirects`, { redirects: [] });
  await eventually(async () => (await ask('/old')).status === 200, { what: 'no bulk redirects' });
});

test.serial('config and cache: settings change for the requests of a rule', async (t) => {
  await ruled([
    rule('config', 'http.request.uri.path eq "/small"', { kind: 'config', requestBodyLimit: 3 }),
    rule('cache', 'http.request.uri.path eq "/secure"', { kind: 'config', forceHttps: true, cacheBypass: true }),
  ]);
  t.is(outcome(await ask('/small', { method: 'POST', body: 'abcd' })), '413 body-too-large');
  t.is(outcome(await ask('/small', { method: 'POST', body: 'abc' })), '200');
  t.is(outcome(await ask('/large', { method: 'POST', body: 'abcd' })), '200');
  t.is(outcome(await ask('/secure')), '503 policy-denied');
});

test.serial('waf-custom: blocks, lists, challenges and what allow spares', async (t) => {
  const { client, edge } = installation;
  await client.api('POST', '/ip-lists', { name: 'office', kind: 'collection', entries: ['198.51.100.0/24'] });
  await ruled([
    rule('waf-custom', 'ip.src in $office', { kind: 'allow' }),
    rule('waf-custom', 'http.request.uri.path eq "/legal"', { kind: 'block', statusCode: 451 }),
    rule('waf-custom', 'http.user_agent contains "bot"', { kind: 'block' }),
    rule('waf-custom', 'http.request.uri.path eq "/login"', { kind: 'challenge', type: 'js' }),
    rule('waf-custom', 'http.request.uri.path eq "/login"', { kind: 'block', statusCode: 451 }),
  ]);
  t.is(outcome(await ask('/legal')), '451 policy-denied');
  t.is(outcome(await ask('/', { headers: { 'user-agent': 'a bot' } })), '403 policy-denied');
  const office = { address: '198.51.100.7', headers: { 'user-agent': 'a bot' } };
  t.is(outcome(await ask('/legal', office)), '200', 'allow passes over the rest');
  const visitor = new Visitor('203.0.113.5');
  t.teardown(() => visitor.close());
  t.is((await visitor.get(edge, DOMAIN, '/login')).challenge, 'js');
  await visitor.passJs(edge, DOMAIN, '/login');
  t.is((await visitor.get(edge, DOMAIN, '/login')).status, 451, 'whoever has passed meets the next rule');
  await client.api('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
  await eventually(async () => (await ask('/')).headers['x-svc-challenge'] === 'js', { what: 'Under Attack' });
  t.is(outcome(await ask('/', office)), '200', 'allow spares Under Attack');
  await client.api('PATCH', `/sites/${siteId}/protection`, { underAttack: false });
  await eventually(async () => (await ask('/')).status === 200, { what: 'no Under Attack' });
});

test.serial('ratelimit: whoever asks too often waits, others do not', async (t) => {
  await ruled([
    rule('ratelimit', 'http.request.uri.path eq "/api"', {
      kind: 'rate_limit',
      limit: 3,
      windowSeconds: 3600,
      key: 'http.request.headers.x-key',
    }),
  ]);
  const answers: EdgeAnswer[] = [];
  for (let asked = 0; asked < 5; asked++) answers.push(await ask('/api', { headers: { 'X-Key': 'one' } }));
  t.deepEqual(answers.map(outcome), ['200', '200', '200', '429 policy-denied', '429 policy-denied']);
  t.is(answers.at(-1)!.headers['retry-after'], '3600');
  t.is(outcome(await ask('/api', { headers: { 'x-key': 'two' } })), '200');
  t.is(outcome(await ask('/', { headers: { 'x-key': 'one' } })), '200');
});

test.serial('origin: another port, host and header for the requests of a rule', async (t) => {
  await ruled([
    rule('origin', 'http.request.uri.path eq "/two"', { kind: 'origin', port: ports.two, hostHeader: 'two.example' }),
    rule('origin', 'http.request.uri.path eq "/two"', { kind: 'request_header', header: 'x-to', value: 'two' }),
  ]);
  const two = await seen('/two');
  t.deepEqual([two.origin, two.headers.host, two.headers['x-to']], ['two', 'two.example', 'two']);
  const one = await seen('/one');
  t.deepEqual([one.origin, one.headers.host, one.headers['x-to']], ['one', DOMAIN, undefined]);
});

test.serial(
  'response-transform and compression: answers change, and what the edge says keeps what it needs',
  async (t) => {
    await ruled([
      rule('response-transform', 'http.response.content_type.media_type eq "application/json"', {
        kind: 'response_header',
        header: 'x-origin',
        value: 'seen',
        append: true,
      }),
      rule('response-transform', 'http.response.code ge 400', {
        kind: 'response_header',
        header: 'x-failed',
        value: 'yes',
      }),
      rule('response-transform', 'true', { kind: 'response_header', header: 'cache-control', value: 'max-age=60' }),
      rule('waf-custom', 'http.request.uri.path eq "/blocked"', { kind: 'block' }),
      rule('compression', 'true', { kind: 'compression', algorithms: ['gzip'] }),
    ]);
    const answered = await ask();
    t.deepEqual([answered.headers['x-origin'], answered.headers['cache-control']], ['one, seen', 'max-age=60']);
    t.is(answered.headers['x-failed'], undefined);
    const blocked = await ask('/blocked');
    t.deepEqual([blocked.headers['x-failed'], blocked.headers['cache-control']], ['yes', 'no-store']);
  },
);

test.serial('platform rules come first in each phase, and rules outlast the node', async (t) => {
  await ruled([
    rule('request-transform', 'http.request.headers["x-from"] eq "platform"', {
      kind: 'request_header',
      header: 'x-from',
      value: 'platform, then site',
    }),
    rule('waf-custom', 'http.request.uri.path eq "/blocked"', { kind: 'block', statusCode: 451 }),
  ]);
  await ruled(
    [
      rule('request-transform', 'true', { kind: 'request_header', header: 'x-from', value: 'platform' }),
      rule('waf-custom', 'http.request.uri.path eq "/blocked"', { kind: 'block' }),
    ],
    '/platform-rules',
  );
  const expect = async () => {
    t.is((await seen()).headers['x-from'], 'platform, then site');
    t.is(outcome(await ask('/blocked')), '403 policy-denied');
  };
  await expect();
  const { node } = installation;
  process.kill(node.pids()!.caddy, 'SIGKILL');
  await eventually(async () => (await ask('/')).status === 200, { what: 'a new Caddy' });
  await expect();
  await installation.client.api('PUT', '/platform-rules', { rules: [] });
  await eventually(async () => outcome(await ask('/blocked')) === '451 policy-denied', { what: 'no platform rules' });
});
