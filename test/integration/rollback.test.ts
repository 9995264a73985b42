// Revisions: what each changed, field by field, and putting an earlier one back through /api/v1.
import test from 'ava';
import fc from 'fast-check';
import { planRollback } from '../../models/config/rollback.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

const NOT_FOUND: [number, string] = [404, 'REVISION_NOT_FOUND'];
const UNAVAILABLE: [number, string] = [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'];

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

/** A cluster of its own for each test. */
const newCluster = () => api.cluster(`rolled-${made++}`);
const newDomain = () => `site-${made++}.example`;
const latest = async (clusterId: string): Promise<Body> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions?pageSize=1`)).items[0];
const head = async (clusterId: string): Promise<string> => (await latest(clusterId)).revision;
const preview = (clusterId: string, revision: string): Promise<Body> =>
  api.ok('GET', `/clusters/${clusterId}/rollback-preview?revision=${revision}`);
const rollBack = (clusterId: string, revision: string, more: Body = {}): Promise<Body> =>
  api.ok('POST', `/clusters/${clusterId}/rollback`, { revision, ...more });
const diff = async (clusterId: string, revision: string, more = ''): Promise<Body[]> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions/${revision}/diff${more}`)).items;
const origins = (...addresses: string[]) => ({ origins: addresses.map((address) => ({ address })) });
/** Refused so by the preview and by the rollback, with the same data. */
async function refusedBoth(t: Parameters<Api['refused']>[0], why: [number, string], id: string, revision: string) {
  const data = await api.refused(t, why, 'GET', `/clusters/${id}/rollback-preview?revision=${revision}`);
  t.deepEqual(await api.refused(t, why, 'POST', `/clusters/${id}/rollback`, { revision }), data);
  return data;
}
/** A change of the whole installation, once it is published everywhere: other tests count the revisions of their clusters. */
async function everywhere(method: string, path: string, body: Body): Promise<Body> {
  const answer = await api.ok(method, path, body);
  await eventually(async () => (await api.sql('publish_request')).length === 0, { what: 'publication everywhere' });
  return answer;
}
const states = async (clusterId: string): Promise<Body[]> =>
  (await api.sql('config_entry').where({ cluster_id: clusterId, to_revision: null }))
    .map(({ kind, resource_id, blob_hash }) => `${kind} ${resource_id} ${blob_hash.toString('hex')}`)
    .sort();

test('a revision says how many sites it serves and why it was made', async (t) => {
  const clusterId = await newCluster();
  t.like(await latest(clusterId), { siteCount: 0, reasonCode: 'cluster_created', reason: 'Cluster created.' });
  const site = await api.site(clusterId, newDomain());
  await api.site(clusterId, newDomain());
  t.like(await latest(clusterId), { siteCount: 2, reason: 'Site created.' });
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Other' });
  t.is((await latest(clusterId)).siteCount, 2);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  t.is((await latest(clusterId)).siteCount, 1);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: true });
  t.is((await latest(clusterId)).siteCount, 2);
  await api.ok('DELETE', `/sites/${site.id}`);
  t.is((await latest(clusterId)).siteCount, 1);
});

