import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { UnknownHostAction, UnknownHostsSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let path: string;
let site: Body;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('strangers');
  path = `/clusters/${clusterId}/unknown-hosts`;
  site = await api.site(clusterId, 'default.example');
});
test.after.always('stop', () => running?.stop());

const set = (settings: Body) => api.ok('PUT', path, settings);
const compiled = async () => {
  const body = await api.entry(clusterId, 'unknown-hosts', '');
  return body && fromBinary(UnknownHostsSchema, body);
};
const NO_SCAN = { enabled: false, threshold: 100, banSeconds: 3600 };
const DEFAULTS = {
  unknownHost: 'page',
  ipAccess: 'page',
  defaultSiteId: null,
  defaultCertificate: false,
  scan: NO_SCAN,
};

test.serial('the page is the default and needs no entry', async (t) => {
  t.deepEqual(await api.ok('GET', path), { ...DEFAULTS, unsupportedNodes: [] });
  t.like(await set({}), { ...DEFAULTS, revision: null });
  t.is(await compiled(), undefined);
});

test.serial('actions are saved as a whole, published and audited', async (t) => {
  const closing = await set({ unknownHost: 'close' });
  t.like(closing, { ...DEFAULTS, unknownHost: 'close' });
  t.truthy(closing.revision);
  t.like(await compiled(), { unknownHost: UnknownHostAction.CLOSE, ipAccess: UnknownHostAction.PAGE });
  const serving = await set({ ipAccess: 'site', defaultSiteId: site.id });
  t.like(serving, { ...DEFAULTS, ipAccess: 'site', defaultSiteId: site.id });
  t.like(await compiled(), {
    unknownHost: UnknownHostAction.PAGE,
    ipAccess: UnknownHostAction.SITE,
    defaultSiteId: site.id,
  });
  t.is((await set({ ipAccess: 'site', defaultSiteId: site.id })).revision, null);
  t.deepEqual((await api.reasons(clusterId)).slice(-2), new Array(2).fill('unknown_hosts_updated'));
  const audit = (await api.audit(clusterId)).filter(({ action }) => action === 'cluster.unknown_hosts_update');
  t.is(audit.length, 2);
  t.deepEqual(audit[1]!.metadata.after, { ...DEFAULTS, ipAccess: 'site', defaultSiteId: site.id });
});

test.serial('scan protection is saved with its defaults, and published while it is on', async (t) => {
  await set({});
  t.is(await compiled(), undefined);
  t.deepEqual((await set({ scan: { threshold: 10 } })).scan, { ...NO_SCAN, threshold: 10 });
  t.is(await compiled(), undefined, 'nodes do not see what is off');
  t.deepEqual((await set({ scan: { enabled: true, banSeconds: 86_400 } })).scan, {
    enabled: true,
    threshold: 100,
    banSeconds: 86_400,
  });
  t.like((await compiled())!.scan, { enabled: true, threshold: 100, banSeconds: 86_400 });
  const entry = await api
    .sql('config_entry')
    .where({ cluster_id: clusterId, kind: 'unknown-hosts', to_revision: null });
  t.deepEqual(entry[0].features, ['challenge-v1', 'unknown-host-v1']);
  for (const scan of [
    { enabled: true, threshold: 10, banSeconds: 60 },
    { enabled: true, threshold: 10_000, banSeconds: 60 },
  ]) {
    t.deepEqual((await set({ scan })).scan, scan);
  }
  const row = await api.sql('cluster').where({ id: clusterId }).first('longest_scan_ban_seconds');
  t.is(row.longest_scan_ban_seconds, 86_400);
  t.deepEqual(await set({}), {
    ...DEFAULTS,
    unsupportedNodes: [],
    revision: (await api.ok('GET', `/clusters/${clusterId}`)).latestRevision,
  });
});

test.serial('the default site must be an enabled site of the cluster', async (t) => {
  const elsewhere = await api.site(await api.cluster('elsewhere'), 'elsewhere.example');
  const disabled = await api.site(clusterId, 'disabled.example');
  await api.ok('PUT', `/sites/${disabled.id}/enabled`, { enabled: false });
  const before = await api.ok('GET', path);
  for (const body of [
    { unknownHost: 'site' },
    { ipAccess: 'site', defaultSiteId: null },
    { unknownHost: 'site', defaultSiteId: 'nobody' },
    { unknownHost: 'site', defaultSiteId: elsewhere.id },
    { unknownHost: 'site', defaultSiteId: disabled.id },
    { defaultSiteId: disabled.id },
    { defaultCertificate: true },
  ]) {
    await api.refused(t, [400, 'DEFAULT_SITE_INVALID'], 'PUT', path, body);
  }
  const certificate = { defaultSiteId: site.id, defaultCertificate: true };
  await api.refused(t, [409, 'DEFAULT_SITE_CERTIFICATE_REQUIRED'], 'PUT', path, certificate);
  t.deepEqual(await api.ok('GET', path), before);
});

test.serial('wrong fields are refused by name, a missing cluster by its code', async (t) => {
  await api.badField(t, '/unknownHost', 'PUT', path, { unknownHost: 'drop' });
  await api.badField(t, '/ipAccess', 'PUT', path, { ipAccess: null });
  await api.badField(t, '/defaultCertificate', 'PUT', path, { defaultCertificate: 1 });
  await api.badField(t, '/scan/other', 'PUT', path, { scan: { other: 1 } });
  for (const [field, values] of [
    ['threshold', [9, 10_001, 10.5, '10']],
    ['banSeconds', [59, 86_401, null]],
    ['enabled', [1, 'true']],
  ] as const) {
    for (const value of values) await api.badField(t, `/scan/${field}`, 'PUT', path, { scan: { [field]: value } });
  }
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/nobody/unknown-hosts');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'PUT', '/clusters/nobody/unknown-hosts', {});
});

test.serial('deleting the default site gives unknown hosts the page, in the same revision', async (t) => {
  await set({ unknownHost: 'site', ipAccess: 'close', defaultSiteId: site.id });
  const { revision } = await api.ok('DELETE', `/sites/${site.id}`);
  t.like(await api.ok('GET', path), { ...DEFAULTS, ipAccess: 'close' });
  t.like(await compiled(), {
    unknownHost: UnknownHostAction.PAGE,
    ipAccess: UnknownHostAction.CLOSE,
    defaultSiteId: '',
  });
  const rows = await api.sql('config_entry').where({ cluster_id: clusterId, from_revision: revision });
  t.deepEqual(
    rows.map((row) => row.kind),
    ['unknown-hosts'],
  );
});
