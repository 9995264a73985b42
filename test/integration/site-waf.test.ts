// The WAF of sites through /api/v1: what is taken and kept, what nodes get of it, and what a rollback brings back.
import { fromBinary, toJson } from '@bufbuild/protobuf';
import test from 'ava';
import { presetOf, WAF_PRESETS } from '../../contract/presets.ts';
import { DEFAULT_WAF } from '../../contract/resources/site-waf.ts';
import { exclusionsOfPack, packsOf, WAF_PACKS } from '../../contract/waf-packs.ts';
import { MAX_WAF_TARGETS, WAF_CONTENT_TYPES, WAF_TAGS } from '../../contract/waf-rule-set.ts';
import { SiteWafSchema } from '../../proto/gen/svc/config/v1/waf_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

/** A site in a cluster of its own. */
async function newSite() {
  const name = `inspected-${made++}`;
  const clusterId = await api.cluster(name);
  const { id } = await api.site(clusterId, `${name}.example`);
  const path = `/sites/${id}/waf`;
  return {
    id: id as string,
    clusterId,
    path,
    read: (): Promise<Body> => api.ok('GET', path),
    patch: (change: Body): Promise<Body> => api.ok('PATCH', path, change),
    async entry() {
      const body = await api.entry(clusterId, 'site-waf', id);
      return body ? (toJson(SiteWafSchema, fromBinary(SiteWafSchema, body)) as Body) : null;
    },
    async features(): Promise<string[] | undefined> {
      const key = { cluster_id: clusterId, kind: 'site-waf', resource_id: id, to_revision: null };
      return (await api.sql('config_entry').where(key).first())?.features;
    },
  };
}

const ON_Q = { ruleId: 942_100, part: 'argument', name: 'q' };

test('a site is not inspected until somebody says so; what was never saved has no time', async (t) => {
  const site = await newSite();
  t.deepEqual(await site.read(), { siteId: site.id, ...DEFAULT_WAF, updatedAt: null });
  t.like(DEFAULT_WAF, { mode: 'off', paranoiaLevel: 1, anomalyThreshold: 5, requestBodyLimit: 131_072 });
  t.deepEqual(DEFAULT_WAF.excludedRuleIds, []);
  // Saving what is there changes nothing.
  t.like(await site.patch({ mode: 'off', paranoiaLevel: 1 }), { updatedAt: null, revision: null });
  t.deepEqual(await api.audit(site.id).then((entries) => entries.map(({ action }) => action)), ['site.create']);
  const { revision, updatedAt, ...saved } = await site.patch({ mode: 'detect', expectedUpdatedAt: null });
  t.regex(revision, /^\d+$/);
  t.regex(updatedAt, /Z$/);
  t.deepEqual(saved, { siteId: site.id, ...DEFAULT_WAF, mode: 'detect' });
  t.deepEqual(await site.read(), { ...saved, updatedAt });
  t.is((await api.reasons(site.clusterId)).at(-1), 'site_waf_updated');
  t.deepEqual(await site.entry(), {
    mode: 'WAF_MODE_DETECT',
    paranoiaLevel: 1,
    anomalyThreshold: 5,
    requestBodyLimit: 131_072,
  });
  t.like(await site.patch({ mode: 'block', requestBodyLimit: 0 }), { requestBodyLimit: 0 });
  t.deepEqual(await site.entry(), { mode: 'WAF_MODE_BLOCK', paranoiaLevel: 1, anomalyThreshold: 5 });
});