test('what a revision changed is told by object and field, from what to what', async (t) => {
  const clusterId = await newCluster();
  const [domain, added] = [newDomain(), newDomain()];
  const { id } = await api.site(clusterId, domain, { name: 'Shop', ...origins('a.example', 'b.example') });
  const subject = { type: 'site', id, name: 'Shop', exists: true };
  const [created] = await diff(clusterId, await head(clusterId));
  t.like(created, { kind: 'site', id, subject, change: 'added', settingsKnown: true });
  t.deepEqual(
    created.fields.find(({ path }: Body) => path === 'domains'),
    { path: 'domains', to: [domain] },
  );

  const before = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}`, { domains: [domain, added], ...origins('a.example', 'c.example') });
  t.deepEqual(await diff(clusterId, await head(clusterId)), [
    {
      kind: 'site',
      id,
      subject,
      change: 'changed',
      settingsKnown: true,
      fields: [
        { path: 'domains', from: [domain], to: [domain, added] },
        { path: 'origins.1.address', from: 'b.example', to: 'c.example' },
      ],
    },
  ]);
  await api.ok('PATCH', `/sites/${id}/protection`, { cc: { enabled: true, siteQps: 1234 } });
  const [protection] = await diff(clusterId, await head(clusterId));
  t.like(protection, { kind: 'protection', id, change: 'added' });
  t.deepEqual(protection.fields, [
    { path: 'cc.enabled', from: false, to: true },
    { path: 'cc.siteQps', from: protection.fields[1].from, to: 1234 },
  ]);
  const since = await diff(clusterId, await head(clusterId), `?against=${before}`);
  t.deepEqual(
    since.map(({ kind }) => kind),
    ['protection', 'site'],
  );
  const back = await diff(clusterId, before, `?against=${await head(clusterId)}`);
  t.deepEqual(
    back.map(({ kind, change }) => `${kind} ${change}`),
    ['protection removed', 'site changed'],
  );
  t.deepEqual(back[1].fields[1], { path: 'origins.1.address', from: 'c.example', to: 'b.example' });

  await api.ok('DELETE', `/sites/${id}`);
  const removed = await diff(clusterId, await head(clusterId));
  t.deepEqual(
    removed.map(({ change }) => change),
    ['removed', 'removed', 'removed'],
  );
  t.deepEqual(removed[0].subject, { ...subject, exists: false });
});

test.serial('of an IP list it is told that it changed, once, not its addresses', async (t) => {
  const clusterId = await newCluster();
  const entries = Array.from({ length: 40 }, (_, index) => `198.51.100.${index}`);
  const { id } = await everywhere('POST', '/ip-lists', { name: `list_${made++}`, kind: 'collection', entries });
  const items = await diff(clusterId, await head(clusterId));
  t.deepEqual(
    items.map(({ kind, subject, fields, settingsKnown }) => [kind, subject.id, fields, settingsKnown]).sort(),
    [
      ['ip-list', id, [], false],
      ['ip-list-chunk', id, [], false],
    ],
  );
});

test('a rollback publishes what the revision had, says so, and leaves the saved settings as they are', async (t) => {
  const clusterId = await newCluster();
  const [domain, other] = [newDomain(), newDomain()];
  const site = await api.site(clusterId, domain, { name: 'Shop', ...origins('good.example') });
  await api.site(clusterId, other);
  const [good, had] = [await head(clusterId), await states(clusterId)];
  await api.ok('PATCH', `/sites/${site.id}`, origins('bad.example'));
  await api.ok('PATCH', `/sites/${site.id}/protection`, { cc: { enabled: true } });
  const current = await head(clusterId);
  t.deepEqual(await preview(clusterId, good), {
    revision: good,
    currentRevision: current,
    unchanged: false,
    sites: { added: [], changed: [{ id: site.id, name: 'Shop' }], removed: [] },
    siteCounts: { added: 0, changed: 1, removed: 0 },
    keptDisabled: [],
    entryCount: 2,
    settings: {
      total: 2,
      items: (await preview(clusterId, good)).settings.items,
    },
  });
  t.is(await head(clusterId), current, 'a preview writes nothing');
  const { revision } = await rollBack(clusterId, good, { note: 'Too many errors' });
  t.is(revision, (BigInt(current) + 1n).toString());
  t.like(await latest(clusterId), {
    revision,
    reasonCode: 'rollback',
    reasonParams: { revision: good, note: 'Too many errors' },
    siteCount: 2,
  });
  t.deepEqual(await states(clusterId), had);
  t.like((await api.audit(clusterId)).at(-1)!, {
    action: 'cluster.rollback',
    metadata: { revision: good, note: 'Too many errors', changed: 1 },
  });
  t.is((await api.ok('GET', `/sites/${site.id}`)).origins[0].address, 'bad.example');
  // It is a revision like any other.
  t.deepEqual(
    (await diff(clusterId, revision)).map(({ kind, change }) => `${kind} ${change}`),
    ['protection removed', 'site changed'],
  );
  t.like(await preview(clusterId, good), { unchanged: true, entryCount: 0 });
  t.deepEqual(await rollBack(clusterId, good), { revision: null, restoredSettings: 0 });
  t.is(await head(clusterId), revision, 'nothing differs: no revision');
  // The next save publishes what is saved.
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Shop 2' });
  const [saved] = await diff(clusterId, await head(clusterId));
  t.deepEqual(saved.fields, [
    { path: 'name', from: 'Shop', to: 'Shop 2' },
    { path: 'origins.0.address', from: 'good.example', to: 'bad.example' },
  ]);
  // And the rollback can be taken back.
  await rollBack(clusterId, current);
  t.is((await diff(clusterId, await head(clusterId), `?against=${current}`)).length, 0);
});

test('what is saved as it is comes back after a rollback, part by part, and once', async (t) => {
  const clusterId = await newCluster();
  const domain = newDomain();
  const { id } = await api.site(clusterId, domain, origins('good.example'));
  const good = await head(clusterId);
  const { chainPem, privateKeyPem } = await testCertificate([domain]);
  const uploaded = await api.ok('POST', '/certificates/upload', { name: domain, chainPem, privateKeyPem });
  const { settings: https } = await api.ok('GET', `/sites/${id}/https`);
  const rule = { name: 'No', phase: 'waf-custom', expression: 'false', enabled: true, action: { kind: 'block' } };
  const redirects = ['/a', '/b', '/c'].map((source) => ({ source, target: '/d' }));
  // The site last: its rules go with it.
  const parts: [part: string, method: string, body: Body][] = [
    ['/https', 'PUT', { settings: { ...https, certificateId: uploaded.id } }],
    ['/waf', 'PATCH', { mode: 'detect' }],
    ['/protection', 'PATCH', { cc: { enabled: true, followTemplate: true } }],
    ['/rules', 'PUT', { rules: [rule] }],
    ['/bulk-redirects', 'PUT', { redirects }],
    ['', 'PATCH', origins('other.example')],
  ];
  const save = ([part, method, body]: (typeof parts)[number]) => api.ok(method, `/sites/${id}${part}`, body);
  const savedAt = async () =>
    Promise.all(parts.map(async ([part]) => (await api.ok('GET', `/sites/${id}${part}`)).updatedAt));
  for (const part of parts) await save(part);
  // With the id that it was given.
  Object.assign(rule, (await api.ok('GET', `/sites/${id}/rules`)).rules[0]);
  const [had, times] = [await states(clusterId), await savedAt()];
  await rollBack(clusterId, good);
  const audits = (await api.audit(id)).length;
  for (const [at, part] of parts.entries()) {
    const before = BigInt(await head(clusterId));
    await save(part);
    t.is(BigInt(await head(clusterId)), before + 1n, part[0]);
    t.is((await api.audit(id)).length, audits + at + 1, part[0]);
  }
  t.deepEqual(await states(clusterId), had);
  t.deepEqual(await savedAt(), times);
  // Nodes run what is saved: nothing happens.
  const current = await head(clusterId);
  for (const part of parts) t.is((await save(part)).revision ?? null, null, part[0]);
  t.is(await head(clusterId), current);
  t.is((await api.audit(id)).length, audits + parts.length);
});

test('sites made since are not served any more, and disabled ones stay disabled', async (t) => {
  const clusterId = await newCluster();
  const [kept, disabled] = [await api.site(clusterId, newDomain()), await api.site(clusterId, newDomain())];
  const before = await head(clusterId);
  const later = await api.site(clusterId, newDomain());
  await api.ok('PUT', `/sites/${disabled.id}/enabled`, { enabled: false });
  await api.ok('PATCH', `/sites/${kept.id}`, origins('else.example'));
  const named = ({ id, name }: Body) => ({ id, name });
  t.like(await preview(clusterId, before), {
    sites: { added: [], changed: [named(kept)], removed: [named(later)] },
    keptDisabled: [named(disabled)],
  });
  const off = await api.entry(clusterId, 'site', disabled.id);
  await rollBack(clusterId, before);
  t.deepEqual(await api.entries(clusterId, 'site'), [kept.id, disabled.id].sort());
  t.deepEqual(await api.entry(clusterId, 'site', disabled.id), off);
  t.is((await latest(clusterId)).siteCount, 1);
  // Forward again: what was enabled then comes back.
  t.like(await preview(clusterId, (BigInt(before) + 1n).toString()), { sites: { added: [named(later)] } });
});

test.serial('Under Attack, IP lists, the allow list and global switches stay as they are now', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain());
  const before = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}/protection`, { cc: { enabled: true }, underAttack: true });
  const list = await everywhere('POST', '/ip-lists', { name: `list_${made++}`, kind: 'block', entries: ['192.0.2.9'] });
  await everywhere('PUT', '/settings/origin-allow-list', { cidrs: ['10.0.0.0/8'] });
  await rollBack(clusterId, before);
  const changed = await diff(clusterId, await head(clusterId));
  t.deepEqual(
    changed.map(({ kind, fields }) => [kind, fields]),
    [['protection', [{ path: 'cc.enabled', from: true, to: false }]]],
  );
  t.true((await api.entries(clusterId, 'ip-list')).includes(list.id));
  t.deepEqual(await api.entries(clusterId, 'origin-policy'), ['']);
  // Off now, on then: it stays off, and so does what needs an entry for nothing else.
  const on = (BigInt(before) + 1n).toString();
  await api.ok('PATCH', `/sites/${id}/protection`, { cc: { enabled: false }, underAttack: false });
  t.deepEqual(await api.entries(clusterId, 'protection'), []);
  await rollBack(clusterId, on);
  const [back] = await diff(clusterId, await head(clusterId));
  t.deepEqual(back.fields, [{ path: 'cc.enabled', from: false, to: true }]);
  await everywhere('PUT', '/settings/origin-allow-list', { cidrs: [] });
});

