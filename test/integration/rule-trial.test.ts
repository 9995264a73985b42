// Rules of a site are tried on made-up requests: what is saved or drafted, with the lists and redirects that there are.
import test from 'ava';
import { geoipVariables } from '../../bin/lib/geoip/databases.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;

const block = (expression: string, more: Body = {}) => ({
  name: expression.slice(0, 40),
  phase: 'waf-custom',
  expression,
  enabled: true,
  action: { kind: 'block' },
  ...more,
});
const REQUEST = { url: 'https://www.tried.example/a%20b?x=1', address: '192.0.2.7' };

test.before('start', async () => {
  running = await startTestConsole({ env: await geoipVariables() });
  api = new Api(running);
  clusterId = await api.cluster('tried');
  siteId = (await api.site(clusterId, 'www.tried.example')).id;
});
test.after.always('stop', () => running?.stop());

const tried = (request: Body = {}, more: Body = {}): Promise<Body> =>
  api.ok('POST', `/sites/${siteId}/rules/try`, { request: { ...REQUEST, ...request }, ...more });
const outcome = async (request: Body = {}, more: Body = {}): Promise<Body> => (await tried(request, more)).outcome;
const issue = async (request: Body, more: Body = {}): Promise<Body> => {
  const answer = await api.call('POST', `/sites/${siteId}/rules/try`, { request: { ...REQUEST, ...request }, ...more });
  return { status: answer.status, ...answer.body.data?.issues?.[0] };
};

test.serial('saved rules are tried, those of the platform first, and a draft in their place', async (t) => {
  t.like(await outcome(), { kind: 'origin', status: null, rule: null, originGroup: '' });
  await api.ok('PUT', `/sites/${siteId}/rules`, { rules: [block('http.request.uri.path eq "/a b"')] });
  await api.ok('PUT', '/platform-rules', {
    rules: [block('http.request.method eq "TRACE"', { action: { kind: 'log' } })],
  });
  const trace = await tried();
  t.like(trace.outcome, { kind: 'block', status: 403, error: 'policy-denied', rule: { platform: false, position: 0 } });
  t.deepEqual(
    trace.phases
      .find(({ phase }: Body) => phase === 'waf-custom')
      .rules.map(({ platform, result }: Body) => [platform, result]),
    [
      [true, 'not_matched'],
      [false, 'matched'],
    ],
  );
  const draft = [{ ...block('true', { action: { kind: 'block', statusCode: 451 } }), id: 'mine' }];
  t.like(await outcome({}, { rules: draft }), { status: 451, rule: { id: 'mine' } });
  t.like(await outcome({}, { rules: [] }), { kind: 'origin' });
  t.like(await outcome({}, { platformRules: [block('ssl eq true')] }), { rule: { platform: true } });
  await api.ok('PUT', `/sites/${siteId}/rules`, { rules: [] });
  await api.ok('PUT', '/platform-rules', { rules: [] });
});

test.serial('the country and the network of the address come from the databases of the console', async (t) => {
  const rules = [block('ip.geoip.country eq "DE"'), block('ip.geoip.asnum eq 15169 and ip.geoip.as_name ne ""')];
  const of = async (request: Body) => {
    const { unknown, outcome } = await tried(request, { rules });
    return [unknown, outcome.rule?.position ?? null];
  };
  t.deepEqual(await of({ address: '193.99.144.80' }), [[], 0]);
  t.deepEqual(await of({ address: '2001:4860:4860::8888' }), [[], 1]);
  t.deepEqual(await of({ address: '127.0.0.1' }), [[], null], 'no record: neither country nor network');
  t.deepEqual(await of({ address: '193.99.144.80', country: 'US' }), [[], null], 'what is given wins');
  // The name of a given number is not known.
  t.deepEqual(await of({ address: '127.0.0.1', asnum: 15169 }), [['ip.geoip.as_name'], null]);
  const { env } = running.running.runtime;
  Object.assign(env, { geoipCountry: null, geoipAsn: '/nowhere/asn.mmdb' });
  t.deepEqual(await of({ address: '193.99.144.80' }), [['ip.geoip.asnum', 'ip.geoip.country'], null]);
});

