import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { ClientIpMode, ClientIpSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let path: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('addresses');
  path = `/clusters/${clusterId}/client-ip`;
});
test.after.always('stop', () => running?.stop());

const set = (settings: Body) => api.ok('PUT', path, { settings });
const header = (more: Body = {}) => ({ mode: 'header', trustedCidrs: ['192.0.2.1'], header: 'x-real-ip', ...more });
const compiled = async () => {
  const body = await api.entry(clusterId, 'client-ip', '');
  return body && fromBinary(ClientIpSchema, body);
};

test.serial('direct is the default and needs no entry', async (t) => {
  t.deepEqual(await api.ok('GET', path), {
    settings: { mode: 'direct', dropForwardedFor: false },
    unsupportedNodes: [],
    warnings: [],
  });
  t.like(await set({ mode: 'direct' }), { revision: null });
  t.is(await compiled(), undefined);
});

test.serial('each mode is saved with its fields, published and audited', async (t) => {
  const first = await set(header({ trustedCidrs: ['2001:DB8::1', '192.0.2.9/24', '192.0.2.0/24', '127.0.0.0/8'] }));
  t.deepEqual(first.settings, {
    mode: 'header',
    trustedCidrs: ['127.0.0.0/8', '192.0.2.0/24', '2001:db8::1/128'],
    header: 'x-real-ip',
  });
  t.truthy(first.revision);
  t.like(await compiled(), {
    mode: ClientIpMode.HEADER,
    header: 'x-real-ip',
    trustedCidrs: first.settings.trustedCidrs,
  });
  t.is((await api.ok('GET', `/clusters/${clusterId}`)).clientIpMode, 'header');
  t.deepEqual((await set({ mode: 'proxy_protocol' })).settings, { mode: 'proxy_protocol' });
  t.like(await compiled(), { mode: ClientIpMode.PROXY_PROTOCOL, trustedCidrs: [], header: '' });
  await set({ mode: 'direct', dropForwardedFor: true });
  t.like(await compiled(), { mode: ClientIpMode.DIRECT, dropForwardedFor: true });
  t.is((await set({ mode: 'direct', dropForwardedFor: true })).revision, null);
  await set({ mode: 'direct' });
  t.is(await compiled(), undefined);
  const reasons = (await api.reasons(clusterId)).slice(1);
  t.deepEqual(reasons, new Array(4).fill('client_ip_updated'));
  const audit = (await api.audit(clusterId)).filter(({ action }) => action === 'cluster.client_ip_update');
  t.is(audit.length, 4);
});

test.serial('nodes that cannot follow are named', async (t) => {
  await api.node(clusterId, 'old', { features: ['bans-v1'] });
  await api.node(clusterId, 'new', { features: ['client-ip-v1'] });
  await api.node(clusterId, 'off', { status: 'disabled' });
  t.deepEqual(
    (await set(header())).unsupportedNodes.map((node: Body) => node.name),
    ['old'],
  );
  t.deepEqual(
    (await api.ok('GET', path)).unsupportedNodes.map((node: Body) => node.name),
    ['old'],
  );
});

test.serial('nodes on which every peer may name the client are told of in mode proxy_protocol alone', async (t) => {
  const report = async (name: string, proxyPeersUnset: boolean) => {
    const node = await api.node(clusterId, name, { features: ['client-ip-v1'] });
    await api
      .sql('node_state')
      .where({ node_id: node })
      .update({ info: JSON.stringify({ proxyPeersUnset }) });
    return { id: node, name };
  };
  const open = await report('open', true);
  await report('named', false);
  const warnings = [{ kind: 'proxy_peers_unset', nodes: [open] }];
  t.deepEqual((await set({ mode: 'proxy_protocol' })).warnings, warnings);
  t.deepEqual((await set({ mode: 'proxy_protocol' })).warnings, warnings);
  t.deepEqual((await api.ok('GET', path)).warnings, warnings);
  t.deepEqual((await set(header())).warnings, []);
  t.deepEqual((await api.ok('GET', path)).warnings, []);
});

test.serial('wrong settings are refused by field', async (t) => {
  const refused: readonly (readonly [string, Body])[] = [
    ['/settings', {}],
    ['/settings/mode', { settings: { mode: 'magic' } }],
    ['/settings/trustedCidrs', { settings: { mode: 'header', header: 'x-real-ip' } }],
    ['/settings/header', { settings: { mode: 'header', trustedCidrs: ['192.0.2.1'] } }],
    ['/settings/trustedCidrs', { settings: header({ trustedCidrs: [] }) }],
    [
      '/settings/trustedCidrs',
      { settings: header({ trustedCidrs: Array.from({ length: 65 }, (_, n) => `10.0.0.${n}`) }) },
    ],
    ['/settings/trustedCidrs/1', { settings: header({ trustedCidrs: ['10.0.0.1', 'x'] }) }],
    ['/settings/trustedCidrs/0', { settings: header({ trustedCidrs: ['::ffff:10.0.0.1'] }) }],
    ['/settings/trustedCidrs/0', { settings: header({ trustedCidrs: ['::ffff:0:0/96'] }) }],
    ['/settings/trustedCidrs/0', { settings: header({ trustedCidrs: ['::ffff:10.0.0.1/95'] }) }],
    ['/settings/trustedCidrs', { settings: { mode: 'direct', trustedCidrs: ['10.0.0.1'] } }],
    ['/settings/header', { settings: { mode: 'proxy_protocol', header: 'x-real-ip' } }],
    ['/settings/dropForwardedFor', { settings: header({ dropForwardedFor: true }) }],
    ['/settings/dropForwardedFor', { settings: { mode: 'direct', dropForwardedFor: 'yes' } }],
    ['/settings/other', { settings: { mode: 'direct', other: 1 } }],
    ...[
      '',
      'X-Real-IP',
      'x real ip',
      'x_real_ip',
      'a'.repeat(65),
      'host',
      'cookie',
      'authorization',
      'x-request-id',
      'x-svc-client',
      'connection',
      'keep-alive',
      'te',
      'trailer',
      'transfer-encoding',
      'upgrade',
      'proxy-authorization',
    ].map((name): [string, Body] => ['/settings/header', { settings: header({ header: name }) }]),
  ];
  const before = await api.ok('GET', path);
  for (const [field, body] of refused) await api.badField(t, field, 'PUT', path, body);
  t.deepEqual(await api.ok('GET', path), before);
});

test.serial('64 trusted ranges and a header of 64 characters are allowed', async (t) => {
  const trustedCidrs = Array.from({ length: 64 }, (_, n) => `10.0.0.${n}`);
  const { settings } = await set(header({ trustedCidrs, header: 'x'.repeat(64) }));
  t.is(settings.trustedCidrs.length, 64);
});

test.serial('a missing cluster is refused', async (t) => {
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/nobody/client-ip');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'PUT', '/clusters/nobody/client-ip', {
    settings: { mode: 'direct' },
  });
});