test('given fields change and others stay, and what is off reaches no node', async (t) => {
  const site = await newSite();
  const stored = await site.patch({
    paranoiaLevel: 4,
    anomalyThreshold: 1000,
    requestBodyLimit: 134_217_728,
    excludedRuleIds: [999_999, 942_100, 900_000],
    excludedFamilies: [933, 932],
  });
  t.is(stored.revision, null);
  t.is(await site.entry(), null);
  t.deepEqual(stored.excludedRuleIds, [900_000, 942_100, 999_999]);
  t.deepEqual(stored.excludedFamilies, [932, 933]);
  const { revision, ...on } = await site.patch({ mode: 'block' });
  t.truthy(revision);
  t.like(on, { paranoiaLevel: 4, anomalyThreshold: 1000, requestBodyLimit: 134_217_728 });
  t.deepEqual(await site.entry(), {
    mode: 'WAF_MODE_BLOCK',
    paranoiaLevel: 4,
    anomalyThreshold: 1000,
    requestBodyLimit: 134_217_728,
    excludedRules: [900_000, 942_100, 999_999],
    excludedFamilies: [932, 933],
  });
  t.deepEqual(await site.features(), ['modsecurity-v1']);
  // Presets leave the mode and exclusions alone.
  const loose = await site.patch(WAF_PRESETS.loose);
  t.is(presetOf(WAF_PRESETS, loose), 'loose');
  t.like(loose, { mode: 'block', paranoiaLevel: 1, anomalyThreshold: 10, requestBodyLimit: 65_536 });
  t.deepEqual(loose.excludedFamilies, [932, 933]);
  t.deepEqual(WAF_PRESETS.standard, { paranoiaLevel: 1, anomalyThreshold: 5, requestBodyLimit: 131_072 });
  t.deepEqual(WAF_PRESETS.strict, { paranoiaLevel: 2, anomalyThreshold: 5, requestBodyLimit: 1_048_576 });
  await site.patch({ mode: 'off' });
  t.is(await site.entry(), null);
  t.deepEqual((await site.read()).excludedFamilies, [932, 933]);
});

test('a site does without the built-in exceptions on nodes that know the switch, and keeps it', async (t) => {
  const site = await newSite();
  t.like(await site.patch({ mode: 'block' }), { builtInExceptions: true });
  t.deepEqual(await site.features(), ['modsecurity-v1']);
  await site.patch({ builtInExceptions: false });
  t.like(await site.entry(), { withoutExceptions: true });
  t.deepEqual(await site.features(), ['modsecurity-v1', 'waf-exceptions-v1']);
  t.like(await site.patch({ mode: 'detect' }), { builtInExceptions: false });
  const { changed, after } = (await api.audit(site.id)).find(
    ({ metadata }) => metadata.after?.builtInExceptions === false,
  )!.metadata;
  t.deepEqual({ changed, after }, { changed: ['builtInExceptions'], after: { builtInExceptions: false } });
  await site.patch({ builtInExceptions: true });
  t.deepEqual(await site.features(), ['modsecurity-v1']);
});

test('packs reach nodes as exclusions behind those of the site, are kept, and are told in the audit', async (t) => {
  const site = await newSite();
  t.deepEqual((await site.patch({ mode: 'block', exclusions: [ON_Q] })).packs, []);
  const saved = await site.patch({ packs: ['grafana', 'wordpress'] });
  t.deepEqual(saved.packs, ['wordpress', 'grafana']);
  t.is(saved.exclusions.length, 1);
  const { exclusions, contentTypes } = (await site.entry())!;
  t.is(contentTypes, undefined);
  const whole = packsOf(['wordpress', 'grafana']).flatMap(exclusionsOfPack);
  t.is(exclusions.length, 1 + whole.length);
  t.deepEqual(exclusions.slice(0, 2), [
    { rule: 942_100, part: 'WAF_PART_ARGUMENT', name: 'q' },
    { tag: 'attack-xss', path: '/wp-admin/post.php', part: 'WAF_PART_ARGUMENT', name: 'content' },
  ]);
  t.deepEqual((await site.patch({ mode: 'detect' })).packs, ['wordpress', 'grafana']);
  const { metadata } = (await api.audit(site.id)).find(({ metadata: { changed } }) => changed?.includes('packs'))!;
  t.like(metadata, { changed: ['packs'], before: { packs: [] }, after: { packs: ['wordpress', 'grafana'] } });
  await site.patch({ exclusions: [], packs: ['git'] });
  t.deepEqual(await site.features(), ['modsecurity-v1', 'waf-exclusions-v1']);
  const types = packsOf(['git'])[0]!.contentTypes;
  t.deepEqual((await site.entry())!.contentTypes, [...WAF_CONTENT_TYPES, ...types]);
  await site.patch({ allowedContentTypes: ['text/plain'] });
  t.deepEqual((await site.entry())!.contentTypes, ['text/plain', ...types]);
  await site.patch({ packs: [] });
  t.deepEqual(await site.features(), ['modsecurity-v1']);
  t.deepEqual((await site.entry())!.contentTypes, ['text/plain']);
});

