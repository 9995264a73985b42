// Rules of all sites, and stored rules that compile no more.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { PlatformRulesSchema, SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { recompileStored } from '../../services/rules/recompile-rules.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

const PATH = '/platform-rules';

let running: TestConsole;
let api: Api;
let clusters: string[];

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusters = [await api.cluster('one'), await api.cluster('two')];
});
test.after.always('stop', () => running?.stop());

const rule = (name: string, more: Body = {}): Body => ({
  name,
  phase: 'waf-custom',
  expression: 'true',
  enabled: true,
  action: { kind: 'log' },
  ...more,
});
const settled = () =>
  eventually(async () => (await api.sql('publish_request')).length === 0, { what: 'publication everywhere' });
const save = async (rules: readonly Body[], more: Body = {}): Promise<Body> => {
  const answer = await api.ok('PUT', PATH, { rules, ...more });
  await settled();
  return answer;
};
const rulesAt = async (clusterId: string) => {
  const body = await api.entry(clusterId, 'platform-rules', '');
  return body && fromBinary(PlatformRulesSchema, body).rules.map(({ action }) => action.case);
};

test.serial('there are none at first, and they go to every cluster as one entry, whatever its sites', async (t) => {
  t.like(await api.ok('GET', PATH), { rules: [], warnings: [] });
  for (let site = 0; site < 3; site++) await api.site(clusters[0]!, `s${site}.example`);
  const before = await Promise.all(clusters.map((id) => api.reasons(id)));
  const { rules } = await save([rule('a'), rule('b', { enabled: false }), rule('c', { action: { kind: 'allow' } })]);
  t.deepEqual((await api.ok('GET', PATH)).rules, rules);
  for (const [index, id] of clusters.entries()) {
    t.deepEqual((await api.reasons(id)).slice(before[index]!.length), ['rules_updated']);
    t.deepEqual(await api.entries(id, 'platform-rules'), ['']);
    t.deepEqual(await rulesAt(id), ['log', 'allow']);
  }
  const late = await api.cluster('late');
  t.deepEqual(await rulesAt(late), ['log', 'allow']);
  const [entry] = await api.audit('platform_rules');
  t.like(entry, { action: 'platform.rules_update', metadata: { entries: 3, enabled: 2, added: ['a', 'b', 'c'] } });
  await save([]);
  t.is(await rulesAt(clusters[1]!), undefined);
});

test.serial('they name no group of origins, and are 32 at most', async (t) => {
  const origin = (originGroup: string) => ({ kind: 'origin', originGroup, port: 8080 });
  const rules = [rule('To', { phase: 'origin', action: origin('eu') })];
  t.like(await api.refused(t, [400, 'RULE_INVALID'], 'PUT', PATH, { rules }), { rule: 0, code: 'group_not_allowed' });
  await save([rule('To', { phase: 'origin', action: origin('') })]);
  const many = Array.from({ length: 33 }, (_, index) => rule(`r${index}`));
  await api.badField(t, '/rules', 'PUT', PATH, { rules: many });
  await save(many.slice(1));
  await save([]);
});

test.serial('their lists stay, and are those of the platform', async (t) => {
  const named = rule('Office', { expression: 'ip.src in $office' });
  t.deepEqual(await api.refused(t, [404, 'IP_LIST_REFERENCE_UNKNOWN'], 'PUT', PATH, { rules: [named] }), {
    lists: ['office'],
  });
  const list = await api.ok('POST', '/ip-lists', { name: 'office', kind: 'collection', entries: [] });
  const [saved] = (await save([named])).rules;
  t.deepEqual((await api.ok('GET', `/ip-lists/${list.id}/usage`)).items, [
    { kind: 'platform_rule', id: saved.id, name: 'Office', site: null },
  ]);
  await api.refused(t, [409, 'IP_LIST_IN_USE'], 'DELETE', `/ip-lists/${list.id}`);
  await save([]);
  await api.ok('DELETE', `/ip-lists/${list.id}`);
});

test.serial('a rollback leaves them as they are now', async (t) => {
  const clusterId = clusters[0]!;
  await save([rule('before')]);
  const { revision } = (await api.ok('GET', `/clusters/${clusterId}/revisions?pageSize=1`)).items[0];
  await save([rule('after', { action: { kind: 'allow' } })]);
  await api.ok('POST', `/clusters/${clusterId}/rollback`, { revision, restoreSettings: true });
  t.deepEqual(await rulesAt(clusterId), ['allow']);
  t.is((await api.ok('GET', PATH)).rules[0].name, 'after');
  await save([]);
});

// Stored rules that compile no more --------------------------------------------------------------------------------------

const BROKEN = 'gone.field eq "a"';
/** As after an upgrade to a console whose language has no such field. */
async function breakStored(id: string): Promise<void> {
  await api
    .sql('rule_set')
    .where({ id })
    .update({
      rules: api.sql.raw(`jsonb_set(rules, '{0,expression}', to_jsonb(?::text))`, [BROKEN]),
      compiler_version: 0,
    });
}
const recompile = () => recompileStored(running.running.runtime, new AbortController().signal);
/** The overview is read every two seconds. */
const attention = (kind: string, wanted: Body | null) =>
  eventually(
    async () => {
      const item = (await api.ok('GET', '/overview')).attention.find((one: Body) => one.kind === kind);
      return wanted ? item?.count === wanted.count && item : item === undefined && {};
    },
    { what: `${kind} ${wanted ? 'told' : 'told no more'}` },
  );