test.serial('a draft is refused as saving it would be', async (t) => {
  const refused = (rules: Body[], list = 'rules') =>
    api.call('POST', `/sites/${siteId}/rules/try`, { request: REQUEST, [list]: rules });
  const wrong = await refused([block('true'), block('http.hots eq ""')]);
  t.is(wrong.status, 400);
  t.like(wrong.body, { code: 'RULE_INVALID', data: { rule: 1, field: '/rules/1/expression', code: 'unknown_field' } });
  const group = {
    name: 'g',
    phase: 'origin',
    expression: 'true',
    enabled: true,
    action: { kind: 'origin', originGroup: 'a' },
  };
  t.like((await refused([group], 'platformRules')).body.data, { field: '/platformRules/0/action/originGroup' });
  t.like((await refused([block('true', { phase: 'origin' })], 'platformRules')).body.data.issues[0], {
    path: '/platformRules/0/action/kind',
  });
  t.like((await refused([block('ip.src in $nowhere')])).body, {
    code: 'IP_LIST_REFERENCE_UNKNOWN',
    data: { lists: ['nowhere'] },
  });
  t.is((await api.call('POST', '/sites/none/rules/try', { request: REQUEST })).body.code, 'SITE_NOT_FOUND');
});

test.serial('the lists that there are decide, and those that hold on all sites', async (t) => {
  await api.ok('POST', '/ip-lists', { name: 'tried_office', kind: 'collection', entries: ['192.0.2.0/24'] });
  await api.ok('POST', '/ip-lists', { name: 'tried_out', kind: 'block', entries: ['203.0.113.0/24', '198.51.100.1'] });
  await api.ok('POST', '/ip-lists', { name: 'tried_in', kind: 'allow', entries: ['198.51.100.0/24'] });
  const rules = [block('not ip.src in $tried_office')];
  t.is((await outcome({}, { rules })).kind, 'origin');
  t.is((await outcome({ address: '2001:db8::1' }, { rules })).kind, 'block');
  const peer = [block('ip.peer in $tried_office')];
  t.is((await outcome({ address: '2001:db8::1' }, { rules: peer })).kind, 'origin');
  t.is((await outcome({ address: '2001:db8::1', peer: '::ffff:192.0.2.9' }, { rules: peer })).kind, 'block');
  t.like(await outcome({ address: '203.0.113.9' }, { rules }), {
    kind: 'listed',
    status: 403,
    list: 'tried_out',
    exempt: false,
  });
  t.like(await outcome({ address: '198.51.100.1' }), { kind: 'origin', exempt: true });
});

test.serial('bulk redirects are found by what was asked for', async (t) => {
  await api.ok('PUT', `/sites/${siteId}/bulk-redirects`, {
    redirects: [
      { source: '/a%20b', target: '/any', preserveQuery: true },
      { source: 'www.tried.example/caf%C3%A9', target: 'https://shop.example/', statusCode: 308 },
    ],
  });
  t.like(await outcome(), { kind: 'redirect', status: 301, bulkRedirect: '/a%20b', location: { text: '/any?x=1' } });
  t.like(await outcome({ url: 'http://WWW.tried.example/x/../café' }), {
    status: 308,
    bulkRedirect: 'www.tried.example/café',
    location: { text: 'https://shop.example/' },
  });
  for (const path of ['/caf%e9', '/a%00b', '/%ff']) {
    t.is((await outcome({ url: `https://www.tried.example${path}` })).kind, 'origin', path);
  }
});

