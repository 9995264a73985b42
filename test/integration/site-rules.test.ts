// Rules of sites: what is saved and answered, what is refused and how, and what of it nodes get.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { type Rule as RuleMessage, SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { ModelNode } from '../helpers/model-node.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { largestRule } from '../helpers/rules.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let count = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('ruled');
});
test.after.always('stop', () => running?.stop());

const newSite = async (more: Body = {}, cluster = clusterId): Promise<string> =>
  (await api.site(cluster, `r${count++}.example`, more)).id;
const pathOf = (id: string) => `/sites/${id}/rules`;
const read = (id: string): Promise<Body> => api.ok('GET', pathOf(id));
const save = (id: string, rules: readonly Body[], more: Body = {}): Promise<Body> =>
  api.ok('PUT', pathOf(id), { rules, ...more });
const rulesAt = async (id: string, cluster = clusterId): Promise<RuleMessage[] | null> => {
  const body = await api.entry(cluster, 'site-rules', id);
  return body === undefined ? null : fromBinary(SiteRulesSchema, body).rules;
};
const names = (rules: readonly Body[]): string[] => rules.map(({ name }) => name);
const newList = async (): Promise<{ id: string; name: string }> => {
  const name = `list_${count++}`;
  return { id: (await api.ok('POST', '/ip-lists', { name, kind: 'collection', entries: [] })).id, name };
};
const liveRow = (id: string) =>
  api.sql('config_entry').where({ kind: 'site-rules', resource_id: id, to_revision: null, track: 'S' }).first();

const rule = (name: string, more: Body = {}): Body => ({
  name,
  phase: 'waf-custom',
  expression: 'ip.src eq 192.0.2.1',
  enabled: true,
  action: { kind: 'block' },
  ...more,
});
const toGroup = (originGroup: string, more: Body = {}): Body =>
  rule(`To ${originGroup}`, { phase: 'origin', action: { kind: 'origin', originGroup }, ...more });
const ORIGINS = [{ address: 'a.example' }, { address: 'b.example', group: 'eu' }];

test('a site has no rules until some are saved; what is left out is filled in', async (t) => {
  const id = await newSite();
  const { updatedAt, ...empty } = await read(id);
  t.deepEqual(empty, { siteId: id, rules: [], warnings: [] });
  const { enabled: _, ...draft } = rule('Block');
  const saved = await save(id, [draft]);
  t.like(saved.rules[0], { name: 'Block', enabled: false, action: { kind: 'block', statusCode: 403 } });
  t.true(saved.updatedAt > updatedAt);
  // Nodes get what is enabled.
  t.is(saved.revision, null);
  t.is(await rulesAt(id), null);
  const { revision, ...answer } = await save(id, [{ ...saved.rules[0], enabled: true }]);
  t.truthy(revision);
  t.deepEqual(await read(id), answer);
  const [published] = (await rulesAt(id))!;
  t.deepEqual([published!.id, published!.action.case], [saved.rules[0].id, 'block']);
  const again = await save(id, answer.rules);
  t.deepEqual([again.revision, again.updatedAt], [null, answer.updatedAt]);
  await save(id, []);
  t.is(await rulesAt(id), null);
});

test('an id stays with its rule; one that stands there twice, or of others, is made anew', async (t) => {
  const [id, other] = [await newSite(), await newSite()];
  const [a, b] = (await save(id, [rule('a'), rule('b')])).rules;
  const [foreign] = (await save(other, [rule('foreign')])).rules;
  const { rules } = await save(id, [
    rule('new', { id: foreign.id }),
    { ...b, name: 'b2' },
    { ...a },
    { ...a, name: 'copy' },
  ]);
  t.deepEqual(names(rules), ['new', 'b2', 'a', 'copy']);
  t.is(new Set([foreign.id, ...rules.map((one: Body) => one.id)]).size, 5);
  t.deepEqual([rules[1].id, rules[2].id], [b.id, a.id]);
  t.is((await read(other)).rules[0].id, foreign.id);
});

test('what each change was is in the audit log, and why in the revision', async (t) => {
  const cluster = await api.cluster(`audited-${count++}`);
  const id = await newSite({}, cluster);
  const [a, b] = (await save(id, [rule('a'), rule('b')])).rules;
  await save(id, [{ ...b, expression: 'true' }, a, rule('c', { enabled: false })]);
  await save(id, [a]);
  const entries = (await api.audit(id)).filter(({ action }) => action === 'site.rules_update');
  t.deepEqual(
    entries.map(({ metadata: { entries, enabled, added, changed, removed } }) => [
      entries,
      enabled,
      added,
      changed,
      removed,
    ]),
    [
      [2, 2, ['a', 'b'], [], []],
      [3, 2, ['c'], ['b'], []],
      [1, 1, [], [], ['b', 'c']],
    ],
  );
  t.deepEqual((await api.reasons(cluster)).slice(-3), Array(3).fill('rules_updated'));
});

