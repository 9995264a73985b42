// Settings that are saved and that no node runs, after a canary was aborted or a rollback: shown, published, discarded.
import test from 'ava';
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

const FEATURES = ['canary-v1', 'challenge-v1', 'client-ip-v1', 'modsecurity-v1'];
const newDomain = () => `unpublished-${made++}.example`;
const head = async (clusterId: string): Promise<Body> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions?pageSize=1`)).items[0];
const unpublished = (path: string): Promise<Body> => api.ok('GET', `${path}/unpublished`);
const fieldsOf = ({ changes }: Body): Body[] =>
  changes.flatMap(({ kind, fields }: Body) => fields.map(({ path, from, to }: Body) => [kind, path, from, to]));

/** A cluster with one node that tries changes, and a site. */
async function trying(): Promise<{ clusterId: string; id: string }> {
  const clusterId = await api.cluster(`unpublished-${made++}`);
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop' });
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'canary', isCanary: true });
  const node = await api.node(clusterId, `tries-${made++}`, { features: FEATURES });
  const tomorrow = new Date(Date.now() + 86_400_000);
  await api.sql('node').where({ id: node }).update({ node_group_id: group.id });
  await api.sql('node_state').where({ node_id: node }).update({ last_seen_at: tomorrow });
  await api.ok('PUT', `/clusters/${clusterId}/rollout-policy`, {
    enabled: true,
    windowSeconds: 3600,
    autoPromote: false,
  });
  return { clusterId, id };
}
const abort = (clusterId: string) => api.ok('POST', `/clusters/${clusterId}/rollout/abort`, {});

test('settings of an aborted canary are shown until they are discarded', async (t) => {
  const { clusterId, id } = await trying();
  const site = `/sites/${id}`;
  const NOTHING = { clusterId, changes: [], discardable: true, cause: null };
  t.deepEqual(await unpublished(site), NOTHING);
  await api.ok('PATCH', site, { name: 'Tried', origins: [{ address: 'other.example' }] });
  t.deepEqual(await unpublished(site), NOTHING, 'a canary runs them');
  await abort(clusterId);
  const left = await unpublished(site);
  const { revision, reasonCode, createdAt } = await head(clusterId);
  t.is(reasonCode, 'rollout_rollback');
  t.deepEqual(left, {
    clusterId,
    changes: [
      {
        kind: 'site',
        id,
        subject: { type: 'site', id, name: 'Tried', exists: true },
        change: 'changed',
        settingsKnown: true,
        fields: [
          { path: 'name', from: 'Shop', to: 'Tried' },
          { path: 'origins.0.address', from: 'origin.example', to: 'other.example' },
        ],
      },
    ],
    discardable: true,
    cause: { revision, reasonCode, createdAt },
  });
  t.deepEqual(await api.ok('POST', `${site}/unpublished/discard`, {}), { revision: null, restoredFields: 2 });
  t.deepEqual(await unpublished(site), NOTHING);
  t.like(await api.ok('GET', site), { name: 'Shop', origins: [{ address: 'origin.example' }] });
  t.deepEqual((await api.audit(id)).at(-1), {
    action: 'site.unpublished_discard',
    actorType: 'api_key',
    metadata: { changed: ['name', 'origins.0.address'] },
  });
  t.is((await head(clusterId)).revision, revision, 'nodes run them already');
  // The next save publishes nothing else.
  await api.ok('PATCH', site, { contentSettings: { requestBodyLimit: 1_048_576 } });
  const diff = await api.ok('GET', `/clusters/${clusterId}/revisions/${(await head(clusterId)).revision}/diff`);
  t.deepEqual(
    fieldsOf({ changes: diff.items }).map(([, path]) => path),
    ['contentSettings.requestBodyLimit'],
  );
});

test('settings of an aborted canary are tried again by another one', async (t) => {
  const { clusterId, id } = await trying();
  const site = `/sites/${id}`;
  await api.ok('PATCH', `${site}/protection`, { cc: { enabled: true } });
  await api.ok('PATCH', `${site}/waf`, { mode: 'detect' });
  await abort(clusterId);
  t.deepEqual(
    fieldsOf(await unpublished(site))
      .filter(([, path]) => ['cc.enabled', 'mode'].includes(path))
      .sort(),
    [
      ['protection', 'cc.enabled', false, true],
      ['site-waf', 'mode', 'off', 'detect'],
    ],
  );
  const { revision } = await api.ok('POST', `${site}/unpublished/publish`, {});
  t.like(await head(clusterId), { revision, reasonCode: 'settings_republished', canaryOnly: true, undoable: true });
  t.like(await api.ok('GET', `/clusters/${clusterId}/rollout`), { state: 'canary', candidateRevision: revision });
  t.deepEqual((await unpublished(site)).changes, []);
  t.like((await api.audit(id)).at(-1), {
    action: 'site.unpublished_publish',
    metadata: { published: [{ clusterId, revision }] },
  });
  t.deepEqual(await api.ok('POST', `${site}/unpublished/publish`, {}), { revision: null });
  t.is((await api.audit(id)).filter(({ action }) => action === 'site.unpublished_publish').length, 1);
});

test('what a rollback left saved is shown, with the fields that a rollback keeps as they are', async (t) => {
  const clusterId = await api.cluster(`unpublished-${made++}`);
  const { id } = await api.site(clusterId, newDomain(), { name: 'Shop' });
  const good = (await head(clusterId)).revision;
  await api.ok('PATCH', `/sites/${id}/protection`, { cc: { enabled: true }, underAttack: true });
  const redirects = ['/a', '/b'].map((source) => ({ source, target: '/d' }));
  await api.ok('PUT', `/sites/${id}/bulk-redirects`, { redirects });
  await api.ok('POST', `/clusters/${clusterId}/rollback`, { revision: good });
  const left = await unpublished(`/sites/${id}`);
  t.is(left.cause.reasonCode, 'rollback');
  t.deepEqual(
    left.changes.map(({ kind, fields }: Body) => [kind, fields.map(({ path }: Body) => path.split('.')[0])]).sort(),
    [
      ['bulk-redirects', ['/a', '/a', '/a', '/b', '/b', '/b']],
      ['protection', ['cc']],
    ],
  );
  await api.ok('POST', `/sites/${id}/unpublished/discard`, {});
  t.deepEqual((await api.ok('GET', `/sites/${id}/bulk-redirects`)).redirects, []);
  t.like(await api.ok('GET', `/sites/${id}/protection`), { cc: { enabled: false }, underAttack: true });
  t.deepEqual((await unpublished(`/sites/${id}`)).changes, []);
});

test('a site that only an aborted canary served can be tried again, not discarded', async (t) => {
  const { clusterId } = await trying();
  const { id } = await api.site(clusterId, newDomain(), { name: 'New' });
  await abort(clusterId);
  const left = await unpublished(`/sites/${id}`);
  t.like(left, { discardable: false, changes: [{ kind: 'site', change: 'added' }] });
  t.deepEqual(await api.ok('POST', `/sites/${id}/unpublished/discard`, {}), { revision: null, restoredFields: 0 });
  await api.ok('POST', `/sites/${id}/unpublished/publish`, {});
  await api.ok('POST', `/clusters/${clusterId}/rollout/promote`, {});
  t.like(await unpublished(`/sites/${id}`), { discardable: true, changes: [] });
});

test('settings of a cluster are shown, discarded and tried again beside those of its sites', async (t) => {
  const { clusterId, id } = await trying();
  const cluster = `/clusters/${clusterId}`;
  const save = () => api.ok('PUT', `${cluster}/client-ip`, { settings: { mode: 'direct', dropForwardedFor: true } });
  await save();
  await api.ok('PATCH', `/sites/${id}`, { name: 'Tried' });
  await abort(clusterId);
  t.deepEqual(fieldsOf(await unpublished(cluster)), [['client-ip', 'dropForwardedFor', false, true]]);
  await api.ok('POST', `${cluster}/unpublished/discard`, {});
  t.deepEqual((await unpublished(cluster)).changes, []);
  t.false((await api.ok('GET', `${cluster}/client-ip`)).settings.dropForwardedFor);
  t.is((await unpublished(`/sites/${id}`)).changes.length, 1);
  t.is((await api.audit(clusterId)).at(-1)!.action, 'cluster.unpublished_discard');
  await save();
  await abort(clusterId);
  const { revision } = await api.ok('POST', `${cluster}/unpublished/publish`, {});
  t.like(await head(clusterId), { revision, reasonCode: 'settings_republished' });
  t.deepEqual((await unpublished(cluster)).changes, []);
});

test('what is gone is refused', async (t) => {
  for (const [path, code] of [
    ['/sites/nobody', 'SITE_NOT_FOUND'],
    ['/clusters/nobody', 'CLUSTER_NOT_FOUND'],
  ] as const) {
    await api.refused(t, [404, code], 'GET', `${path}/unpublished`);
    for (const verb of ['publish', 'discard']) {
      await api.refused(t, [404, code], 'POST', `${path}/unpublished/${verb}`, {});
    }
  }
});
