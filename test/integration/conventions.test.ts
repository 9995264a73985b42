// Conventions of /api/v1 over real HTTP: the optimistic lock of every resource that has one, and the rule for changes that
// some node cannot follow.
import test from 'ava';
import { PROCEDURES } from '../../contract/index.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { type Lock, surfaces } from '../helpers/surfaces.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('conventions');
});

test.after.always(() => running?.stop());

let sequence = 0;
const unique = (word: string) => `${word}-${++sequence}`;
const newSite = async () => (await api.site(clusterId, `${unique('lock')}.example`)).id;
const newNode = () => api.node(clusterId, unique('node'));
const ofSite = ({ site }: Body) => site.updatedAt;

const LOCKS: Readonly<Record<string, Lock>> = {
  ...Object.assign({}, ...(await surfaces()).map(({ locks }) => locks)),
  'serviceAccounts.update': {
    make: async () => (await api.ok('POST', '/service-accounts', { name: unique('a') })).id,
    request: (id) => ['PUT', `/service-accounts/${id}`, { name: unique('b') }],
  },
  'clusters.update': {
    make: () => api.cluster(unique('c')),
    request: (id) => ['PATCH', `/clusters/${id}`, { description: unique('d') }],
  },
  'nodeGroups.update': {
    make: async () => (await api.ok('POST', '/node-groups', { clusterId, name: unique('g') })).id,
    request: (id) => ['PATCH', `/node-groups/${id}`, { name: unique('h') }],
  },
  'nodes.update': { make: newNode, request: (id) => ['PATCH', `/nodes/${id}`, { name: unique('n') }] },
  'nodes.setAddresses': { make: newNode, request: (id) => ['PUT', `/nodes/${id}/addresses`, { addresses: [] }] },
  'nodes.disable': { make: newNode, request: (id) => ['POST', `/nodes/${id}/disable`, {}] },
  'nodes.enable': {
    make: () => api.node(clusterId, unique('node'), { status: 'disabled' }),
    request: (id) => ['POST', `/nodes/${id}/enable`, {}],
  },
  'sites.update': {
    make: newSite,
    request: (id) => ['PATCH', `/sites/${id}`, { name: unique('m') }],
    updatedAt: ofSite,
  },
  'sites.setEnabled': {
    make: newSite,
    request: (id) => ['PUT', `/sites/${id}/enabled`, { enabled: false }],
    updatedAt: ofSite,
  },
  'protection.update': {
    make: newSite,
    request: (id) => ['PATCH', `/sites/${id}/protection`, { powDifficulty: 17 }],
  },
};

test('every procedure with expectedUpdatedAt stands here', (t) => {
  const declared = [...PROCEDURES.values()].filter(({ input }) => 'expectedUpdatedAt' in input.properties);
  t.deepEqual(declared.map(({ name }) => name).sort(), Object.keys(LOCKS).sort());
});

for (const [name, { make, request, updatedAt = (answer: Body) => answer.updatedAt }] of Object.entries(LOCKS)) {
  test.serial(`${name} changes what the caller saw and nothing else`, async (t) => {
    const id = await make(api, unique);
    const [method, path, body] = request(id, unique);
    const audited = () => api.sql('audit_entry').max('id').first();
    const before = await audited();
    const stale = { ...body, expectedUpdatedAt: '2020-01-01T00:00:00.000Z' };
    const { updatedAt: current } = await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], method, path, stale);
    t.deepEqual(await audited(), before);
    const changed = await api.ok(method, path, { ...body, expectedUpdatedAt: current });
    t.true(Date.parse(updatedAt(changed)) > Date.parse(current));
    await api.badField(t, '/expectedUpdatedAt', method, path, { ...body, expectedUpdatedAt: 'yesterday' });
  });
}

// Node capability rule --------------------------------------------------------------------------------------------------

test.serial(
  'what some nodes cannot follow: an operator saves it, a service account is refused and nothing is saved',
  async (t) => {
    const cluster = await api.cluster('capabilities');
    const site = await api.site(cluster, '.capable.example');
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await api.node(cluster, name, { features: ['bans-v1'] });
    await api.node(cluster, 'able', { features: ['domains-v2'] });
    await api.node(cluster, 'disabled', { status: 'disabled' });
    const { id } = await api.ok('POST', '/service-accounts', { name: 'deployer', scopes: ['sites:write'] });
    const { secret } = await api.ok('POST', `/service-accounts/${id}/keys`, {});
    const path = `/api/v1/sites/${site.id}/enabled`;
    const set = (headers: Record<string, string>, enabled: boolean) =>
      running.client.request<Body>('PUT', path, { enabled }, headers);
    const state = async () => [
      await api.reasons(cluster),
      await api.audit(site.id),
      await api.ok('GET', `/sites/${site.id}`),
    ];

    const operator = { 'x-api-key': running.client.accessKey };
    const account = { 'x-api-key': secret };

    const saved = await set(operator, false);
    t.is(saved.status, 200);
    // Published: nodes that lack the capability keep what they have and show it (node-channel.watch.test.ts).
    const change = await api.ok('GET', `/changes/${saved.headers.get('x-svc-change')}`);
    t.like(change, { kind: 'config', clusterId: cluster, reason: 'site_disabled', done: false });

    const before = await state();
    const refused = await set(account, true);
    t.is(`${refused.status} ${refused.body.code}`, '409 NODE_CAPABILITY_REQUIRED');
    t.deepEqual(refused.body.data, { features: 'domains-v2', nodes: 'a,b,c,d,e,+2' });
    t.is(refused.headers.get('x-svc-change'), null);
    t.deepEqual(await state(), before);
    const bySession = await running.client.rpc<Body>('sites.setEnabled', { id: site.id, enabled: true });
    t.true(bySession.site.enabled);

    // Off needs no capability.
    const off = await set(account, false);
    t.is(off.status, 200, JSON.stringify(off.body));
    t.false(off.body.site.enabled);

    for (const name of ['a', 'b']) {
      await api.sql('node').where({ cluster_id: cluster, name }).update({ status: 'disabled' });
    }
    // Exactly five are left: all are named.
    t.is((await set(account, true)).body.data.nodes, 'c,d,e,f,g');
  },
);
