// Error pages and maintenance through /api/v1: what is taken and kept, and what nodes get of it.
import { fromBinary, toJson } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_MAINTENANCE } from '../../contract/resources/maintenance.ts';
import { SiteMaintenanceSchema, SitePagesSchema } from '../../proto/gen/svc/config/v1/pages_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('paged');
});
test.after.always(() => running?.stop());

const newSite = async (): Promise<string> => (await api.site(clusterId, `paged-${made++}.example`)).id;
async function features(kind: string, id: string): Promise<string[] | undefined> {
  const key = { cluster_id: clusterId, kind, resource_id: id, to_revision: null };
  return (await api.sql('config_entry').where(key).first())?.features;
}

test('error pages of a site are replaced as a whole, and sorted by status', async (t) => {
  const id = await newSite();
  const path = `/sites/${id}/error-pages`;
  t.deepEqual(await api.ok('GET', path), { siteId: id, pages: [], interceptOriginErrors: false, updatedAt: null });
  const pages = [
    { status: '4xx', redirectUrl: '/sorry?{{status}}' },
    { status: 404, template: '{{path}}', responseStatus: 200 },
  ];
  const saved: Body = await api.ok('PUT', path, { pages, interceptOriginErrors: true, expectedUpdatedAt: null });
  t.deepEqual(saved.pages, [pages[1], { ...pages[0], responseStatus: 0 }]);
  t.deepEqual(await features('site-pages', id), ['error-pages-v1', 'rules-v3']);
  const body = (await api.entry(clusterId, 'site-pages', id))!;
  t.deepEqual(toJson(SitePagesSchema, fromBinary(SitePagesSchema, body)), {
    pages: [
      { status: 404, template: '{{path}}', responseStatus: 200 },
      { status: 4, redirectUrl: '/sorry?{{status}}' },
    ],
    interceptOriginErrors: true,
  });
  t.like(await api.ok('PUT', path, { pages: [] }), { pages: [], interceptOriginErrors: false });
  t.falsy(await api.entry(clusterId, 'site-pages', id));
});

test('pages that cannot be are refused with their status or field', async (t) => {
  const path = `/sites/${await newSite()}/error-pages`;
  const large = await api.call('PUT', path, { pages: [{ status: '5xx', template: 'é'.repeat(32_769) }] });
  const tooLarge = { code: 'ERROR_PAGE_TOO_LARGE', data: { status: '5xx', limit: 65_536, path: '/pages/0/template' } };
  t.like(large, { status: 400, body: tooLarge });
  await api.ok('PUT', path, { pages: [{ status: '5xx', template: 'é'.repeat(32_768) }] });
  for (const pages of [
    [{ status: 402, template: 'x' }],
    [{ status: 404, template: '' }],
    [{ status: 404 }],
    [{ status: 404, template: 'x', redirectUrl: '/' }],
    [{ status: 404, redirectUrl: '//b.example' }],
    [{ status: 404, redirectUrl: '/', responseStatus: 200 }],
    [{ status: 404, template: 'x', responseStatus: 100 }],
    [{ status: 404, template: 'x', responseStatus: 600 }],
    [1, 2].map(() => ({ status: 404, template: 'x' })),
  ]) {
    t.is((await api.call('PUT', path, { pages })).status, 400, JSON.stringify(pages));
  }
  const platform = await api.call('PUT', '/settings/error-pages', { siteDisabled: 'x'.repeat(65_537) });
  t.like(platform, { status: 400, body: { code: 'ERROR_PAGE_TOO_LARGE', data: { status: 503, limit: 65_536 } } });
});

test('maintenance keeps its settings while it is off, and networks in one form', async (t) => {
  const id = await newSite();
  const path = `/sites/${id}/maintenance`;
  t.deepEqual(await api.ok('GET', path), { siteId: id, ...DEFAULT_MAINTENANCE, updatedAt: null });
  const settings = {
    enabled: true,
    template: '<h1>Back soon</h1>',
    retryAfterSeconds: 600,
    allowedCidrs: ['::ffff:198.51.100.7/120', '2001:DB8::1'],
    allowedPathPrefixes: ['/status', '/ü'],
  };
  const { revision, updatedAt, ...saved }: Body = await api.ok('PUT', path, settings);
  const allowedCidrs = ['198.51.100.0/24', '2001:db8::1/128'];
  t.deepEqual(saved, { siteId: id, ...settings, allowedCidrs });
  t.truthy(revision);
  const body = (await api.entry(clusterId, 'site-maintenance', id))!;
  const { enabled: _, ...sent } = { ...settings, allowedCidrs };
  t.deepEqual(toJson(SiteMaintenanceSchema, fromBinary(SiteMaintenanceSchema, body)), sent);
  t.is((await api.call('PUT', path, { ...settings, expectedUpdatedAt: null })).body.data.updatedAt, updatedAt);
  await api.ok('PUT', path, { ...settings, enabled: false });
  t.falsy(await api.entry(clusterId, 'site-maintenance', id));
  t.is((await api.ok('GET', path)).template, settings.template);
  for (const wrong of [
    { retryAfterSeconds: 86_401 },
    { allowedCidrs: ['::ffff:0:0/95'] },
    { allowedPathPrefixes: ['status'] },
    { allowedPathPrefixes: ['/a?b'] },
    { allowedPathPrefixes: [`/${'é'.repeat(512)}`] },
    { allowedPathPrefixes: Array.from({ length: 33 }, (_, n) => `/${n}`) },
  ]) {
    t.is((await api.call('PUT', path, { enabled: true, ...wrong })).status, 400, JSON.stringify(wrong));
  }
});