test('saved settings are put back where that is asked for, and the next save brings nothing back', async (t) => {
  const clusterId = await newCluster();
  const [domain, dropped] = [newDomain(), newDomain()];
  const site = await api.site(clusterId, domain, {
    name: 'Shop',
    domains: [domain, dropped],
    ...origins('good.example'),
  });
  const [off, other] = [await api.site(clusterId, newDomain()), await api.site(clusterId, newDomain())];
  const good = await head(clusterId);
  const change = {
    name: 'Store',
    domains: [domain],
    originSettings: { policy: 'round_robin' },
    ...origins('bad.example'),
  };
  await api.ok('PATCH', `/sites/${site.id}`, change);
  await api.ok('PATCH', `/sites/${site.id}/protection`, { cc: { enabled: true }, underAttack: true });
  await api.ok('PATCH', `/sites/${off.id}`, { name: 'Off' });
  await api.ok('PUT', `/sites/${off.id}/enabled`, { enabled: false });
  await api.ok('PUT', `/clusters/${clusterId}/client-ip`, { settings: { mode: 'direct', dropForwardedFor: true } });
  const later = await api.site(clusterId, newDomain());

  const paths = ({ items }: Body) =>
    items.map(({ kind, id, fields }: Body) => [kind, id, fields.map((one: Body) => one.path)]);
  const expected = [
    ['client-ip', '', ['dropForwardedFor']],
    ['protection', site.id, ['cc.enabled']],
    ['site', off.id, ['name']],
    ['site', site.id, ['domains', 'name', 'origins.0.address', 'originSettings.policy']],
  ];
  const order = (rows: Body[]) => rows.map((row) => JSON.stringify(row)).sort();
  // A domain that nobody has comes back with the settings only.
  await refusedBoth(t, UNAVAILABLE, clusterId, good);
  const asked = await api.ok('GET', `/clusters/${clusterId}/rollback-preview?revision=${good}&restoreSettings=true`);
  t.deepEqual(order(paths(asked.settings)), order(expected));
  t.deepEqual(asked.settings.items.find(({ kind }: Body) => kind === 'protection').fields, [
    { path: 'cc.enabled', from: true, to: false },
  ]);
  const saved = async (path: string) => JSON.stringify(await api.ok('GET', path));
  const before = [await saved(`/sites/${other.id}`), await saved(`/sites/${later.id}`)];
  const { restoredSettings } = await rollBack(clusterId, good, { restoreSettings: true });
  t.is(restoredSettings, 4);
  t.like(await api.ok('GET', `/sites/${site.id}`), {
    name: 'Shop',
    domains: [domain, dropped],
    enabled: true,
  });
  t.is((await api.ok('GET', `/sites/${site.id}`)).origins[0].address, 'good.example');
  t.like(await api.ok('GET', `/sites/${off.id}`), { enabled: false });
  const protection = await api.ok('GET', `/sites/${site.id}/protection`);
  t.true(protection.underAttack);
  t.false(protection.cc.enabled);
  t.deepEqual((await api.ok('GET', `/clusters/${clusterId}/client-ip`)).settings, {
    mode: 'direct',
    dropForwardedFor: false,
  });
  t.deepEqual(
    [await saved(`/sites/${other.id}`), await saved(`/sites/${later.id}`)],
    before,
    'what did not change is left alone',
  );
  const { metadata } = (await api.audit(clusterId)).at(-1)!;
  t.deepEqual(order(metadata.settings.map(({ kind, id, fields }: Body) => [kind, id, fields])), order(expected));
  // What is saved is what nodes have: the next save changes what it says and no more.
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Shop 2' });
  const [next] = await diff(clusterId, await head(clusterId));
  t.deepEqual(next.fields, [{ path: 'name', from: 'Shop', to: 'Shop 2' }]);
});