test('packs count towards the limits of nodes, and the refusal names the field and both numbers', async (t) => {
  const site = await newSite();
  const refused = async (change: Body, path: string): Promise<Body> => {
    const { issues } = await api.refused(t, [400, 'BAD_REQUEST'], 'PATCH', site.path, change);
    t.is(issues[0].path, path);
    return issues[0];
  };
  const many = (count: number) => Array.from({ length: count }, (_, n) => ({ ...ON_Q, name: `q${n}` }));
  const packs = ['wordpress'];
  const size = packsOf(packs).flatMap(exclusionsOfPack).length;
  await site.patch({ mode: 'block', exclusions: many(200 - size + 1) });
  t.like(await refused({ packs }, '/packs'), { keyword: 'wafPacks', params: { count: 201, limit: 200 } });
  await site.patch({ exclusions: many(200 - size), packs });
  t.is((await site.entry())!.exclusions.length, 200);
  t.like(await refused({ exclusions: many(200 - size + 1) }, '/exclusions'), { keyword: 'wafPacks' });
  const types = Array.from({ length: 64 }, (_, n) => `text/x${n}`);
  await refused({ packs: ['git'], allowedContentTypes: types, exclusions: [] }, '/packs');
  for (const bad of [['unknown'], ['git', 'git']])
    await api.badField(t, bad.length > 1 ? '/packs' : '/packs/0', 'PATCH', site.path, { packs: bad });
});

test('packs of a site are listed with what each excludes and why, and with the events that it would silence', async (t) => {
  const site = await newSite();
  await site.patch({ mode: 'detect', packs: ['git'] });
  const list = await api.ok('GET', `${site.path}/packs`);
  t.like(list, { approximate: true, looked: 0 });
  t.deepEqual(
    list.items.map(({ pack, enabled }: Body) => [pack, enabled]),
    WAF_PACKS.map(({ id }) => [id, id === 'git']),
  );
  const { exclusions, ...wordpress } = list.items[0];
  t.deepEqual(wordpress, {
    pack: 'wordpress',
    name: 'WordPress',
    version: 1,
    documented: 'WordPress 6.8',
    enabled: false,
    contentTypes: [],
    events: 0,
    matched: 0,
  });
  const { reason, ...first } = exclusions[0];
  t.regex(reason, /editor/);
  const blank = { ruleId: null, pathPrefix: false };
  t.deepEqual(first, { ...blank, tag: 'attack-xss', path: '/wp-admin/post.php', part: 'argument', name: 'content' });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/waf/packs');
});

test('exclusions are kept complete and in one form, each once', async (t) => {
  const site = await newSite();
  const given = [
    ON_Q,
    { ...ON_Q, path: '', pathPrefix: true },
    { tag: 'attack-xss', path: '/blog/./x/..//edit', pathPrefix: true, part: 'argument', name: 'posts.*.body' },
    { ruleId: 920_300, tag: null, part: 'header', name: 'Accept' },
    { ruleId: null, tag: 'attack-sqli', path: '/report', part: 'all' },
    { ruleId: 941_100, part: 'cookie', name: 'é'.repeat(128), path: `/${'é'.repeat(511)}` },
  ];
  const { exclusions } = await site.patch({ mode: 'block', exclusions: given });
  const blank = { ruleId: null, tag: null, path: '', pathPrefix: false };
  t.deepEqual(exclusions, [
    { ...blank, ...ON_Q },
    { ...blank, tag: 'attack-xss', path: '/blog/edit', pathPrefix: true, part: 'argument', name: 'posts.*.body' },
    { ...blank, ruleId: 920_300, part: 'header', name: 'Accept' },
    { ...blank, tag: 'attack-sqli', path: '/report', part: 'all', name: '' },
    { ...blank, ...given[5] },
  ]);
  t.deepEqual((await site.read()).exclusions, exclusions);
  t.deepEqual((await site.entry()).exclusions.slice(0, 4), [
    { rule: 942_100, part: 'WAF_PART_ARGUMENT', name: 'q' },
    { tag: 'attack-xss', path: '/blog/edit', pathPrefix: true, part: 'WAF_PART_ARGUMENT', name: 'posts.*.body' },
    { rule: 920_300, part: 'WAF_PART_HEADER', name: 'Accept' },
    { tag: 'attack-sqli', path: '/report', part: 'WAF_PART_ALL' },
  ]);
  t.deepEqual(await site.features(), ['modsecurity-v1', 'waf-exclusions-v1']);
  // What was read can be saved.
  t.is((await site.patch({ exclusions })).revision, null);
  await site.patch({ exclusions: [] });
  t.deepEqual(await site.features(), ['modsecurity-v1']);
});