test('an expression that is not valid says which rule, where and why', async (t) => {
  const id = await newSite();
  const [saved] = (await save(id, [rule('kept')])).rules;
  const invalid = (rules: Body[]) => api.refused(t, [400, 'RULE_INVALID'], 'PUT', pathOf(id), { rules });
  t.like(await invalid([rule('fine'), { ...saved, expression: 'http.host eq 5' }]), {
    rule: 1,
    ruleId: saved.id,
    name: 'kept',
    field: '/rules/1/expression',
    code: 'expected_string',
    position: 13,
  });
  const target = { kind: 'redirect', target: 'lower(http.hots)' };
  t.like(await invalid([rule('To', { phase: 'redirect', action: target, enabled: false })]), {
    rule: 0,
    ruleId: null,
    field: '/rules/0/action/target',
    code: 'unknown_field',
    position: 6,
  });
  t.like(await invalid([rule('late', { expression: 'http.response.code eq 404' })]), { code: 'response_field' });
  t.deepEqual(names((await read(id)).rules), ['kept']);
});

test('a rule names groups of the site, and they stay while it does, enabled or not', async (t) => {
  const id = await newSite({ origins: ORIGINS });
  const unknown = { rules: [toGroup('us')] };
  t.like(await api.refused(t, [400, 'RULE_INVALID'], 'PUT', pathOf(id), unknown), {
    field: '/rules/0/action/originGroup',
    code: 'unknown_group',
    params: { group: 'us' },
  });
  const [saved] = (await save(id, [toGroup('eu')])).rules;
  t.deepEqual((await liveRow(id)).refs, [`group:${id}/eu`]);
  const without = { origins: [{ address: 'a.example' }] };
  const refusal = { code: 'group_in_use', params: { group: 'eu' }, rules: [{ id: saved.id, name: 'To eu' }] };
  t.like(await api.refused(t, [400, 'RULE_INVALID'], 'PATCH', `/sites/${id}`, without), refusal);
  await save(id, [{ ...saved, enabled: false }]);
  t.like(await api.refused(t, [400, 'RULE_INVALID'], 'PATCH', `/sites/${id}`, without), refusal);
  await api.ok('PATCH', `/sites/${id}`, { origins: [{ address: 'a.example' }, { address: 'c.example', group: 'eu' }] });
  await save(id, []);
  await api.ok('PATCH', `/sites/${id}`, without);
});

test('a rule names IP lists that are there, and they stay while it does, enabled or not', async (t) => {
  const id = await newSite();
  const list = await newList();
  const named = rule('Office', { expression: `ip.src in $${list.name}` });
  const absent = Array.from({ length: 6 }, (_, index) => rule('x', { expression: `ip.src in $absent_${index}` }));
  const data = await api.refused(t, [404, 'IP_LIST_REFERENCE_UNKNOWN'], 'PUT', pathOf(id), {
    rules: [named, ...absent],
  });
  t.deepEqual(data, { lists: [0, 1, 2, 3, 4].map((index) => `absent_${index}`) });

  const [saved] = (await save(id, [named])).rules;
  t.is(saved.expression, named.expression);
  t.deepEqual((await liveRow(id)).refs, [`list:${list.id}`]);
  const inUse = async () => api.refused(t, [409, 'IP_LIST_IN_USE'], 'DELETE', `/ip-lists/${list.id}`);
  t.deepEqual(await inUse(), { users: ['Office'] });
  await save(id, [{ ...saved, enabled: false }]);
  t.deepEqual(await inUse(), { users: ['Office'] });
  const site = { id, name: (await api.ok('GET', `/sites/${id}`)).name };
  t.deepEqual(await api.ok('GET', `/ip-lists/${list.id}/usage`), {
    items: [{ kind: 'site_rule', id: saved.id, name: 'Office', site }],
    total: 1,
  });
  await save(id, []);
  await api.ok('DELETE', `/ip-lists/${list.id}`);
});