test('a rollback restores request buffering and charset, and leaves the body limit to the entry of the site', async (t) => {
  const clusterId = await newCluster();
  const site = await api.site(clusterId, newDomain(), origins('good.example'));
  const contentOf = async () => (await api.ok('GET', `/sites/${site.id}`)).contentSettings;
  const first = await contentOf();
  const buffered = await head(clusterId);
  await api.ok('PATCH', `/sites/${site.id}`, { contentSettings: { requestBuffering: false } });
  const unbuffered = await head(clusterId);
  t.like((await diff(clusterId, unbuffered))[0], {
    kind: 'site-requests',
    fields: [{ path: 'requestBuffering', from: true, to: false }],
  });
  await rollBack(clusterId, buffered, { restoreSettings: true });
  t.deepEqual(await contentOf(), first);
  await rollBack(clusterId, unbuffered, { restoreSettings: true });
  t.deepEqual(await contentOf(), { ...first, requestBuffering: false });
  const charset = { name: 'gbk', force: true, uppercase: false };
  await api.ok('PATCH', `/sites/${site.id}`, { contentSettings: { charset } });
  await rollBack(clusterId, buffered, { restoreSettings: true });
  t.deepEqual(await contentOf(), first);
});

test('settings can be put back after a rollback without them, and only once', async (t) => {
  const clusterId = await newCluster();
  const site = await api.site(clusterId, newDomain(), origins('good.example'));
  const good = await head(clusterId);
  await api.ok('PATCH', `/sites/${site.id}`, origins('bad.example'));
  await rollBack(clusterId, good);
  t.like(await preview(clusterId, good), { unchanged: true, settings: { total: 1 } });
  t.deepEqual(await rollBack(clusterId, good, { restoreSettings: true }), { revision: null, restoredSettings: 1 });
  t.is((await api.ok('GET', `/sites/${site.id}`)).origins[0].address, 'good.example');
  t.is((await api.audit(clusterId)).filter(({ action }) => action === 'cluster.rollback').length, 2);
  t.deepEqual(await rollBack(clusterId, good, { restoreSettings: true }), { revision: null, restoredSettings: 0 });
  t.is((await api.audit(clusterId)).filter(({ action }) => action === 'cluster.rollback').length, 2);
});

