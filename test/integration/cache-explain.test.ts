// An explanation of the cache says what a real edge does: the word of the first request, and whether the second is a hit.
import test from 'ava';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;

test.before('start', async () => {
  running = await startNodeConsole();
});
test.after.always('stop', () => running?.stop());

const HOST = 'explained.example';
type Lines = Record<string, string>;
interface Case {
  path?: string;
  method?: string;
  request?: Lines;
  status?: number;
  response?: Lines;
}
const CASES: readonly Case[] = [
  {},
  { path: '/api/x' },
  { path: '/a/%2e%2e/b' },
  { path: '/skipped/' },
  { path: '/missing', status: 404 },
  { path: '/teapot', status: 418 },
  { method: 'POST' },
  { request: { authorization: 'Basic eDp5' } },
  { request: { 'x-http-method-override': 'DELETE' } },
  { request: { cookie: 'lang=de; LANG=en' } },
  { response: { 'cache-control': 'no-store' } },
  { response: { 'cache-control': 'private' } },
  { response: { 'cache-control': 's-maxage=60, max-age=0' } },
  { response: { 'cache-control': 'public' } },
  { response: { 'cache-control': 'no-store', 'cdn-cache-control': 'max-age=60' } },
  { response: { 'set-cookie': 'a=b' } },
  { response: { vary: '*' } },
  { response: { vary: 'accept-language' }, request: { 'accept-language': 'de' } },
  { response: { expires: '0' } },
];

test('what is explained is what a node does', async (t) => {
  const api = new Api(running);
  const clusterId = await api.cluster('explained');
  const now = new Map<string, Case>();
  const { address, port } = await startLocalOrigin(t, api, ({ url = '' }, response) => {
    const { status = 200, response: headers = {} } = now.get(url.replace(/.*n=/, '')) ?? {};
    response.writeHead(status, headers).end('a body');
  });
  const { send } = await startLocalEdge(t, running, clusterId);
  const cacheRules = [
    { priority: 10, pathPrefixes: ['/api/'], action: 'bypass' },
    { priority: 20, statusCodes: [200], edgeTtlSeconds: 60 },
    { priority: 30, statusCodes: [404], edgeTtlSeconds: 5 },
  ];
  const cacheSettings = { cacheKey: { cookies: ['lang'] } };
  const { id } = await api.site(clusterId, HOST, { origins: [{ address, port }], cacheRules, cacheSettings });
  const skip = { kind: 'config', cacheBypass: true };
  const expression = 'starts_with(http.request.uri.path, "/skipped/")';
  await api.ok('PUT', `/sites/${id}/rules`, {
    rules: [{ name: 'No cache here', phase: 'config', expression, enabled: true, action: skip }],
  });
  const wordOf = async (path: string) => (await send(HOST, { path })).headers['x-cache'];
  await eventually(async () => (await wordOf('/served')) === 'HIT' && (await wordOf('/skipped/')) === 'BYPASS');

  const explain = (body: Body) => api.ok('POST', `/sites/${id}/cache/explain`, body);
  const lines = (headers: Lines = {}) => Object.entries(headers).map(([name, value]) => ({ name, value }));
  for (const [index, one] of CASES.entries()) {
    now.set(`${index}`, one);
    const { method = 'GET', request, status = 200, response } = one;
    const path = `${one.path ?? '/page'}?n=${index}`;
    const said = await explain({
      request: { method, url: `http://${HOST}${path}`, address: '127.0.0.1', headers: lines(request) },
      response: { status, headers: lines(response) },
    });
    const ask = async () => (await send(HOST, { method, path, headers: request ?? {} })).headers['x-cache'];
    const about = `${method} ${path} ${JSON.stringify(one)}: ${said.decision}, ${said.why}`;
    t.is(await ask(), said.xCache, about);
    if (said.decision === 'stored') await eventually(async () => (await ask()) === 'HIT', { what: about });
    else t.is(await ask(), said.xCache, about);
  }

  const asked = { url: `http://${HOST}/api/x`, address: '127.0.0.1' };
  t.like(await explain({ request: asked }), { decision: 'bypassed', rule: 10, why: 'rule_bypasses' });
  t.like(await explain({ request: asked, cacheRules: [{}] }), { decision: 'response_needed' });
  t.like(await explain({ request: asked, response: { status: 200 }, cacheRules: [{ edgeTtlSeconds: 7 }] }), {
    decision: 'stored',
    freshness: { source: 'rule', lifetimeSeconds: 7 },
  });
  const skipped = await explain({ request: { ...asked, url: `http://${HOST}/skipped/x` } });
  t.like(skipped, { why: 'site_rule', decidedBy: { part: 'site_rule', name: 'No cache here' } });
  const block = { name: 'No entry', phase: 'waf-custom', expression: 'true', enabled: true, action: { kind: 'block' } };
  await api.ok('PUT', `/sites/${id}/rules`, { rules: [block] });
  const answered = await explain({ request: asked, response: { status: 200 } });
  t.like(answered, { decision: 'ended', decidedBy: { name: 'No entry', value: 'block' }, key: null });

  await api.refused(t, [400, 'RULE_INVALID'], 'POST', `/sites/${id}/cache/explain`, {
    request: asked,
    cacheRules: [{ expression: 'http.hots eq "a"' }],
  });
  await api.refused(t, [404, 'IP_LIST_REFERENCE_UNKNOWN'], 'POST', `/sites/${id}/cache/explain`, {
    request: asked,
    cacheRules: [{ expression: 'ip.src in $nobody' }],
  });
  await api.refused(t, [400, 'BAD_REQUEST'], 'POST', `/sites/${id}/cache/explain`, { request: { ...asked, url: 'x' } });
});
