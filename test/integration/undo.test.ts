// Undo of one revision through /api/v1: its fields return, later changes stay, and what cannot be undone is refused.
import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

const LATER: [number, string] = [409, 'UNDO_CHANGED_LATER'];
const UNAVAILABLE: [number, string] = [409, 'UNDO_UNAVAILABLE'];

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

const newCluster = () => api.cluster(`undone-${made++}`);
const newDomain = () => `undo-${made++}.example`;
const newest = async (clusterId: string): Promise<Body[]> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions?pageSize=50`)).items;
const head = async (clusterId: string): Promise<string> => (await newest(clusterId))[0].revision;
const pathOf = (clusterId: string, revision: string) => `/clusters/${clusterId}/revisions/${revision}/undo`;
const undo = (clusterId: string, revision: string): Promise<Body> => api.ok('POST', pathOf(clusterId, revision), {});
const origins = (...addresses: string[]) => ({ origins: addresses.map((address) => ({ address })) });
const states = async (clusterId: string): Promise<string[]> =>
  (await api.sql('config_entry').where({ cluster_id: clusterId, to_revision: null }))
    .map(({ kind, resource_id, blob_hash }) => `${kind} ${resource_id} ${blob_hash.toString('hex')}`)
    .sort();
const fieldsOf = async (clusterId: string, revision: string): Promise<string[]> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions/${revision}/diff`)).items.flatMap(({ fields }: Body) =>
    fields.map(({ path }: Body) => path),
  );

test('an undo restores the fields of the revision, is published, and keeps later changes', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop', ...origins('a.example', 'b.example') });
  await api.ok('PATCH', `/sites/${id}`, { ...origins('a.example', 'bad.example'), name: 'Store' });
  const changed = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}`, { contentSettings: { requestBodyLimit: 1_048_576 } });
  await api.ok('PATCH', `/sites/${id}/protection`, { cc: { enabled: true } });
  const before = await head(clusterId);
  t.deepEqual(await undo(clusterId, changed), {
    revision: (BigInt(before) + 1n).toString(),
    restoredFields: 2,
  });
  const site = await api.ok('GET', `/sites/${id}`);
  t.like(site, { name: 'Shop', contentSettings: { requestBodyLimit: 1_048_576 } });
  t.deepEqual(
    site.origins.map(({ address }: Body) => address),
    ['a.example', 'b.example'],
  );
  t.true((await api.ok('GET', `/sites/${id}/protection`)).cc.enabled);
  const [revision] = await newest(clusterId);
  t.like(revision, {
    reasonCode: 'revision_undone',
    undoable: true,
    subject: { type: 'site', id, name: 'Shop', exists: true },
    reasonParams: { revision: changed, changed: ['name', 'origins.1.address'] },
  });
  t.deepEqual((await api.audit(id)).at(-1), {
    action: 'revision.undo',
    actorType: 'api_key',
    metadata: {
      revision: changed,
      changed: ['name', 'origins.1.address'],
      published: [{ clusterId, revision: revision.revision }],
    },
  });
  // An undo is a change like any other: it can be undone.
  await undo(clusterId, revision.revision);
  t.is((await api.ok('GET', `/sites/${id}`)).name, 'Store');
});

test('each save of a site names its revision in the audit log, and is undone to what was there', async (t) => {
  const clusterId = await newCluster();
  const domain = newDomain();
  const { id } = await api.site(clusterId, domain, { ...origins('good.example'), ports: { http: [80], https: [443] } });
  const { chainPem, privateKeyPem } = await testCertificate([domain]);
  const uploaded = await api.ok('POST', '/certificates/upload', { name: domain, chainPem, privateKeyPem });
  const { settings: https } = await api.ok('GET', `/sites/${id}/https`);
  const rule = { name: 'No', phase: 'waf-custom', expression: 'false', enabled: true, action: { kind: 'block' } };
  const redirects = ['/a', '/b', '/c'].map((source) => ({ source, target: '/d' }));
  const saves: [path: string, method: string, body: Body, target: string][] = [
    [`/sites/${id}/https`, 'PUT', { settings: { ...https, certificateId: uploaded.id } }, id],
    [`/sites/${id}/waf`, 'PATCH', { mode: 'detect' }, id],
    [`/sites/${id}/protection`, 'PATCH', { underAttack: true }, id],
    [`/sites/${id}/rules`, 'PUT', { rules: [rule] }, id],
    [`/sites/${id}/bulk-redirects`, 'PUT', { redirects }, id],
    [`/sites/${id}/enabled`, 'PUT', { enabled: false }, id],
    [`/sites/${id}`, 'PATCH', { domains: [domain, newDomain()] }, id],
    [`/clusters/${clusterId}/client-ip`, 'PUT', { settings: { mode: 'direct', dropForwardedFor: true } }, clusterId],
    [`/clusters/${clusterId}/unknown-hosts`, 'PUT', { unknownHost: 'close' }, clusterId],
    [`/clusters/${clusterId}/header-limit`, 'PUT', { fieldBytes: 16_384 }, clusterId],
    [`/clusters/${clusterId}/cache`, 'PUT', { maxSizeGb: 20 }, clusterId],
    [`/sites/${id}`, 'PATCH', { cacheRules: [{ extensions: ['css'] }] }, id],
  ];
  for (const [path, method, body, target] of saves) {
    const [read] = path.split('/enabled');
    const settingsOf = async () => {
      const { updatedAt: _at, delivery: _delivery, revision: _revision, ...rest } = await api.ok('GET', read!);
      return rest;
    };
    const [had, saved] = [await states(clusterId), await settingsOf()];
    await api.ok(method, path, body);
    const revision = await head(clusterId);
    t.deepEqual((await api.audit(target)).at(-1)!.metadata.published, [{ clusterId, revision }], path);
    t.notDeepEqual(await states(clusterId), had, path);
    const { restoredFields } = await undo(clusterId, revision);
    t.true(restoredFields > 0, path);
    t.deepEqual(await states(clusterId), had, path);
    t.deepEqual(await settingsOf(), saved, path);
  }
});

test('an undo restores built-in exceptions and packs of a WAF that is on, and the history names them', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain());
  const read = () => api.ok('GET', `/sites/${id}/waf`);
  await api.ok('PATCH', `/sites/${id}/waf`, { mode: 'block' });
  for (const [change, path] of [
    [{ builtInExceptions: false }, 'builtInExceptions'],
    [{ packs: ['git', 'wordpress'] }, 'packs'],
  ] as const) {
    const [had, saved] = [await states(clusterId), await read()];
    await api.ok('PATCH', `/sites/${id}/waf`, change);
    const revision = await head(clusterId);
    t.deepEqual(await fieldsOf(clusterId, revision), [path]);
    await api.ok('PATCH', `/sites/${id}/waf`, { anomalyThreshold: saved.anomalyThreshold + 1 });
    t.is((await undo(clusterId, revision)).restoredFields, 1);
    const { updatedAt: _at, ...now } = await read();
    const { updatedAt: _then, ...then } = saved;
    t.deepEqual(now, { ...then, anomalyThreshold: saved.anomalyThreshold + 1 });
    t.notDeepEqual(await states(clusterId), had);
  }
});

test('a field that changed later is named, and nothing is restored', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop', ...origins('a.example') });
  await api.ok('PATCH', `/sites/${id}`, { name: 'Second', ...origins('b.example') });
  const second = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}`, { name: 'Third' });
  const third = await head(clusterId);
  const data = await api.refused(t, LATER, 'POST', pathOf(clusterId, second), {});
  t.deepEqual(data, { fields: [{ kind: 'site', id, path: 'name' }], count: 1 });
  t.is(await head(clusterId), third);
  t.like(await api.ok('GET', `/sites/${id}`), { name: 'Third', origins: [{ address: 'b.example' }] });
  // In the reverse order each can be undone.
  await undo(clusterId, third);
  await undo(clusterId, second);
  t.like(await api.ok('GET', `/sites/${id}`), { name: 'Shop', origins: [{ address: 'a.example' }] });
});