test('a refused rollback puts no settings back', async (t) => {
  const clusterId = await newCluster();
  const [own, moved] = [newDomain(), newDomain()];
  const site = await api.site(clusterId, own, { name: 'Shop', domains: [own, moved] });
  const good = await head(clusterId);
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Store', domains: [own] });
  await api.site(clusterId, moved);
  const body = { revision: good, restoreSettings: true };
  const { resources } = await api.refused(t, UNAVAILABLE, 'POST', `/clusters/${clusterId}/rollback`, body);
  t.deepEqual(resources, [{ type: 'domain', id: moved, name: moved }]);
  t.like(await api.ok('GET', `/sites/${site.id}`), { name: 'Store', domains: [own] });
});

test('a revision that needs a deleted site is refused, and the site is named', async (t) => {
  const clusterId = await newCluster();
  const site = await api.site(clusterId, newDomain(), { name: 'Gone' });
  await api.ok('PATCH', `/sites/${site.id}/protection`, { cc: { enabled: true } });
  const served = await head(clusterId);
  await api.ok('DELETE', `/sites/${site.id}`);
  const data = await refusedBoth(t, UNAVAILABLE, clusterId, served);
  t.deepEqual(data, { resources: [{ type: 'site', id: site.id, name: 'Gone' }], count: 1 });
});

test('a deleted site that the revision did not serve either is left out', async (t) => {
  const clusterId = await newCluster();
  const [site, other] = [await api.site(clusterId, newDomain()), await api.site(clusterId, newDomain())];
  await api.ok('PATCH', `/sites/${site.id}/protection`, { cc: { enabled: true } });
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  const before = await head(clusterId);
  await api.ok('DELETE', `/sites/${site.id}`);
  await api.ok('PATCH', `/sites/${other.id}`, origins('else.example'));
  t.like(await preview(clusterId, before), { entryCount: 1, siteCounts: { added: 0, changed: 1, removed: 0 } });
  await rollBack(clusterId, before);
  t.deepEqual(await api.entries(clusterId, 'site'), [other.id]);
  t.deepEqual(await api.entries(clusterId, 'protection'), []);
});

test('a revision whose domain belongs to another site now is refused, and the domain is named', async (t) => {
  const clusterId = await newCluster();
  const [moved, own, other] = [newDomain(), newDomain(), newDomain()];
  const site = await api.site(clusterId, own, { domains: [own, moved, `*.${moved}`] });
  const before = await head(clusterId);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [own] });
  // Nobody has it: another site could take it while nodes still serve this one there.
  t.is((await refusedBoth(t, UNAVAILABLE, clusterId, before)).count, 2);
  await api.site(clusterId, other, { domains: [other, moved] });
  const { resources } = await refusedBoth(t, UNAVAILABLE, clusterId, before);
  t.deepEqual(resources.map(({ type, name }: Body) => `${type} ${name}`).sort(), [
    `domain *.${moved}`,
    `domain ${moved}`,
  ]);
});

test('a revision whose default site is gone is refused', async (t) => {
  const clusterId = await newCluster();
  const [site] = [await api.site(clusterId, newDomain(), { name: 'Default' }), await api.site(clusterId, newDomain())];
  await api.ok('PUT', `/clusters/${clusterId}/unknown-hosts`, { unknownHost: 'site', defaultSiteId: site.id });
  const before = await head(clusterId);
  await api.ok('PUT', `/clusters/${clusterId}/unknown-hosts`, { unknownHost: 'page', defaultSiteId: null });
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  await api.ok('DELETE', `/sites/${site.id}`);
  const { resources } = await refusedBoth(t, UNAVAILABLE, clusterId, before);
  t.deepEqual(resources, [{ type: 'site', id: site.id, name: 'Default' }]);
});

test('what there is no such revision or cluster of is not found', async (t) => {
  const clusterId = await newCluster();
  const next = (BigInt(await head(clusterId)) + 1n).toString();
  for (const revision of ['0', next, '999999999999999999']) {
    t.deepEqual(await refusedBoth(t, NOT_FOUND, clusterId, revision), { revision });
    await api.refused(t, NOT_FOUND, 'GET', `/clusters/${clusterId}/revisions/${revision}/diff`);
  }
  await api.refused(t, NOT_FOUND, 'GET', `/clusters/${clusterId}/revisions/1/diff?against=${next}`);
  await refusedBoth(t, [404, 'CLUSTER_NOT_FOUND'], 'nobody', '1');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/nobody/revisions/1/diff');
  await api.badField(t, '/revision', 'GET', `/clusters/${clusterId}/rollback-preview?revision=-1`);
  await api.badField(t, '/revision', 'POST', `/clusters/${clusterId}/rollback`, { revision: 1 });
  await api.badField(t, '/note', 'POST', `/clusters/${clusterId}/rollback`, { revision: '1', note: 'a\nb' });
});

