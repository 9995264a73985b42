import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { OriginPolicySchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const PATH = '/settings/origin-allow-list';
let last = 0;
const site = (address: string) => {
  last += 1;
  return { domains: [`p${last}.example`], origins: [{ address }] };
};

test.serial('special-purpose literals are refused with address and range, names are not', async (t) => {
  for (const [address, canonical, range] of [
    ['127.0.0.1', '127.0.0.1', '127.0.0.0/8'],
    ['10.1.2.3', '10.1.2.3', '10.0.0.0/8'],
    ['169.254.169.254', '169.254.169.254', '169.254.0.0/16'],
    ['::1', '::1', '::1/128'],
    ['FD00::1', 'fd00::1', 'fc00::/7'],
    ['::ffff:10.0.0.1', '10.0.0.1', '10.0.0.0/8'],
    ['64:ff9b::a00:1', '64:ff9b::a00:1', '10.0.0.0/8'],
  ] as const) {
    const data = await api.refused(t, [400, 'ORIGIN_ADDRESS_FORBIDDEN'], 'POST', '/sites', site(address));
    t.deepEqual(data, { address: canonical, range, path: '/origins/0/address' }, address);
  }
  await api.ok('POST', '/sites', site('localhost'));
  await api.ok('POST', '/sites', site('8.8.8.8'));
});

test.serial('the allow list is normalised, published everywhere, audited, and lets origins through', async (t) => {
  const clusters = [await api.cluster('one'), await api.cluster('two')];
  t.deepEqual(await api.ok('GET', PATH), { cidrs: [] });
  const saved = await api.ok('PUT', PATH, { cidrs: ['fd00::/8', '10.9.8.7/8', '127.0.0.1', '127.0.0.1/32'] });
  t.deepEqual(saved, { cidrs: ['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8'] });
  t.deepEqual(await api.ok('GET', PATH), saved);
  for (const cluster of clusters) {
    const body = (await api.entry(cluster, 'origin-policy', ''))!;
    t.deepEqual(fromBinary(OriginPolicySchema, body).allowedCidrs, saved.cidrs);
    t.is((await api.reasons(cluster)).at(-1), 'origin_allow_list_updated');
  }
  const audits = () => api.sql('audit_entry').where({ action: 'system.origin_allow_list_update' });
  t.is((await audits()).length, 1);
  // The same list in other words: nothing happens.
  await api.ok('PUT', PATH, { cidrs: ['127.0.0.1', '10.0.0.0/8', 'FD00::/8'] });
  t.is((await audits()).length, 1);
  await api.ok('POST', '/sites', site('10.1.2.3'));
  await api.ok('POST', '/sites', site('127.0.0.1'));
  await api.refused(t, [400, 'ORIGIN_ADDRESS_FORBIDDEN'], 'POST', '/sites', site('127.0.0.2'));
});

test.serial('a new cluster has the list from its first revision', async (t) => {
  const cluster = await api.cluster('late');
  t.deepEqual(await api.entries(cluster, 'origin-policy'), ['']);
  t.deepEqual(await api.reasons(cluster), ['cluster_created']);
});

test.serial('a shrinking list leaves saved sites alone and judges given origins anew', async (t) => {
  const { site: saved } = await api.ok('POST', '/sites', site('10.1.2.4'));
  await api.ok('PUT', PATH, { cidrs: [] });
  t.deepEqual(await api.entries((await api.ok('GET', '/clusters')).items[0].id, 'origin-policy'), []);
  await api.ok('PATCH', `/sites/${saved.id}`, { name: 'Renamed' });
  const body = { origins: saved.origins };
  await api.refused(t, [400, 'ORIGIN_ADDRESS_FORBIDDEN'], 'PATCH', `/sites/${saved.id}`, body);
});

test.serial('wrong lists are refused with the entry', async (t) => {
  for (const bad of ['x', '::ffff:10.0.0.1/95'])
    await api.badField(t, '/cidrs/1', 'PUT', PATH, { cidrs: ['10.0.0.0/8', bad] });
  await api.badField(t, '/cidrs', 'PUT', PATH, {});
  await api.badField(t, '/cidrs', 'PUT', PATH, {
    cidrs: Array.from({ length: 257 }, (_, n) => `10.0.${n & 255}.${n >> 8}`),
  });
  await api.ok('PUT', PATH, { cidrs: Array.from({ length: 256 }, (_, n) => `10.0.0.${n}`) });
  t.is((await api.ok('GET', PATH)).cidrs.length, 256);
});

test.serial(
  'a test of an origin keeps to the address policy, names wrong fields, and is bounded for each user',
  async (t) => {
    const ask = (origin: object, more: object = {}) => api.call('POST', '/origins/try', { origin, ...more });
    await api.ok('PUT', PATH, { cidrs: [] });
    const refused = (await ask({ address: '127.0.0.1', port: 9 })).body;
    t.like(refused, { address: '127.0.0.1', range: '127.0.0.0/8', status: null, steps: [{ failure: 'forbidden' }] });
    await api.ok('PUT', PATH, { cidrs: ['127.0.0.0/8'] });
    const { port } = new URL(running.url);
    const responds = (await ask({ address: '127.0.0.1', port: Number(port) }, { path: '/healthz' })).body;
    t.deepEqual(
      responds.steps.map(({ step, failure }: Body) => [step, failure]),
      [
        ['address', null],
        ['connect', null],
        ['response', null],
      ],
    );
    t.is(responds.status, 200);
    await api.badField(t, '/origin/address', 'POST', '/origins/try', { origin: { address: 'a b' } });
    await api.badField(t, '/path', 'POST', '/origins/try', { origin: { address: 'a.example' }, path: '/ x' });
    for (const host of ['a b', 'a.example\r\nx: y', 'a/b'])
      await api.badField(t, '/host', 'POST', '/origins/try', { origin: { address: 'a.example' }, host });
    const hostHeader = { address: 'a.example', hostHeader: 'a/b' };
    t.is((await ask(hostHeader)).body.code, 'ORIGIN_HOST_HEADER_INVALID');
    await api.ok('PUT', PATH, { cidrs: [] });
    const rest = await Promise.all(Array.from({ length: 20 }, () => ask({ address: '127.0.0.1' })));
    const over = rest.filter(({ status }) => status === 429);
    t.is(over.length, 2, 'two of the twenty were spent above');
    t.like(over[0]!.body, { code: 'ORIGIN_TEST_LIMIT', data: { limit: 20 } });
  },
);