test.serial('rules of a site that compile no more stay at nodes as they were, and somebody is told', async (t) => {
  const clusterId = clusters[0]!;
  const site = await api.site(clusterId, 'stored.example');
  const path = `/sites/${site.id}/rules`;
  const put = (rules: Body[]) => api.ok('PUT', path, { rules });
  const { rules } = await put([rule('first', { action: { kind: 'block' } }), rule('second')]);
  await breakStored(site.id);
  const published = async () => {
    const body = await api.entry(clusterId, 'site-rules', site.id);
    return fromBinary(SiteRulesSchema, body!).rules.map(({ action, condition }) => [action.case, condition.length > 0]);
  };
  const same = [
    ['block', true],
    ['log', true],
  ];
  const invalid = { rule: 0, ruleId: rules[0].id, field: '/rules/0/expression', code: 'unknown_field' };
  const renamed = () => api.refused(t, [400, 'RULE_INVALID'], 'PATCH', `/sites/${site.id}`, { name: 'Other' });
  t.like(await renamed(), invalid);
  t.deepEqual(await published(), same);
  await recompile();
  t.like(await renamed(), invalid);
  t.deepEqual(await published(), same);

  t.like(await attention('site_rules_invalid', { count: 1 }), { named: [{ type: 'site', id: site.id }] });
  const stored = (await api.ok('GET', path)).rules;
  t.is(stored[0].expression, BROKEN);
  const refused = await api.refused(t, [400, 'RULE_INVALID'], 'PUT', path, {
    rules: [stored[0], { ...stored[1], name: 'x' }],
  });
  t.like(refused, { rule: 0, ruleId: rules[0].id, code: 'unknown_field' });
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  await attention('site_rules_invalid', null);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: true });
  await attention('site_rules_invalid', { count: 1 });
  await put([{ ...stored[0], expression: 'true' }, stored[1]]);
  await attention('site_rules_invalid', null);
});

test.serial('recompiled rules are published, and a rule set that cannot be recompiled stops no others', async (t) => {
  const clusterId = clusters[0]!;
  const sites: Body[] = [];
  for (const name of ['first', 'middle', 'last']) {
    const site = await api.site(clusterId, `${name}.recompiled.example`);
    await api.ok('PUT', `/sites/${site.id}/rules`, { rules: [rule('only', { enabled: true })] });
    sites.push(site);
  }
  const bodyOf = async ({ id }: Body) => (await api.entry(clusterId, 'site-rules', id))!;
  const [, middle, last] = sites;
  // As compiled by an earlier version: the entry that nodes have is another one.
  const changed = api.sql.raw(`jsonb_set(rules, '{0,expression}', '"ssl eq true"')`);
  await api.sql('rule_set').where({ id: last.id }).update({ rules: changed, compiler_version: 0 });
  await api.sql('rule_set').where({ id: middle.id }).update({ rules: '[{"enabled":true}]', compiler_version: 0 });
  const [before, revisions] = [await bodyOf(last), await api.reasons(clusterId)];
  await recompile();
  t.notDeepEqual(await bodyOf(last), before);
  t.is((await api.reasons(clusterId)).length, revisions.length + 1);
  const versions = await api.sql('rule_set').whereIn('id', [middle.id, last.id]).select('id', 'compiler_version');
  t.deepEqual(new Map(versions.map(({ id, compiler_version }) => [id, compiler_version])).get(middle.id), 0);
  await recompile();
  t.is((await api.reasons(clusterId)).length, revisions.length + 1);
  for (const { id } of sites) await api.ok('DELETE', `/sites/${id}`);
});

test.serial('a rule that was never compiled is one that no node takes', async (t) => {
  const clusterId = clusters[0]!;
  const site = await api.site(clusterId, 'never.example');
  await api.ok('PUT', `/sites/${site.id}/rules`, { rules: [rule('only', { enabled: true })] });
  await breakStored(site.id);
  await api.sql('rule_set').where({ id: site.id }).update({ body: null });
  await recompile();
  const [only] = fromBinary(SiteRulesSchema, (await api.entry(clusterId, 'site-rules', site.id))!).rules;
  t.deepEqual([only!.condition.length, only!.action.case], [0, undefined]);
  await api.ok('DELETE', `/sites/${site.id}`);
});

test.serial('the same of rules of the platform', async (t) => {
  const { rules } = await save([rule('first', { action: { kind: 'allow' } })]);
  await breakStored('');
  await recompile();
  await attention('platform_rules_invalid', { count: 1 });
  t.deepEqual(await rulesAt(await api.cluster('later')), ['allow']);
  const stored = [{ ...rules[0], expression: BROKEN, name: 'renamed' }];
  t.like(await api.refused(t, [400, 'RULE_INVALID'], 'PUT', PATH, { rules: stored }), { code: 'unknown_field' });
  await save([]);
  await attention('platform_rules_invalid', null);
});
