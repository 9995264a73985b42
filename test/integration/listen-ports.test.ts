// What clusters listen on besides 80 and 443, and which of it sites use.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { portInUse } from '../../models/sites/site-ports.ts';
import { ListenPortsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import { SiteSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { QueryPlans } from '../helpers/query-plans.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;
let count = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const pathOf = (clusterId: string) => `/clusters/${clusterId}/listen-ports`;
const set = (clusterId: string, httpPorts: number[], httpsPorts: number[] = []) =>
  api.ok('PUT', pathOf(clusterId), { httpPorts, httpsPorts });
const newCluster = () => api.cluster(`ports-${count++}`);
const newSite = (clusterId: string, more: Body = {}) => api.site(clusterId, `p${count++}.example`, more);
const published = async (clusterId: string) => {
  const body = await api.entry(clusterId, 'listen-ports', '');
  return body && fromBinary(ListenPortsSchema, body);
};
const portsAtNodes = async (clusterId: string, id: string) => {
  const { httpPorts, httpsPorts } = fromBinary(SiteSchema, (await api.entry(clusterId, 'site', id))!);
  return [httpPorts, httpsPorts];
};
const USUAL = { http: [80], https: [443] };

test('without any there is no entry; saved ones are sorted, each once, published and audited', async (t) => {
  const clusterId = await newCluster();
  t.deepEqual(await api.ok('GET', pathOf(clusterId)), { httpPorts: [], httpsPorts: [], unsupportedNodes: [] });
  t.is((await set(clusterId, [])).revision, null);
  const saved = await set(clusterId, [8080, 81, 8080], [8443]);
  t.like(saved, { httpPorts: [81, 8080], httpsPorts: [8443], unsupportedNodes: [] });
  t.like(await published(clusterId), { httpPorts: [81, 8080], httpsPorts: [8443] });
  t.is((await set(clusterId, [8080, 81], [8443])).revision, null);
  await set(clusterId, []);
  t.is(await published(clusterId), undefined);
  t.deepEqual((await api.reasons(clusterId)).slice(1), ['listen_ports_updated', 'listen_ports_updated']);
  const [, first] = await api.audit(clusterId);
  t.is(first!.action, 'cluster.listen_ports_update');
  t.like(first!.metadata, {
    before: { httpPorts: [], httpsPorts: [] },
    after: { httpPorts: [81, 8080], httpsPorts: [8443] },
  });
});

test.serial('whether a port is used is found without reading all sites of the cluster', async (t) => {
  const clusterId = await newCluster();
  await set(clusterId, [8080, 8081]);
  const { id } = await newSite(clusterId, { ports: { http: [80, 8080], https: [443] } });
  await newSite(clusterId);
  await api.sql.raw(
    `insert into config_entry (cluster_id, track, bucket, kind, resource_id, from_revision, blob_hash, features, refs,
         compiler_version, source)
       select cluster_id, track, bucket, kind, resource_id || n, from_revision, blob_hash, features, refs, compiler_version,
           source
         from config_entry cross join generate_series(1, 5000) n
        where cluster_id = ? and kind = 'site' and resource_id <> ? and to_revision is null`,
    [clusterId, id],
  );
  await api.sql.raw('vacuum analyze config_entry');
  const plans = new QueryPlans(api, running);
  await plans.connect();
  t.teardown(() => plans.end());
  const read = await plans.rowsRead(
    async () => t.like(await portInUse(api.sql, clusterId, 'http', [8080, 8081]), { port: 8080 }),
    (sql) => sql.includes('array_agg(name'),
  );
  t.true(read[0]! < 100, `reads ${read[0]} rows`);
});

test('nodes that cannot listen elsewhere are named', async (t) => {
  const clusterId = await newCluster();
  const id = await api.node(clusterId, 'old', { features: ['bans-v1'] });
  await api.node(clusterId, 'new', { features: ['edge-ports-v1'] });
  await api.node(clusterId, 'off', { status: 'disabled' });
  const unsupportedNodes = [{ id, name: 'old' }];
  t.deepEqual((await set(clusterId, [8080])).unsupportedNodes, unsupportedNodes);
  t.deepEqual((await api.ok('GET', pathOf(clusterId))).unsupportedNodes, unsupportedNodes);
});

test('a port serves one protocol, and 80 and 443 are everywhere', async (t) => {
  const clusterId = await newCluster();
  const put = (httpPorts: unknown, httpsPorts: unknown = []) =>
    ['PUT', pathOf(clusterId), { httpPorts, httpsPorts }] as const;
  const data = await api.refused(t, [400, 'LISTEN_PORT_CONFLICT'], ...put([81, 8080], [8443, 8080]));
  t.like(data, { port: 8080 });
  await api.badField(t, '/httpPorts/1', ...put([81, 80]));
  await api.badField(t, '/httpPorts/0', ...put([443]));
  await api.badField(t, '/httpsPorts/0', ...put([], [80]));
  for (const port of [0, 65_536, 1.5, '81', null]) await api.badField(t, '/httpPorts/0', ...put([port]));
  await api.badField(
    t,
    '/httpsPorts',
    ...put(
      [],
      Array.from({ length: 17 }, (_, index) => 9000 + index),
    ),
  );
  await api.badField(t, '/httpsPorts', 'PUT', pathOf(clusterId), { httpPorts: [] });
  const most = Array.from({ length: 16 }, (_, index) => 65_520 + index);
  t.deepEqual(
    (
      await set(
        clusterId,
        [1, ...most.slice(1)],
        most.map((port) => port - 100),
      )
    ).httpPorts.length,
    16,
  );
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', pathOf('nobody'));
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'PUT', pathOf('nobody'), { httpPorts: [], httpsPorts: [] });
});

test('a site has the usual ports until it says otherwise, and nodes are told of others alone', async (t) => {
  const clusterId = await newCluster();
  const site = await newSite(clusterId);
  t.deepEqual(site.ports, USUAL);
  t.deepEqual(await portsAtNodes(clusterId, site.id), [[], []]);
  await set(clusterId, [8080, 8081]);
  const changed = await api.ok('PATCH', `/sites/${site.id}`, { ports: { http: [8081, 80, 8081] } });
  t.deepEqual(changed.site.ports, { http: [80, 8081], https: [443] });
  t.deepEqual(await portsAtNodes(clusterId, site.id), [[80, 8081], [443]]);
  t.deepEqual((await api.audit(site.id)).at(-1)!.metadata.changed, ['ports']);
  t.is((await api.ok('PATCH', `/sites/${site.id}`, { ports: { http: [80, 8081] } })).revision, null);
  t.deepEqual((await api.ok('PATCH', `/sites/${site.id}`, { name: 'Other' })).site.ports, {
    http: [80, 8081],
    https: [443],
  });
  await api.ok('PATCH', `/sites/${site.id}`, { ports: USUAL });
  t.deepEqual(await portsAtNodes(clusterId, site.id), [[], []]);
  t.deepEqual((await newSite(clusterId, { ports: { http: [8080] } })).ports, { http: [8080], https: [443] });
});

test('a site uses what its cluster listens on, for the protocol, and HTTPS with a certificate', async (t) => {
  const clusterId = await newCluster();
  await set(clusterId, [8080], [8443]);
  const site = await newSite(clusterId);
  const cases: readonly (readonly [Body, string, Body?])[] = [
    [{ http: [80, 8081] }, 'SITE_PORT_UNAVAILABLE', { port: 8081 }],
    [{ http: [443] }, 'SITE_PORT_UNAVAILABLE', { port: 443 }],
    [{ http: [80, 8443] }, 'SITE_PORT_UNAVAILABLE', { port: 8443 }],
    [{ https: [8080] }, 'SITE_PORT_UNAVAILABLE', { port: 8080 }],
    [{ https: [443, 8443] }, 'SITE_HTTPS_PORT_NEEDS_CERTIFICATE', { port: 8443 }],
    [{ http: [] }, 'SITE_HTTPS_PORT_NEEDS_CERTIFICATE', { port: 443 }],
    [{ http: [], https: [] }, 'SITE_PORTS_EMPTY'],
  ];
  const input = (ports: Body) => ({ clusterId, domains: ['q.example'], origins: [{ address: 'o.example' }], ports });
  for (const [ports, code, data] of cases) {
    for (const [method, path, body] of [
      ['PATCH', `/sites/${site.id}`, { ports }],
      ['POST', '/sites', input(ports)],
    ] as const) {
      const refused = await api.refused(t, [400, code], method, path, body);
      if (data) t.like(refused, data);
    }
  }
  await api.badField(t, '/ports/http/0', 'PATCH', `/sites/${site.id}`, { ports: { http: [0] } });
  await api.badField(t, '/ports/other', 'PATCH', `/sites/${site.id}`, { ports: { other: [] } });
  t.deepEqual((await api.ok('GET', `/sites/${site.id}`)).ports, USUAL);
});

test('a port goes when no site of the cluster uses it, disabled ones among them', async (t) => {
  const [clusterId, other] = [await newCluster(), await newCluster()];
  for (const id of [clusterId, other]) await set(id, [8080, 8081]);
  await newSite(other, { ports: { http: [8081] } });
  const sites: Body[] = [];
  for (let index = 0; index < 6; index++) {
    sites.push(await newSite(clusterId, { name: `Site ${index}`, ports: { http: [80, 8080] } }));
  }
  await api.ok('PUT', `/sites/${sites[0]!.id}/enabled`, { enabled: false });
  const removal = { httpPorts: [8082], httpsPorts: [] };
  const data = await api.refused(t, [409, 'LISTEN_PORT_IN_USE'], 'PUT', pathOf(clusterId), removal);
  t.deepEqual(data, { port: 8080, sites: [0, 1, 2, 3, 4].map((index) => `Site ${index}`) });
  await set(clusterId, [8080]);
  for (const { id } of sites) await api.ok('PATCH', `/sites/${id}`, { ports: USUAL });
  await api.ok('PUT', pathOf(clusterId), removal);
  t.deepEqual((await published(clusterId))!.httpPorts, [8082]);
});

test('a port that goes while a site takes it: one of both is refused', async (t) => {
  for (let round = 0; round < 8; round++) {
    const clusterId = await newCluster();
    await set(clusterId, [8080]);
    const site = await newSite(clusterId);
    const [taken, gone] = await Promise.all([
      api.call('PATCH', `/sites/${site.id}`, { ports: { http: [8080] } }),
      api.call('PUT', pathOf(clusterId), { httpPorts: [], httpsPorts: [] }),
    ]);
    const codes = [taken, gone].map(({ status, body }) => (status === 200 ? 'ok' : (body as Body).code)).sort();
    t.true(['LISTEN_PORT_IN_USE,ok', 'SITE_PORT_UNAVAILABLE,ok'].includes(codes.join()), codes.join());
    const { http } = (await api.ok('GET', `/sites/${site.id}`)).ports;
    const { httpPorts } = await api.ok('GET', pathOf(clusterId));
    t.is(http.includes(8080), httpPorts.includes(8080));
  }
});

test('ports of a cluster stay as they are in a rollback, which is refused where a site needs one that is gone', async (t) => {
  const clusterId = await newCluster();
  const head = async () => (await api.ok('GET', `/clusters/${clusterId}`)).latestRevision as string;
  await set(clusterId, [8080, 8081]);
  const site = await newSite(clusterId, { ports: { http: [8080] } });
  const with8080 = await head();
  await api.ok('PATCH', `/sites/${site.id}`, { ports: { http: [8081] } });
  await set(clusterId, [8080, 8081, 8082]);
  await api.ok('POST', `/clusters/${clusterId}/rollback`, { revision: with8080 });
  t.deepEqual(await portsAtNodes(clusterId, site.id), [[8080], [443]]);
  t.deepEqual((await published(clusterId))!.httpPorts, [8080, 8081, 8082]);
  // The site's settings do not name it, and nodes serve the site there.
  const used = await api.refused(t, [409, 'LISTEN_PORT_IN_USE'], 'PUT', pathOf(clusterId), {
    httpPorts: [8081],
    httpsPorts: [],
  });
  t.deepEqual(used, { port: 8080, sites: [site.name] });
  await api.ok('PATCH', `/sites/${site.id}`, { name: 'Published again' });
  await set(clusterId, [8081]);
  const data = await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', `/clusters/${clusterId}/rollback`, {
    revision: with8080,
  });
  t.true(JSON.stringify(data).includes('http/8080'));
});