/** Up to three rules, of which one may be switched off. */
const rulesOf = (value: number): Body[] =>
  Array.from({ length: value }, (_, index) => ({
    name: `Rule ${index}`,
    phase: 'waf-custom',
    expression: `http.host contains "${value}"`,
    enabled: index !== 2,
    action: { kind: 'block' },
  }));
/** Up to thirty redirects, of which some stay what they are from value to value. */
const redirectsOf = (value: number): Body[] =>
  Array.from({ length: 10 * value }, (_, index) => ({
    source: `/old/${index}`,
    target: `/new/${value % (index + 1)}`,
  }));

/** HTTPS of one of two certificates, or none, in four ways. */
const httpsOf = (value: number, certificates: readonly string[]): Body => ({
  certificateId: certificates[value % 3] ?? null,
  forceHttps: value === 1,
  http3: value === 3,
  hstsMaxAge: value,
});
const compressionOf = (value: number): Body => ({ gzip: value !== 1, brotli: value === 2, zstdLevel: 3 + value });
/** Off, or one of three ways to inspect requests. */
const wafOf = (value: number): Body => ({
  mode: ['off', 'detect', 'block', 'block'][value],
  paranoiaLevel: 1 + value,
  exclusions: value === 3 ? [{ ruleId: 942_100, part: 'argument', name: 'q' }] : [],
});
/** Ports that the cluster listens on besides the usual ones, and those of a site, which may not be among them. */
const HTTPS_PORTS = [[], [8443], [8444], [8443, 8444]];
const portsOf = (value: number): Body => ({ http: [80], https: value === 0 ? [443] : HTTPS_PORTS[value] });

/** HTTPS, compression, the WAF and ports come and go. */
const EACH_KIND = {
  steps: [
    { site: 0, what: 'https' as const, value: 0 },
    { site: 0, what: 'compression' as const, value: 2 },
    { site: 0, what: 'waf' as const, value: 3 },
    { site: 0, what: 'listen' as const, value: 3 },
    { site: 0, what: 'ports' as const, value: 1 },
    { site: 0, what: 'https' as const, value: 1 },
    { site: 0, what: 'waf' as const, value: 0 },
    { site: 0, what: 'ports' as const, value: 2 },
    { site: 0, what: 'listen' as const, value: 2 },
  ],
  back: 5,
};

test('after a rollback to any revision nodes run exactly what they ran then', async (t) => {
  const step = fc.record({
    site: fc.nat(1),
    what: fc.constantFrom(
      ...([
        'origin',
        'name',
        'cc',
        'mode',
        'rules',
        'redirects',
        'https',
        'compression',
        'waf',
        'listen',
        'ports',
      ] as const),
    ),
    value: fc.nat(3),
  });
  const history = fc.record({ steps: fc.array(step, { minLength: 2, maxLength: 10 }), back: fc.nat(6) });
  // What is there now stays: ports of nodes may be other programs' by now.
  const restored = (list: readonly string[]) => list.filter((state) => !state.startsWith('listen-ports '));
  const kept = (list: readonly string[]) => list.filter((state) => state.startsWith('listen-ports '));
  const tried = new Set<string>();
  const certificates = await Promise.all([uploadFor('*.example'), uploadFor('*.example')]);
  await fc.assert(
    fc.asyncProperty(history, async ({ steps, back }) => {
      const clusterId = await newCluster();
      const sites = [await api.site(clusterId, newDomain()), await api.site(clusterId, newDomain())];
      const https: Body[] = [{}, {}];
      const ran = new Map([[await head(clusterId), await states(clusterId)]]);
      for (const { site, what, value } of steps) {
        const path = `/sites/${sites[site].id}`;
        if (what === 'origin') await api.ok('PATCH', path, origins(`o${value}.example`));
        else if (what === 'name') await api.ok('PATCH', path, { name: `name ${value}` });
        else if (what === 'cc') await api.ok('PATCH', `${path}/protection`, { cc: { enabled: value > 1 } });
        else if (what === 'waf') await api.ok('PATCH', `${path}/waf`, wafOf(value));
        else if (what === 'rules') await api.ok('PUT', `${path}/rules`, { rules: rulesOf(value) });
        else if (what === 'redirects') await api.ok('PUT', `${path}/bulk-redirects`, { redirects: redirectsOf(value) });
        else if (what === 'https' || what === 'compression') {
          Object.assign(https[site]!, what === 'https' ? httpsOf(value, certificates) : compressionOf(value));
          // One without a certificate has neither a redirect nor a port that needs one.
          const settings = https[site]!.certificateId ? https[site] : { ...https[site], forceHttps: false };
          await api.call('PUT', `${path}/https`, { settings });
        } else if (what === 'listen')
          await api.call('PUT', `/clusters/${clusterId}/listen-ports`, {
            httpPorts: [],
            httpsPorts: HTTPS_PORTS[value],
          });
        else if (what === 'ports') await api.call('PATCH', path, { ports: portsOf(value) });
        else
          await api.ok('PUT', `/clusters/${clusterId}/client-ip`, {
            settings: value > 1 ? { mode: 'proxy_protocol' } : { mode: 'direct' },
          });
        ran.set(await head(clusterId), await states(clusterId));
      }
      const revisions = [...ran.keys()];
      const to = revisions[back % revisions.length]!;
      const before = await states(clusterId);
      for (const list of ran.values()) for (const state of list) tried.add(state.split(' ')[0]!);
      const answer = await api.call('POST', `/clusters/${clusterId}/rollback`, { revision: to });
      const after = await states(clusterId);
      const { httpsPorts } = await api.ok('GET', `/clusters/${clusterId}/listen-ports`);
      const gone = await missingPorts(clusterId, to, httpsPorts);
      if (gone.length > 0) {
        t.is(answer.body.code, UNAVAILABLE[1]);
        const named = answer.body.data.resources.map(({ type, name }: Body) => `${type} ${name}`);
        t.deepEqual(named.sort(), gone);
        t.deepEqual(after, before);
        return;
      }
      t.is(answer.status, 200, JSON.stringify(answer.body));
      t.deepEqual(restored(after), restored(ran.get(to)!));
      t.deepEqual(kept(after), kept(before));
      if (kept(after).join() !== kept(ran.get(to)!).join()) return;
      const { items } = await api.ok('GET', `/clusters/${clusterId}/revisions`);
      t.is(items[0].contentHash, items.find(({ revision }: Body) => revision === to).contentHash);
    }),
    { numRuns: 15, examples: [[EACH_KIND]] },
  );
  for (const kind of ['site-https', 'site-compression', 'site-waf', 'listen-ports']) t.true(tried.has(kind), kind);
});

