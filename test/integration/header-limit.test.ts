import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { HeaderLimitSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let path: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('kerberos');
  path = `/clusters/${clusterId}/header-limit`;
});
test.after.always('stop', () => running?.stop());

const compiled = async () => {
  const body = await api.entry(clusterId, 'header-limit', '');
  return body && fromBinary(HeaderLimitSchema, body).fieldBytes;
};

test.serial('8 KiB are the default and need no entry', async (t) => {
  t.deepEqual(await api.ok('GET', path), { fieldBytes: 8192, unsupportedNodes: [] });
  t.like(await api.ok('PUT', path, {}), { fieldBytes: 8192, revision: null });
  t.is(await compiled(), undefined);
});

test.serial('a larger limit is published and audited; the same once more changes nothing', async (t) => {
  t.truthy((await api.ok('PUT', path, { fieldBytes: 65_536 })).revision);
  t.is(await compiled(), 65_536);
  t.is((await api.ok('PUT', path, { fieldBytes: 65_536 })).revision, null);
  t.deepEqual((await api.reasons(clusterId)).slice(-1), ['header_limit_updated']);
  const [audit] = (await api.audit(clusterId)).filter(({ action }) => action === 'cluster.header_limit_update');
  t.deepEqual(audit!.metadata.after, { fieldBytes: 65_536 });
});

test.serial('nodes without the capability are named', async (t) => {
  await api.node(clusterId, 'before', { features: ['bans-v1'] });
  t.like(await api.ok('GET', path), { unsupportedNodes: [{ name: 'before' }] });
});

for (const fieldBytes of [8191, 65_537, 9000.5, '9000', null]) {
  test.serial(`${JSON.stringify(fieldBytes)} is refused and changes nothing`, async (t) => {
    const before = await api.ok('GET', path);
    const { status, body } = await api.call('PUT', path, { fieldBytes });
    t.is(status, 400);
    t.true(JSON.stringify(body).includes('/fieldBytes'), JSON.stringify(body));
    t.deepEqual(await api.ok('GET', path), before);
  });
}