test('a rule that was changed is restored while others that changed later stay', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain());
  const rule = (name: string) => ({
    name,
    phase: 'waf-custom',
    expression: 'false',
    enabled: true,
    action: { kind: 'block' },
  });
  const save = async (rules: Body[]) => (await api.ok('PUT', `/sites/${id}/rules`, { rules })).rules as Body[];
  const [one] = await save([rule('one')]);
  const [, two] = await save([one, rule('two')]);
  const added = await head(clusterId);
  const renamed = { ...one, expression: 'true' };
  await save([renamed, two, rule('three')]);
  await undo(clusterId, added);
  const { rules } = await api.ok('GET', `/sites/${id}/rules`);
  t.deepEqual(
    rules.map(({ name, expression }: Body) => [name, expression]),
    [
      ['one', 'true'],
      ['three', 'false'],
    ],
  );
});

test('of two undos at once one publishes, and both succeed', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop' });
  await api.ok('PATCH', `/sites/${id}`, { name: 'Store' });
  const changed = await head(clusterId);
  const answers = await Promise.all(Array.from({ length: 4 }, () => undo(clusterId, changed)));
  t.deepEqual(answers.map(({ restoredFields }) => restoredFields).sort(), [0, 0, 0, 1]);
  t.is(await head(clusterId), (BigInt(changed) + 1n).toString());
  t.is((await api.audit(id)).filter(({ action }) => action === 'revision.undo').length, 1);
  t.is((await api.ok('GET', `/sites/${id}`)).name, 'Shop');
});

test('an undo and a save of the same field at once leave one of both, never a mixture', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop', ...origins('a.example') });
  await api.ok('PATCH', `/sites/${id}`, { name: 'Store', ...origins('b.example') });
  const changed = await head(clusterId);
  const [undone] = await Promise.all([
    api.call('POST', pathOf(clusterId, changed), {}),
    api.ok('PATCH', `/sites/${id}`, { name: 'Market' }),
  ]);
  const site = await api.ok('GET', `/sites/${id}`);
  t.is(site.name, 'Market');
  t.is(site.origins[0].address, undone.status === 200 ? 'a.example' : 'b.example');
  t.true(undone.status === 200 || undone.body.code === LATER[1], JSON.stringify(undone.body));
});