async function uploadFor(name: string): Promise<string> {
  const { chainPem, privateKeyPem } = await testCertificate([name]);
  return (await api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem })).id;
}

/** Ports of sites at a revision that the cluster does not have any more. */
async function missingPorts(clusterId: string, revision: string, there: readonly number[]): Promise<string[]> {
  const rows = await api
    .sql('config_entry')
    .where({ cluster_id: clusterId, kind: 'site', track: 'S' })
    .where('from_revision', '<=', revision)
    .where((open) => open.whereNull('to_revision').orWhere('to_revision', '>', revision));
  const ports = rows.flatMap(({ refs }) => (refs as string[]).filter((ref) => ref.startsWith('port:https/')));
  const gone = ports.map((ref) => ref.slice('port:https/'.length)).filter((port) => !there.includes(Number(port)));
  return [...new Set(gone)].map((port) => `listen_port https/${port}`).sort();
}

/** A node that tries changes and is well, without a connection. */
async function addCanaryNode(clusterId: string, id: string): Promise<void> {
  const { sql } = api;
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'tries', isCanary: true });
  await sql('node').insert({ id, name: id, cluster_id: clusterId, node_group_id: group.id });
  const state = { features: ['canary-v1'], last_seen_at: new Date(Date.now() + 3_600_000), data_plane_healthy: true };
  await sql('node_state')
    .insert({ node_id: id, ...state })
    .onConflict('node_id')
    .merge();
}

test('during a canary what must not wait is in what everybody runs, alone; a rollback ends it', async (t) => {
  const clusterId = await newCluster();
  await addCanaryNode(clusterId, 'rollback-tries');
  const site = await api.site(clusterId, newDomain(), origins('a.example'));
  const other = await api.site(clusterId, newDomain(), origins('a.example'));
  const before = await head(clusterId);
  await api.ok('PUT', `/clusters/${clusterId}/rollout-policy`, { enabled: true });
  await api.ok('PATCH', `/sites/${site.id}`, origins('b.example'));
  await api.ok('PATCH', `/sites/${other.id}`, origins('b.example'));
  const rollout = () => api.ok('GET', `/clusters/${clusterId}/rollout`);
  t.like(await rollout(), { state: 'canary', stableRevision: before });
  const held = await api.ok('GET', `/sites/${site.id}`);
  t.like(held.delivery.canary, { autoPromote: true });
  const stable = async (id: string): Promise<Body> => {
    const entry = { cluster_id: clusterId, track: 'S', kind: 'site', resource_id: id, to_revision: null };
    const { settings_hash: hash, refs } = await api.sql('config_entry').where(entry).first();
    return { refs, ...JSON.parse((await api.sql('config_settings').where({ hash }).first()).settings) };
  };
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  const disabled = await stable(site.id);
  t.false(disabled.enabled);
  t.is(disabled.origins[0].address, 'a.example', 'nothing of what is tried comes with it');
  await api.ok('PATCH', `/sites/${other.id}/protection`, { underAttack: true, cc: { enabled: true } });
  const attacked = { cluster_id: clusterId, track: 'S', kind: 'protection', resource_id: other.id, to_revision: null };
  const { settings_hash: hash } = await api.sql('config_entry').where(attacked).first();
  const protection = JSON.parse((await api.sql('config_settings').where({ hash }).first()).settings);
  t.like(protection, { underAttack: true, cc: { enabled: false } });
  t.is((await rollout()).state, 'canary');
  await rollBack(clusterId, before);
  t.like(await rollout(), { state: 'rolled_back', outcome: 'manual_rollback', candidateRevision: null });
  t.deepEqual(await api.sql('config_entry').where({ cluster_id: clusterId, track: 'C', to_revision: null }), []);
  t.is((await stable(other.id)).origins[0].address, 'a.example');
  t.is((await api.ok('GET', `/sites/${site.id}`)).delivery.canary, null);
});

