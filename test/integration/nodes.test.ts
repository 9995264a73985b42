import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('nodes');
});
test.after.always('stop', () => running?.stop());

const MISSING = '01a00000-0000-7000-8000-000000000000';
const actions = async (id: string) => (await api.audit(id)).map(({ action }) => action);

test('nodes are listed by name and filtered by cluster, group, status, online and text', async (t) => {
  const other = await api.cluster('listed');
  const ids = [await api.node(other, 'beta'), await api.node(other, 'alpha', { online: false })];
  const disabled = await api.node(other, 'gamma', { status: 'disabled' });
  const names = async (query: string) =>
    (await api.ok('GET', `/nodes?clusterId=${other}${query}`)).items.map((item: { name: string }) => item.name);
  t.deepEqual(await names(''), ['alpha', 'beta', 'gamma']);
  t.deepEqual(await names('&online=true'), ['beta', 'gamma']);
  t.deepEqual(await names('&online=false'), ['alpha']);
  t.deepEqual(await names('&status=disabled'), ['gamma']);
  t.deepEqual(await names('&search=ALPH'), ['alpha']);
  t.deepEqual(await names('&search=%25'), []);
  t.deepEqual(await names('&page=2&pageSize=2'), ['gamma']);
  t.is((await api.ok('GET', `/nodes?clusterId=${other}&pageSize=1`)).total, 3);
  const group = (await api.ok('GET', `/nodes/${ids[0]}`)).nodeGroupId;
  t.is((await names(`&nodeGroupId=${group}`)).length, 3);
  t.is((await names(`&nodeGroupId=${MISSING}`)).length, 0);
  t.is((await api.call('GET', '/nodes?status=other')).status, 400);
  await api.node(other, 'able', { features: ['ja4-v1', 'domains-v2'] });
  t.deepEqual(await names('&lacks=ja4-v1'), ['alpha', 'beta', 'gamma']);
  t.deepEqual(await names('&lacks=http3-v1'), ['able', 'alpha', 'beta', 'gamma']);
  t.is((await api.ok('GET', `/nodes?clusterId=${other}&lacks=ja4-v1&pageSize=1`)).total, 3);
  t.is((await api.call('GET', `/nodes?lacks=${encodeURIComponent("'")}`)).status, 400);
  t.like(await api.ok('GET', `/nodes/${disabled}`), { status: 'disabled', clusterName: 'listed', online: true });
});

test('a node is renamed and moved inside its cluster only', async (t) => {
  const id = await api.node(clusterId, 'moving');
  const before = await api.ok('GET', `/nodes/${id}`);
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'target' });
  const foreign = await api.ok('POST', '/node-groups', { clusterId: await api.cluster('foreign'), name: 'x' });
  const path = `/nodes/${id}`;
  const body = { name: 'moved', nodeGroupId: group.id, expectedUpdatedAt: before.updatedAt };
  t.like(await api.ok('PATCH', path, body), { name: 'moved', nodeGroupId: group.id, nodeGroupName: 'target' });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, body);
  await api.refused(t, [400, 'NODE_GROUP_CLUSTER_MISMATCH'], 'PATCH', path, { nodeGroupId: foreign.id });
  await api.refused(t, [404, 'NODE_GROUP_NOT_FOUND'], 'PATCH', path, { nodeGroupId: MISSING });
  await api.refused(t, [404, 'NODE_NOT_FOUND'], 'PATCH', `/nodes/${MISSING}`, { name: 'x' });
  await api.badField(t, '/name', 'PATCH', path, { name: '' });
  await api.badField(t, '/name', 'PATCH', path, { name: 'n'.repeat(65) });
  t.deepEqual(await actions(id), ['node.update', 'node.move']);
});

test('disabling and enabling are audited once each, and asking again changes nothing', async (t) => {
  const id = await api.node(clusterId, 'switched');
  const first = await api.ok('POST', `/nodes/${id}/disable`, {});
  t.is(first.status, 'disabled');
  t.deepEqual(await api.ok('POST', `/nodes/${id}/disable`, {}), first);
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'POST', `/nodes/${id}/enable`, {
    expectedUpdatedAt: new Date(0).toISOString(),
  });
  t.is((await api.ok('POST', `/nodes/${id}/enable`, {})).status, 'active');
  t.deepEqual(await actions(id), ['node.disable', 'node.enable']);
  for (const verb of ['enable', 'disable']) {
    await api.refused(t, [404, 'NODE_NOT_FOUND'], 'POST', `/nodes/${MISSING}/${verb}`, {});
  }
});

test('a disabled node is cut off within seconds, may renew its certificate, and comes back when enabled', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  await connection.call('heartbeat', {});
  const ended = new Promise<string | undefined>((resolve) => {
    connection.watch(
      {},
      () => undefined,
      (reason) => resolve(reason?.code),
    );
  });
  await api.ok('POST', `/nodes/${identity.nodeId}/disable`, {});
  t.is(await ended, 'unauthenticated');
  await t.throwsAsync(connection.call('heartbeat', {}), { message: /NODE_DISABLED/ });
  await t.throwsAsync(connection.call('getBans', {}), { message: /NODE_DISABLED/ });
  await t.throwsAsync(connection.call('renewCertificate', { csrPem: 'x' }), { message: /invalid_argument/ });
  t.is((await api.ok('GET', `/nodes/${identity.nodeId}`)).authError, null);
  await api.ok('POST', `/nodes/${identity.nodeId}/enable`, {});
  await eventually(async () => {
    await connection.call('heartbeat', {});
    return true;
  });
  t.pass();
});

test('a deleted node is cut off and its certificate is worth nothing', async (t) => {
  const identity = await enrollOne(running, clusterId);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  await connection.call('heartbeat', {});
  const ended = new Promise<string | undefined>((resolve) => {
    connection.watch(
      {},
      () => undefined,
      (reason) => resolve(reason?.code),
    );
  });
  await api.ok('DELETE', `/nodes/${identity.nodeId}`);
  t.is(await ended, 'unauthenticated');
  await t.throwsAsync(connection.call('renewCertificate', { csrPem: 'x' }), { message: /CERT_REVOKED/ });
  const again = connectAs(running, identity);
  t.teardown(() => again.destroy());
  await t.throwsAsync(again.call('heartbeat', {}), { message: /CERT_REVOKED/ });
  await api.refused(t, [404, 'NODE_NOT_FOUND'], 'GET', `/nodes/${identity.nodeId}`);
  await api.refused(t, [404, 'NODE_NOT_FOUND'], 'DELETE', `/nodes/${identity.nodeId}`);
  t.deepEqual(await actions(identity.nodeId), ['node.enroll', 'node.delete']);
  t.is((await api.sql('node_address').where({ node_id: identity.nodeId })).length, 0);
});