test.serial('the time is that of the request, or now', async (t) => {
  const url = 'https://www.tried.example/now';
  const rules = [block('http.request.timestamp.sec ge 1893456000')];
  t.is((await outcome({ url, at: '2030-01-01T00:00:00Z' }, { rules })).kind, 'block');
  t.is((await outcome({ url, at: '2029-12-31T23:59:59.999Z' }, { rules })).kind, 'origin');
  t.is((await outcome({ url }, { rules: [block('http.request.timestamp.sec lt 1700000000')] })).kind, 'origin');
});

test.serial('what no request can be is refused by its field', async (t) => {
  for (const url of [
    'https://u:p@a.example/',
    'https://:80/',
    'https://a.example:99999/',
    'https://a b/',
    '/only',
    'https://a..b/',
    'https://a.example/%zz',
  ]) {
    t.like(await issue({ url }), { status: 400, path: '/request/url' }, url);
  }
  t.like(await issue({ address: 'nowhere' }), { status: 400, path: '/request/address' });
  t.like(await issue({ peer: '1.2.3' }), { status: 400, path: '/request/peer' });
  t.like(await issue({ headers: [{ name: 'a b', value: '' }] }), { status: 400, path: '/request/headers/0/name' });
  t.like(await issue({ headers: [{ name: 'a', value: 'b\r\nc: d' }] }), {
    status: 400,
    path: '/request/headers/0/value',
  });
  const large = Array.from({ length: 5 }, () => ({ name: 'a', value: 'é'.repeat(4000) }));
  t.like(await issue({ headers: large }), { status: 400, path: '/request/headers', keyword: 'maxBytes' });
  t.like(await issue({ at: '2016-12-31T23:59:60Z' }), { status: 400, path: '/request/at' });
  t.like(await issue({}, { response: { status: 99 } }), { status: 400, path: '/response/status' });
});

test.serial('what may not be meant is told when rules are saved and when they are read', async (t) => {
  const path = `/sites/${siteId}/rules`;
  const warned = ({ rules, warnings }: Body) =>
    warnings.map(({ ruleId, code, params }: Body) => [rules.findIndex(({ id }: Body) => id === ruleId), code, params]);
  await api.ok('PUT', '/platform-rules', { rules: [block('http.host eq "a.example"')] });
  const rules = [block('http.host eq "a.example" and ssl eq true'), block('not ip.src in $tried_office')];
  const saved = await api.ok('PUT', path, { rules });
  const [, [, , { address }]] = warned(saved);
  const expected = [
    [0, 'covered', { rule: 'http.host eq "a.example"' }],
    [1, 'blocks_you', { address }],
  ];
  t.deepEqual(warned(saved), expected);
  t.true(saved.warnings[1].message.includes(address));
  t.deepEqual(warned(await api.ok('GET', path)), expected);
  t.deepEqual((await api.ok('GET', '/platform-rules')).warnings, []);
  await api.ok('PUT', `/ip-lists/${await listId('tried_office')}`, { kind: 'collection', entries: [address] });
  t.deepEqual(warned(await api.ok('GET', path)), expected.slice(0, 1));
  await api.node(clusterId, 'without JA4', { features: ['rules-v1'] });
  const platform = await api.ok('PUT', '/platform-rules', { rules: [block('tls.ja4 eq "a"')] });
  t.deepEqual(warned(platform), [[0, 'ja4_held', {}]]);
  await api.ok('PUT', '/platform-rules', { rules: [] });
  await api.ok('PUT', path, { rules: [] });
});

const listId = async (name: string): Promise<string> =>
  (await api.ok('GET', '/ip-lists')).items.find((list: Body) => list.name === name).id;

test.serial('a read-only key may not try rules', async (t) => {
  const { secret } = await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'r', scope: 'read' });
  const path = `/sites/${siteId}/rules/try`;
  const answer = await api.call('POST', path, { request: REQUEST }, { 'x-api-key': secret });
  t.is(`${answer.status} ${answer.body.code}`, '403 ACCESS_KEY_READ_ONLY');
});