test('as many exclusions as there may be, of the largest size, reach nodes', async (t) => {
  const site = await newSite();
  const exclusions = Array.from({ length: 200 }, (_, n) => ({
    ruleId: 942_000 + n,
    path: `/${String(n).padEnd(1023, 'p')}`,
    part: 'argument',
    name: String(n).padEnd(256, 'n'),
  }));
  const many = (count: number, of: (n: number) => unknown) => Array.from({ length: count }, (_, n) => of(n));
  await site.patch({
    mode: 'block',
    exclusions,
    excludedRuleIds: many(200, (n) => 930_000 + n),
    allowedContentTypes: many(64, (n) => `${String(n).padEnd(127, 'a')}/${'b'.repeat(127)}`),
    allowedMethods: many(32, (n) => `M${n}`),
    allowedCharsets: many(32, (n) => `charset-${n}`),
  });
  const entry = (await site.entry())!;
  t.is(entry.exclusions.length, 200);
  t.is(entry.contentTypes.length, 64);
  const { metadata } = (await api.audit(site.id)).at(-1)!;
  t.is(metadata.added, 200);
  await api.badField(t, '/exclusions', 'PATCH', site.path, { exclusions: [...exclusions, ON_Q] });
});

test('methods, media types and charsets are taken in one form, and none leaves those of nodes', async (t) => {
  const site = await newSite();
  const saved = await site.patch({
    mode: 'detect',
    allowedMethods: ['GET', 'PROPFIND'],
    allowedContentTypes: ['Application/JSON', 'application/json', 'image/svg+xml'],
    allowedCharsets: ['UTF-8', 'utf-8', 'Shift_JIS'],
  });
  t.deepEqual(saved.allowedContentTypes, ['application/json', 'image/svg+xml']);
  t.deepEqual(saved.allowedCharsets, ['utf-8', 'shift_jis']);
  t.like(await site.entry(), {
    methods: ['GET', 'PROPFIND'],
    contentTypes: ['application/json', 'image/svg+xml'],
    charsets: ['utf-8', 'shift_jis'],
  });
  await site.patch({ allowedMethods: [], allowedContentTypes: [], allowedCharsets: [] });
  t.is((await site.entry())!.methods, undefined);
});

test('what is out of its limits is refused by its field', async (t) => {
  const site = await newSite();
  const bad = (change: Body, field = Object.keys(change)[0]!) =>
    api.badField(t, `/${field}`, 'PATCH', site.path, change);
  await bad({ mode: 'on' });
  for (const level of [0, 5, 1.5]) await bad({ paranoiaLevel: level });
  for (const threshold of [0, 1001]) await bad({ anomalyThreshold: threshold });
  for (const limit of [-1, 134_217_729]) await bad({ requestBodyLimit: limit });
  for (const id of [899_999, 1_000_000, '942100']) await bad({ excludedRuleIds: [id] }, 'excludedRuleIds/0');
  await bad({ excludedRuleIds: [942_100, 942_100] });
  await bad({ excludedRuleIds: Array.from({ length: 201 }, (_, n) => 942_000 + n) });
  for (const family of [899, 1000]) await bad({ excludedFamilies: [family] }, 'excludedFamilies/0');
  await bad({ excludedFamilies: [933, 933] });
  await bad({ excludedFamilies: Array.from({ length: 21 }, (_, n) => 910 + n) });
  for (const method of ['get', 'GET POST', 'A|B', 'A%B', ''])
    await bad({ allowedMethods: [method] }, 'allowedMethods/0');
  await bad({ allowedMethods: Array.from({ length: 33 }, (_, n) => `M${n}`) });
  for (const type of ['text', 'text/a| |text/b', 'text/html; charset=utf-8', 'a/b/c', `${'a'.repeat(128)}/b`]) {
    await bad({ allowedContentTypes: [type] }, 'allowedContentTypes/0');
  }
  await bad({ allowedContentTypes: Array.from({ length: 65 }, (_, n) => `text/x${n}`) });
  for (const charset of ['a b', '', 'x'.repeat(128)]) await bad({ allowedCharsets: [charset] }, 'allowedCharsets/0');
  await bad({ allowedCharsets: Array.from({ length: 33 }, (_, n) => `c${n}`) });
  await bad({ siteId: 'x' });
  t.is((await site.read()).updatedAt, null);
});