test('fields that the schema judges, and those that only the rest of the rule judges, are named', async (t) => {
  const id = await newSite();
  const bad = (field: string, more: Body) =>
    api.badField(t, field, 'PUT', pathOf(id), { rules: [rule('a'), rule('b', more)] });
  await bad('/rules/1/name', { name: 'x'.repeat(101) });
  await bad('/rules/1/expression', { expression: 'x'.repeat(4097) });
  await bad('/rules/1/phase', { phase: 'later' });
  await bad('/rules/1/action/kind', { action: { kind: 'respond' } });
  await bad('/rules/1/action/statusCode', { action: { kind: 'block', statusCode: 404 } });
  await bad('/rules/1/action/target', { action: { kind: 'block', target: 'x' } });
  await bad('/rules/1/action/kind', { action: { kind: 'compression', algorithms: [] } });
  await bad('/rules/1/action/header', {
    phase: 'origin',
    action: { kind: 'request_header', header: 'X-Svc-Pass', value: 'a' },
  });
  const many = Array.from({ length: 65 }, (_, index) => rule(`r${index}`));
  await api.badField(t, '/rules', 'PUT', pathOf(id), { rules: many });
  const host = { phase: 'origin', action: { kind: 'origin', hostHeader: 'a/b' } };
  t.deepEqual(
    await api.refused(t, [400, 'ORIGIN_HOST_HEADER_INVALID'], 'PUT', pathOf(id), { rules: [rule('h', host)] }),
    {
      hostHeader: 'a/b',
      path: '/rules/0/action/hostHeader',
    },
  );
  t.deepEqual((await read(id)).rules, []);
});