test('with a certificate a site has HTTPS on ports of its own, and keeps it and the port of its redirect while it does', async (t) => {
  const clusterId = await newCluster();
  await set(clusterId, [8080], [8443, 9443]);
  const site = await newSite(clusterId);
  const { chainPem, privateKeyPem } = await testCertificate([site.domains[0]]);
  const { id: certificateId } = await api.ok('POST', '/certificates/upload', {
    name: 'ports',
    chainPem,
    privateKeyPem,
  });
  const https = `/sites/${site.id}/https`;
  const withPort = { certificateId, forceHttps: true, redirectPort: 8443 };
  t.like(await api.refused(t, [400, 'HTTPS_REDIRECT_PORT_INVALID'], 'PUT', https, { settings: withPort }), {
    port: 8443,
  });
  await api.ok('PUT', https, { settings: { certificateId } });
  const { site: changed } = await api.ok('PATCH', `/sites/${site.id}`, { ports: { http: [], https: [9443, 8443] } });
  t.deepEqual(changed.ports, { http: [], https: [8443, 9443] });
  t.deepEqual(await portsAtNodes(clusterId, site.id), [[], [8443, 9443]]);
  await api.ok('PUT', https, { settings: withPort });
  const fewer = { ports: { https: [9443] } };
  const refused = await api.refused(t, [400, 'HTTPS_REDIRECT_PORT_INVALID'], 'PATCH', `/sites/${site.id}`, fewer);
  t.like(refused, { port: 8443 });
  const none = await api.refused(t, [400, 'SITE_HTTPS_PORT_NEEDS_CERTIFICATE'], 'PUT', https, { settings: {} });
  t.like(none, { port: 8443 });
  const used = { httpPorts: [8080], httpsPorts: [9443] };
  t.like(await api.refused(t, [409, 'LISTEN_PORT_IN_USE'], 'PUT', pathOf(clusterId), used), { port: 8443 });
  await api.ok('PUT', https, { settings: { certificateId } });
  await api.ok('PATCH', `/sites/${site.id}`, fewer);
  await api.ok('PUT', pathOf(clusterId), used);
});