test('an exclusion that no node would take is refused by its field', async (t) => {
  const site = await newSite();
  const bad = async (field: string, exclusion: Body) =>
    api.badField(t, `/exclusions/1/${field}`, 'PATCH', site.path, { exclusions: [ON_Q, exclusion] });
  await bad('ruleId', { part: 'all' });
  await bad('tag', { ruleId: 942_100, tag: 'attack-sqli' });
  await bad('tag', { tag: 'no-such-tag' });
  await bad('tag', { tag: 'constructor' });
  await bad('ruleId', { ruleId: 200_002 });
  await bad('part', { ruleId: 942_100, part: 'body' });
  await bad('name', { ruleId: 942_100, part: 'argument' });
  await bad('name', { ruleId: 942_100, part: 'all', name: 'q' });
  await bad('name', { ...ON_Q, name: 'é'.repeat(129) });
  await bad('name', { ...ON_Q, name: 'a\nb' });
  await bad('path', { ...ON_Q, path: 'editor' });
  await bad('path', { ...ON_Q, path: `/${'é'.repeat(512)}` });
  await bad('path', { ...ON_Q, path: '/a\u0000' });
  // All rules have the first tag: of these nodes take so many and no more.
  const [tag, rules] = Object.entries(WAF_TAGS).sort(([, a], [, b]) => b - a)[0]!;
  const broad = Array.from({ length: Math.floor(MAX_WAF_TARGETS / (rules * 6)) }, (_, n) => ({
    tag,
    part: 'argument',
    name: `a${n}`,
  }));
  await site.patch({ exclusions: broad });
  const more = [...broad, { tag, part: 'argument', name: 'more' }];
  await api.badField(t, '/exclusions', 'PATCH', site.path, { exclusions: more });
});

test('rules that hold the others together cannot be excluded, whatever way is tried', async (t) => {
  const site = await newSite();
  const refused = (change: Body) => api.refused(t, [400, 'WAF_RULE_NOT_EXCLUDABLE'], 'PATCH', site.path, change);
  t.deepEqual(await refused({ excludedRuleIds: [980_130, 942_100, 901_100, 949_110, 959_100] }), {
    ids: [901_100, 949_110, 959_100, 980_130],
  });
  t.deepEqual(await refused({ excludedRuleIds: Array.from({ length: 200 }, (_, n) => 901_000 + n) }), {
    ids: [901_000, 901_001, 901_002, 901_003, 901_004],
  });
  t.deepEqual(await refused({ exclusions: [ON_Q, { ruleId: 949_110 }] }), { ids: [949_110] });
  t.deepEqual(await refused({ excludedFamilies: [980, 933, 901] }), { ids: [], families: [901, 980] });
  t.is((await site.read()).updatedAt, null);
});

test('who saw another version is refused, and a site that is not there is not found', async (t) => {
  const site = await newSite();
  const mismatch = (expectedUpdatedAt: string | null) =>
    api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', site.path, { mode: 'detect', expectedUpdatedAt });
  t.deepEqual(await mismatch(new Date(0).toISOString()), { updatedAt: null });
  const { updatedAt } = await site.patch({ mode: 'block', expectedUpdatedAt: null });
  t.deepEqual(await mismatch(null), { updatedAt });
  const next = await site.patch({ mode: 'detect', expectedUpdatedAt: updatedAt });
  t.true(next.updatedAt > updatedAt);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/waf');
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PATCH', '/sites/nobody/waf', { mode: 'off' });
});