test('a promotion is a revision of what was tried, and an abort one of what is not', async (t) => {
  const clusterId = await newCluster();
  await addCanaryNode(clusterId, 'promoted-tries');
  const site = await api.site(clusterId, newDomain(), origins('a.example'));
  await api.ok('PUT', `/clusters/${clusterId}/rollout-policy`, { enabled: true });
  const move = (address: string) => api.ok('PATCH', `/sites/${site.id}`, origins(address));
  const fields = async () => (await diff(clusterId, await head(clusterId)))[0]?.fields;
  await move('b.example');
  t.true((await latest(clusterId)).canaryOnly);
  t.deepEqual(await fields(), [{ path: 'origins.0.address', from: 'a.example', to: 'b.example' }]);
  t.is((await api.ok('POST', `/clusters/${clusterId}/rollout/promote`)).outcome, 'manual_promote');
  t.false((await latest(clusterId)).canaryOnly);
  t.deepEqual(await fields(), [{ path: 'origins.0.address', from: 'a.example', to: 'b.example' }]);
  await move('c.example');
  t.is((await api.ok('POST', `/clusters/${clusterId}/rollout/abort`)).outcome, 'manual_abort');
  t.deepEqual(await fields(), [{ path: 'origins.0.address', from: 'c.example', to: 'b.example' }]);
  t.is((await api.ok('GET', `/sites/${site.id}`)).origins[0].address, 'c.example', 'settings stay as they were saved');
  // Saved as they are they are tried again, and while that lasts there is nothing more to try.
  t.is((await move('c.example')).revision, await head(clusterId));
  t.true((await latest(clusterId)).canaryOnly);
  t.deepEqual(await fields(), [{ path: 'origins.0.address', from: 'b.example', to: 'c.example' }]);
  t.is((await move('c.example')).revision, null);
});

test('rules come back with the group they choose, and not without it', async (t) => {
  const clusterId = await newCluster();
  const grouped = { origins: [{ address: 'a.example' }, { address: 'b.example', group: 'blue' }] };
  const { id } = await api.site(clusterId, newDomain(), grouped);
  const action = { kind: 'origin', originGroup: 'blue' };
  const rule = { name: 'Blue', phase: 'origin', expression: 'true', enabled: true, action };
  const { revision } = await api.ok('PUT', `/sites/${id}/rules`, { rules: [rule] });
  await api.ok('PUT', `/sites/${id}/rules`, { rules: [] });
  await api.ok('PATCH', `/sites/${id}`, origins('a.example'));

  const range = { revision, head: await head(clusterId) };
  const rulesOnly = { only: [{ kind: 'site-rules', id }] };
  const error = await t.throwsAsync(() => planRollback(api.sql, clusterId, range, rulesOnly));
  const resources = [{ type: 'origin_group', id: `${id}/blue`, name: 'blue' }];
  t.like(error, { type: UNAVAILABLE[1], data: { resources, count: 1 } } as object);
  t.is((await planRollback(api.sql, clusterId, range)).differences.length, 2);
  await rollBack(clusterId, revision);
  t.truthy(await api.entry(clusterId, 'site-rules', id));
});

test('one entry is put back whatever else of the cluster changed since', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), origins('a.example'));
  const revision = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}`, origins('b.example'));
  // Sites that sort before it, and more than one rollback may change.
  await api.sql.raw(
    `insert into config_entry (cluster_id, track, kind, resource_id, bucket, from_revision, blob_hash, features, refs,
         compiler_version, source, owner)
     select cluster_id, track, kind, '!' || n, bucket, from_revision, blob_hash, features, '{}', compiler_version, source,
         'site:!' || n
       from config_entry cross join generate_series(1, 5100) n
      where cluster_id = ? and kind = 'site' and resource_id = ? and to_revision is null`,
    [clusterId, id],
  );
  const range = { revision, head: await head(clusterId) };
  const plan = await planRollback(api.sql, clusterId, range, { only: [{ kind: 'site', id }] });
  t.deepEqual(
    plan.differences.map((difference) => difference.id),
    [id],
  );
});
