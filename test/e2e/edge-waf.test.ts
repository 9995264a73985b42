// The WAF with a real console, agent and Caddy: settings of a site as they are saved, and what its visitors get by them.
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { WAF_TAGS } from '../../contract/waf-rule-set.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';

const DOMAIN = 'inspected.example';
const SQL = "1' or '1'='1' union select password from users-- ";

let installation: Installation;
let siteId: string;
const origin = createServer((incoming, response) => {
  incoming.resume();
  incoming.on('end', () => response.end('origin'));
});

interface Asked {
  path?: string;
  argument?: string;
  /** A body of so many bytes, with a POST. */
  bytes?: number;
  value?: string;
}

/** What an attack in an argument, or another value, gets: status and the edge's own error. */
function attack({ path = '/', argument = 'q', bytes = 0, value = SQL }: Asked = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      host: DOMAIN,
      [CLIENT_IP_HEADER]: '192.0.2.1',
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36',
      accept: '*/*',
      ...(bytes === 0 ? {} : { 'content-type': 'application/octet-stream', 'content-length': bytes }),
    };
    const method = bytes === 0 ? 'GET' : 'POST';
    const target = `${path}?${argument}=${encodeURIComponent(value)}`;
    const options = { ...installation.edge, method, path: target, headers, agent: false, timeout: 5000 };
    const sent = request(options, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => resolve([response.statusCode, response.headers['x-svc-error'] ?? []].flat().join(' ')));
    });
    sent.on('timeout', () => sent.destroy(new Error('the edge does not answer')));
    sent.on('error', reject);
    sent.end(Buffer.alloc(bytes));
  });
}

const BLOCKED = '403 waf-blocked';

async function save(change: object): Promise<string | null> {
  const answer = await installation.client.api<{ revision: string | null }>('PATCH', `/sites/${siteId}/waf`, change);
  return answer.revision;
}

const becomes = (answer: string, asked?: Asked) =>
  eventually(async () => (await attack(asked)) === answer, { what: `${answer} for ${JSON.stringify(asked)}` });

test.before('a console, a node, a site and its origin', async () => {
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  installation = await startInstallation();
  const { site } = await installation.client.api<{ site: { id: string } }>('POST', '/sites', {
    domains: [DOMAIN],
    origins: [{ address: '127.0.0.1', port: (origin.address() as AddressInfo).port }],
  });
  siteId = site.id;
  await becomes('200');
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await installation?.stop();
  origin.closeAllConnections();
  origin.close();
});

test.serial(
  'what matched is told with its request, the name of its argument and, where wanted, its masked value',
  async (t) => {
    await save({ mode: 'block', eventValues: true });
    await becomes(BLOCKED);
    t.is(await attack({ path: '/told', argument: 'comment' }), BLOCKED);
    const list = () =>
      installation.client.api<{
        items: { path: string; matches: { ruleId: number; value: string | null }[]; rules: number[] }[];
      }>('GET', `/sites/${siteId}/waf/events?blocked=true&ruleId=942100`);
    const event = await eventually(async () => (await list()).items.find(({ path }) => path === '/told'), {
      everyMs: 500,
      what: 'the event',
    });
    t.like(event, { method: 'GET', address: '192.0.2.1', threshold: 5, blocked: true });
    const { value, ...match } = event.matches.find(({ ruleId }) => ruleId === 942_100)!;
    t.deepEqual(match, { ruleId: 942_100, part: 'argument', name: 'comment', points: 5 });
    t.regex(value ?? '', /union select/);
    t.false(JSON.stringify(event).includes('users'));
    await save({ mode: 'off', eventValues: false });
    await becomes('200');
  },
);

test.serial(
  'attacks are blocked in block mode, and leave where they are false the part that is excluded',
  async (t) => {
    const blocking = await save({ mode: 'block' });
    await becomes(BLOCKED);
    await save({
      exclusions: [{ tag: 'attack-sqli', path: '/search/', pathPrefix: true, part: 'argument', name: 'Q' }],
    });
    await becomes('200', { path: '/search/all' });
    t.is(await attack({ path: '/search/all', argument: 'other' }), BLOCKED);
    t.is(await attack({ path: '/search' }), BLOCKED);
    await save({ mode: 'detect', exclusions: [] });
    await becomes('200');
    const { clusterId } = await installation.client.api<{ clusterId: string }>('GET', `/sites/${siteId}`);
    await installation.client.api('POST', `/clusters/${clusterId}/rollback`, { revision: blocking });
    await becomes(BLOCKED);
  },
);

test.serial('ordinary text is an attack only where the site wants no exceptions', async (t) => {
  const prose = { value: 'Hello,\nFind attached the invoice' };
  await save({ mode: 'block', builtInExceptions: true });
  await becomes(BLOCKED);
  t.is(await attack(prose), '200');
  await save({ builtInExceptions: false });
  await becomes(BLOCKED, prose);
  await save({ builtInExceptions: true });
  await becomes('200', prose);
});

test.serial('a pack lets a field of its application pass, and nothing else', async (t) => {
  const editor = { path: '/wp-admin/post.php', argument: 'content' };
  await save({ mode: 'block', packs: ['wordpress'] });
  await becomes('200', editor);
  t.is(await attack({ ...editor, argument: 'search' }), BLOCKED);
  t.is(await attack({ ...editor, path: '/' }), BLOCKED);
  await save({ packs: [] });
  await becomes(BLOCKED, editor);
});

test.serial('a body that is more than memory holds for all is looked at, and goes on', async (t) => {
  await save({ mode: 'block', requestBodyLimit: 134_217_728 });
  await becomes(BLOCKED);
  const bytes = 24 * 1024 * 1024;
  // Beside other work a body of this size may want more time than it may have.
  await t.notThrowsAsync(becomes('200', { bytes, value: 'harmless' }));
  await t.notThrowsAsync(becomes(BLOCKED, { bytes }));
});

test.serial('whatever settings the console takes the node takes, also the most of them', async (t) => {
  const many = <T>(count: number, of: (n: number) => T) => Array.from({ length: count }, (_, n) => of(n));
  const tags = Object.keys(WAF_TAGS).sort((a, b) => WAF_TAGS[a]! - WAF_TAGS[b]!);
  await save({
    mode: 'block',
    paranoiaLevel: 1,
    anomalyThreshold: 5,
    requestBodyLimit: 134_217_728,
    excludedRuleIds: many(200, (n) => 920_500 + n),
    excludedFamilies: [900, 999],
    exclusions: [
      { ruleId: 911_100, path: '/methods', part: 'all' },
      ...tags.map((tag) => ({ tag, path: '/open', part: 'argument', name: 'free.*' })),
      ...many(199 - tags.length, (n) => ({
        ruleId: 942_000 + n,
        path: `/${String(n).padEnd(1023, '*')}`,
        part: (['cookie', 'header'] as const)[n % 2],
        name: `${n} [(\\`.padEnd(256, '.*'),
      })),
    ],
    allowedMethods: ['GET', ...many(31, (n) => `M!#$&'*+-.^_~${n}`)],
    allowedContentTypes: many(64, (n) => `${String(n).padEnd(127, "!#$&'*+.^_~-")}/${'b'.repeat(127)}`),
    allowedCharsets: many(32, (n) => `c!#$&'*+.^_~-${n}`),
  });
  await becomes('200', { path: '/open', argument: 'free.7' });
  t.is(await attack({ path: '/open', argument: 'closed.7' }), BLOCKED);
  t.is(await attack(), BLOCKED);
  await save({ mode: 'off' });
  await becomes('200');
});