test('a site that was created or deleted, and what saved no settings, is not undone', async (t) => {
  const clusterId = await newCluster();
  const first = await head(clusterId);
  const { id } = await api.site(clusterId, newDomain());
  const created = await head(clusterId);
  await api.ok('PATCH', `/sites/${id}`, { name: 'Store' });
  const renamed = await head(clusterId);
  await api.ok('POST', `/clusters/${clusterId}/rollback`, { revision: created });
  const rolled = await head(clusterId);
  await api.ok('PUT', `/clusters/${clusterId}/listen-ports`, { httpPorts: [8081], httpsPorts: [] });
  const ports = await head(clusterId);
  await api.ok('DELETE', `/sites/${id}`);
  const deleted = await head(clusterId);
  for (const revision of [first, created, rolled, ports, deleted, renamed]) {
    await api.refused(t, UNAVAILABLE, 'POST', pathOf(clusterId, revision), {});
  }
  t.deepEqual(
    (await newest(clusterId)).map(({ undoable }) => undoable),
    [false, false, false, true, false, false],
  );
  t.is(await head(clusterId), deleted);
  await api.refused(t, [404, 'REVISION_NOT_FOUND'], 'POST', pathOf(clusterId, '999999'), {});
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'POST', pathOf('nobody', first), {});
});

test('what another site has by now, and groups that rules choose, stand against an undo', async (t) => {
  const clusterId = await newCluster();
  const [kept, moved] = [newDomain(), newDomain()];
  const { id } = await api.site(clusterId, kept, { domains: [kept, moved] });
  await api.ok('PATCH', `/sites/${id}`, { domains: [kept] });
  const dropped = await head(clusterId);
  const other = await api.site(clusterId, moved);
  const data = await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', pathOf(clusterId, dropped), {});
  t.deepEqual(data.resources, [{ type: 'domain', id: moved, name: moved }]);
  t.deepEqual((await api.ok('GET', `/sites/${id}`)).domains, [kept]);
  await api.ok('DELETE', `/sites/${other.id}`);
  await undo(clusterId, dropped);
  t.deepEqual((await api.ok('GET', `/sites/${id}`)).domains, [kept, moved]);

  await api.ok('PATCH', `/sites/${id}`, {
    origins: [{ address: 'a.example' }, { address: 'b.example', group: 'blue' }],
  });
  const grouped = await head(clusterId);
  const chooses = { kind: 'origin', originGroup: 'blue' };
  const rule = { name: 'Blue', phase: 'origin', expression: 'true', enabled: true, action: chooses };
  await api.ok('PUT', `/sites/${id}/rules`, { rules: [rule] });
  await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', pathOf(clusterId, grouped), {});
  t.is((await api.ok('GET', `/sites/${id}`)).origins.length, 2);
});

test('service accounts, read-only keys and clients without a key may not undo', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain());
  await api.ok('PATCH', `/sites/${id}`, { name: 'Store' });
  const revision = await head(clusterId);
  const account = await api.ok('POST', '/service-accounts', { name: `undoes-${made++}`, scopes: ['sites:write'] });
  const { secret } = await api.ok('POST', `/service-accounts/${account.id}/keys`, { name: 'one' });
  const paths: [string, string][] = [
    ['POST', pathOf(clusterId, revision)],
    ['GET', `/sites/${id}/unpublished`],
    ['POST', `/sites/${id}/unpublished/publish`],
    ['POST', `/sites/${id}/unpublished/discard`],
    ['GET', `/clusters/${clusterId}/unpublished`],
    ['POST', `/clusters/${clusterId}/unpublished/publish`],
    ['POST', `/clusters/${clusterId}/unpublished/discard`],
  ];
  for (const [method, path] of paths) {
    const body = method === 'GET' ? undefined : {};
    const answer = await running.client.request<Body>(method, `/api/v1${path}`, body, { 'x-api-key': secret });
    t.is(`${answer.status} ${answer.body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN', path);
    t.is((await running.client.request<Body>(method, `/api/v1${path}`, body, {})).status, 401, path);
  }
  t.is(await head(clusterId), revision);
});

test('an undo with the same Idempotency-Key is answered again', async (t) => {
  const clusterId = await newCluster();
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop' });
  await api.ok('PATCH', `/sites/${id}`, { name: 'Store' });
  const path = pathOf(clusterId, await head(clusterId));
  const headers = { 'idempotency-key': `undo-${made++}` };
  const [one, two] = [await api.call('POST', path, {}, headers), await api.call('POST', path, {}, headers)];
  t.deepEqual(two.body, one.body);
  t.is(one.body.restoredFields, 1);
  t.deepEqual(await fieldsOf(clusterId, one.body.revision), ['name']);
});