test('the audit tells what was, what is, and which exclusions came and went', async (t) => {
  const site = await newSite();
  const { exclusions } = await site.patch({ mode: 'block', anomalyThreshold: 7, exclusions: [ON_Q] });
  await site.patch({ exclusions: [] });
  const [, first, second] = await api.audit(site.id);
  t.like(first, { action: 'site.waf_update' });
  t.like(first!.metadata, {
    changed: ['mode', 'anomalyThreshold', 'exclusions'],
    before: { mode: 'off', anomalyThreshold: 5 },
    after: { mode: 'block', anomalyThreshold: 7 },
    added: exclusions,
    removed: [],
  });
  t.like(second!.metadata, { changed: ['exclusions'], before: {}, after: {}, added: [], removed: exclusions });
});

test('a rollback brings the settings of a revision back; of one without inspection it only switches it off', async (t) => {
  const site = await newSite();
  const roll = (revision: string) =>
    api.ok('POST', `/clusters/${site.clusterId}/rollback`, { revision, restoreSettings: true });
  const created = (await api.ok('GET', `/clusters/${site.clusterId}/revisions`)).items[0].revision;
  const first = await site.patch({ mode: 'block', paranoiaLevel: 2, exclusions: [ON_Q], eventValues: true });
  const was = await site.entry();
  t.like(was, { eventValues: true });
  await site.patch({ mode: 'detect', paranoiaLevel: 3, excludedFamilies: [933], exclusions: [], eventValues: false });
  await api.ok('POST', `/clusters/${site.clusterId}/rollback`, { revision: first.revision });
  t.deepEqual(await site.entry(), was);
  t.like(await site.read(), { mode: 'detect', paranoiaLevel: 3 });
  await roll(first.revision);
  t.deepEqual(await site.entry(), was);
  const restored = await site.read();
  t.like(restored, { mode: 'block', paranoiaLevel: 2, excludedFamilies: [], eventValues: true });
  t.deepEqual(restored.exclusions, first.exclusions);
  t.true(restored.updatedAt > first.updatedAt);
  await roll(created);
  t.is(await site.entry(), null);
  const off = await site.read();
  t.like(off, { mode: 'off', paranoiaLevel: 2 });
  t.deepEqual(off.exclusions, first.exclusions);
});

test('while a canary tries settings, all other nodes keep theirs', async (t) => {
  const site = await newSite();
  await site.patch({ mode: 'detect' });
  await api.node(site.clusterId, `canary-${made++}`, { features: ['canary-v1', 'modsecurity-v1'] });
  await api.sql('node_group').where({ cluster_id: site.clusterId }).update({ is_canary: true });
  await api
    .sql('cluster_rollout')
    .insert({ cluster_id: site.clusterId, enabled: true })
    .onConflict('cluster_id')
    .merge();
  await site.patch({ mode: 'block' });
  const modes = async () => {
    const rows = await api
      .sql('config_entry')
      .join('config_blob', 'hash', 'blob_hash')
      .where({ cluster_id: site.clusterId, kind: 'site-waf', resource_id: site.id, to_revision: null })
      .orderBy('track');
    return rows.map(
      ({ track, body }) => `${track} ${(toJson(SiteWafSchema, fromBinary(SiteWafSchema, body)) as Body).mode}`,
    );
  };
  t.deepEqual(await modes(), ['C WAF_MODE_BLOCK', 'S WAF_MODE_DETECT']);
  // Once it is aborted no node blocks; what is saved does, and is tried again when it is saved as it is.
  await api.ok('POST', `/clusters/${site.clusterId}/rollout/abort`);
  t.deepEqual(await modes(), ['S WAF_MODE_DETECT']);
  t.is((await site.read()).mode, 'block');
  t.truthy((await site.patch({ mode: 'block' })).revision);
  t.deepEqual(await modes(), ['C WAF_MODE_BLOCK', 'S WAF_MODE_DETECT']);
  t.is((await site.patch({ mode: 'block' })).revision, null);
});

test('the WAF of a site goes with it', async (t) => {
  const site = await newSite();
  await site.patch({ mode: 'block' });
  await api.ok('DELETE', `/sites/${site.id}`);
  t.is(await site.entry(), null);
  t.deepEqual(await api.sql('site_waf').where({ site_id: site.id }), []);
});