test('without such a site there are no rules, and service accounts have nothing to do with them', async (t) => {
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', pathOf('nobody'));
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PUT', pathOf('nobody'), { rules: [] });
  const id = await newSite();
  const account = await api.ok('POST', '/service-accounts', { name: `robot ${count++}`, scopes: ['sites:write'] });
  const { secret } = await api.ok('POST', `/service-accounts/${account.id}/keys`, {});
  for (const [method, path] of [
    ['GET', pathOf(id)],
    ['PUT', pathOf(id)],
    ['GET', '/platform-rules'],
    ['PUT', '/platform-rules'],
  ] as const) {
    const answer = await api.call(method, path, method === 'PUT' ? { rules: [] } : undefined, { 'x-api-key': secret });
    t.is(`${answer.status} ${answer.body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN');
  }
});

test('rules wait at nodes that lack a capability, and what is disabled needs none', async (t) => {
  const id = await newSite();
  await save(id, [
    rule('a', { expression: 'http.host wildcard "a*"', action: { kind: 'challenge' } }),
    rule('b', { enabled: false, expression: 'tls.ja4 eq ""' }),
  ]);
  t.deepEqual((await liveRow(id)).features, ['challenge-v1', 'rules-v1', 'rules-v3']);
});

test('a site takes its rules along when it is deleted', async (t) => {
  const id = await newSite();
  const list = await newList();
  await save(id, [rule('Office', { expression: `ip.src in $${list.name}` })]);
  await api.ok('DELETE', `/sites/${id}`);
  t.is(await rulesAt(id), null);
  await api.ok('DELETE', `/ip-lists/${list.id}`);
});

test('nodes outside of a canary get rules when it is promoted, and what they run keeps its lists', async (t) => {
  const cluster = await api.cluster(`trying-${count++}`);
  const id = await newSite({}, cluster);
  const list = await newList();
  const [office] = (await save(id, [rule('Office', { expression: `ip.src in $${list.name}` })])).rules;
  const node = await api.node(cluster, `trier-${count++}`, { features: ['canary-v1', 'rules-v1'] });
  const tomorrow = new Date(Date.now() + 86_400_000);
  await api.sql('node_state').where({ node_id: node }).update({ last_seen_at: tomorrow });
  await api.sql('node_group').where({ cluster_id: cluster }).update({ is_canary: true });
  const policy = { enabled: true, autoPromote: false, windowSeconds: 3600 };
  await api.ok('PUT', `/clusters/${cluster}/rollout-policy`, policy);

  await save(id, [{ ...office, expression: 'true' }]);
  const track = async (name: string) => {
    const row = await api
      .sql('config_entry')
      .where({ kind: 'site-rules', resource_id: id, to_revision: null, track: name })
      .first();
    return row?.refs;
  };
  t.deepEqual([await track('S'), await track('C')], [[`list:${list.id}`], []]);
  const usage = await api.ok('GET', `/ip-lists/${list.id}/usage`);
  t.like(usage, { total: 1, items: [{ kind: 'site_rule', site: { id } }] });
  await api.refused(t, [409, 'IP_LIST_IN_USE'], 'DELETE', `/ip-lists/${list.id}`);
  await api.ok('POST', `/clusters/${cluster}/rollout/promote`, {});
  t.deepEqual([await track('S'), await track('C')], [[], undefined]);
  await api.ok('DELETE', `/ip-lists/${list.id}`);
});

const headOf = async (cluster: string): Promise<string> =>
  (await api.ok('GET', `/clusters/${cluster}/revisions?pageSize=1`)).items[0].revision;

test('a rollback puts rules back, and saves them with the settings; drafts stay', async (t) => {
  const cluster = await api.cluster(`rolled-${count++}`);
  const id = await newSite({ origins: ORIGINS }, cluster);
  const [a] = (await save(id, [rule('a'), toGroup('eu')])).rules;
  const before = await headOf(cluster);
  await save(id, [{ ...a, action: { kind: 'log' } }, rule('draft', { enabled: false })]);
  await api.ok('PATCH', `/sites/${id}`, { origins: [{ address: 'a.example' }] });

  const { items } = await api.ok(
    'GET',
    `/clusters/${cluster}/revisions/${await headOf(cluster)}/diff?against=${before}`,
  );
  const told = items.find(({ kind }: Body) => kind === 'site-rules');
  t.true(told.settingsKnown);
  t.true(
    told.fields.some(({ path, from, to }: Body) => path === 'rules.a.action.kind' && from === 'block' && to === 'log'),
  );

  await api.ok('POST', `/clusters/${cluster}/rollback`, { revision: before });
  t.deepEqual(
    (await rulesAt(id, cluster))!.map(({ action }) => action.case),
    ['block', 'origin'],
  );
  t.deepEqual(names((await read(id)).rules), ['a', 'draft']);
  // The next publication has what is saved: groups that rules name and origins go together.
  await api.ok('PATCH', `/sites/${id}`, { name: 'Renamed' });
  t.deepEqual(
    (await rulesAt(id, cluster))!.map(({ action }) => action.case),
    ['log'],
  );

  const rolled = await api.ok('POST', `/clusters/${cluster}/rollback`, { revision: before, restoreSettings: true });
  t.is(rolled.restoredSettings, 2);
  const saved = await read(id);
  t.deepEqual(names(saved.rules), ['a', 'To eu', 'draft']);
  t.is(saved.rules[0].id, a.id);
  t.deepEqual(
    (await rulesAt(id, cluster))!.map(({ action }) => action.case),
    ['block', 'origin'],
  );
});

test('a revision whose rules name an IP list that is gone cannot come back', async (t) => {
  const cluster = await api.cluster(`listed-${count++}`);
  const id = await newSite({}, cluster);
  const list = await newList();
  await save(id, [rule('Office', { expression: `ip.src in $${list.name}` })]);
  const before = await headOf(cluster);
  await save(id, []);
  await api.ok('DELETE', `/ip-lists/${list.id}`);
  for (const restoreSettings of [false, true]) {
    const body = { revision: before, restoreSettings };
    const data = await api.refused(
      t,
      [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'],
      'POST',
      `/clusters/${cluster}/rollback`,
      body,
    );
    t.deepEqual(data.resources, [{ type: 'ip_list', id: list.id, name: list.id }]);
  }
  t.deepEqual((await read(id)).rules, []);
});

test('as many rules as there can be, each as large as it can be, reach a node, also after a restart', async (t) => {
  const cluster = await api.cluster(`largest-${count++}`);
  const id = await newSite({}, cluster);
  const rules = Array.from({ length: 64 }, (_, index) => largestRule(index));
  t.true(JSON.stringify(rules).length > 4_500_000);
  const saved = await save(id, rules);
  t.is(saved.rules.length, 64);
  const restarted = await startTestConsole({
    env: { REDIS_URL: running.env.REDIS_URL! },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
  });
  try {
    const answer = await restarted.client.request<Body>('GET', `/api/v1${pathOf(id)}`, undefined, {
      'x-api-key': running.client.accessKey,
    });
    const { revision: _, ...kept } = saved;
    t.deepEqual(answer.body, kept);
    const node = new ModelNode(cluster);
    await node.heartbeat(restarted.running.runtime.pools.channel);
    const entry = node.entries.get(`site-rules\0${id}`)!;
    const got = fromBinary(SiteRulesSchema, entry.body).rules;
    t.deepEqual(
      got.map((one) => one.id),
      saved.rules.map((one: Body) => one.id),
    );
    const [first] = got;
    const { query } = first!.action.value as { query: { set: unknown[]; remove: unknown[] } };
    t.deepEqual([query.set.length, query.remove.length], [16, 16]);
  } finally {
    await restarted.stop();
  }
});
