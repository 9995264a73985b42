// Bulk redirects of sites through /api/v1: what is taken and kept, what is published of a change, and what a rollback
// brings back.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { chunkOfSource } from '../../models/sites/bulk-redirect.ts';
import { BulkRedirectsSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

const KIND = 'bulk-redirects';
const INVALID: [number, string] = [400, 'BAD_REQUEST'];
const UNKNOWN_HOST: [number, string] = [400, 'BULK_REDIRECT_HOST_UNKNOWN'];

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

/** A site in a cluster of its own, with domains below example, and words for its redirects. */
async function newSite(...domains: string[]) {
  const name = `redirected-${made++}`;
  const clusterId = await api.cluster(name);
  const main = `${name}.example`;
  const site = await api.site(clusterId, main, { domains: [main, ...domains] });
  const path = `/sites/${site.id}/bulk-redirects`;
  return {
    id: site.id as string,
    main,
    clusterId,
    path,
    createdAt: site.createdAt as string,
    read: (): Promise<Body> => api.ok('GET', path),
    put: (redirects: Body[], more: Body = {}): Promise<Body> => api.ok('PUT', path, { redirects, ...more }),
    refused: (t: Parameters<Api['refused']>[0], why: [number, string], redirects: Body[], more: Body = {}) =>
      api.refused(t, why, 'PUT', path, { redirects, ...more }),
    async published(): Promise<Record<string, Body[]>> {
      const ids = await api.entries(clusterId, KIND);
      const bodies = await Promise.all(ids.map(async (id) => (await api.entry(clusterId, KIND, id))!));
      const messages = bodies.map((body) => fromBinary(BulkRedirectsSchema, body));
      return Object.fromEntries(
        messages.map(({ siteId, redirects }, index) => [
          ids[index],
          redirects.map(({ source, target, status, preserveQuery }) => [siteId, source, target, status, preserveQuery]),
        ]),
      );
    },
  };
}

const redirect = (source: string, target = '/new', more: Body = {}) => ({ source, target, ...more });
const complete = (source: string, target = '/new') => ({ source, target, statusCode: 301, preserveQuery: false });
const revisionsOf = async (clusterId: string): Promise<Body[]> =>
  (await api.ok('GET', `/clusters/${clusterId}/revisions`)).items;

test('a site has none, is given some, and others in their place', async (t) => {
  const site = await newSite();
  t.deepEqual(await site.read(), { siteId: site.id, redirects: [], updatedAt: site.createdAt, warnings: [] });
  const saved = await site.put([
    redirect('/b', 'https://other.example/x', { statusCode: 308, preserveQuery: true }),
    redirect('//a/./', '/new?x=1#y'),
    redirect('/%C3%A9%20', '/é'),
  ]);
  const [{ revision }] = await revisionsOf(site.clusterId);
  t.like(saved, { siteId: site.id, revision });
  t.deepEqual(saved.redirects, [
    complete('/a/', '/new?x=1#y'),
    { source: '/b', target: 'https://other.example/x', statusCode: 308, preserveQuery: true },
    complete('/é%20', '/é'),
  ]);
  const { revision: _, ...kept } = saved;
  t.deepEqual(await site.read(), kept);
  t.true(saved.updatedAt > site.createdAt);
  t.deepEqual((await site.put([redirect('/b')])).redirects, [complete('/b')]);
  t.deepEqual((await site.put([])).redirects, []);
  t.deepEqual(await site.published(), {});
});

test('each redirect is in the chunk of its source, as nodes find it', async (t) => {
  const site = await newSite();
  const host = `${site.main}/Ü%20`;
  await site.put([redirect(host, '/x', { statusCode: 307, preserveQuery: true }), redirect('/%C3%9C%3F')]);
  const found = [`${site.main}/Ü `, '/Ü?'];
  t.deepEqual(await site.published(), {
    [`${site.id}/${chunkOfSource(found[0]!)}`]: [[site.id, found[0], '/x', 307, true]],
    [`${site.id}/${chunkOfSource(found[1]!)}`]: [[site.id, found[1], '/new', 301, false]],
  });
  const rows = await api.sql('config_entry').where({ cluster_id: site.clusterId, kind: KIND });
  for (const row of rows) t.like(row, { features: ['rules-v2'], owner: `site:${site.id}` });
});

test('a save publishes and writes what differs, and nothing where nothing does', async (t) => {
  const site = await newSite();
  const many = Array.from({ length: 1000 }, (_, index) => redirect(`/old/${index}`, `/new/${index}`));
  await site.put(many);
  const chunks = new Set(many.map(({ source }) => chunkOfSource(source)));
  t.is((await api.entries(site.clusterId, KIND)).length, chunks.size);

  const versions = () =>
    api.sql('bulk_redirect').where({ site_id: site.id }).select('source', api.sql.raw('xmin::text'));
  const before = new Map((await versions()).map(({ source, xmin }) => [source, xmin]));
  const edited = many.map((one) => (one.source === '/old/7' ? { ...one, target: '/newer' } : one));
  const { revision, updatedAt } = await site.put(edited.toReversed());
  const moved = await api.sql('config_entry').where({ cluster_id: site.clusterId, from_revision: revision });
  t.deepEqual(
    moved.map(({ kind, resource_id }) => [kind, resource_id]),
    [[KIND, `${site.id}/${chunkOfSource('/old/7')}`]],
  );
  const written = (await versions()).filter(({ source, xmin }) => before.get(source) !== xmin);
  t.deepEqual(
    written.map(({ source }) => source),
    ['/old/7'],
  );

  const count = (await revisionsOf(site.clusterId)).length;
  t.like(await site.put(edited), { revision: null, updatedAt });
  t.is((await revisionsOf(site.clusterId)).length, count);
  await site.put([...edited.slice(2), redirect('/more')]);
  const audits = (await api.audit(site.id)).filter(({ action }) => action === 'site.bulk_redirects_update');
  t.deepEqual(
    audits.map(({ metadata: { published, ...counts } }) => counts),
    [
      { entries: 1000, added: 1000, changed: 0, removed: 0 },
      { entries: 1000, added: 0, changed: 1, removed: 0 },
      { entries: 999, added: 1, changed: 0, removed: 2 },
    ],
  );
  const [latest] = await revisionsOf(site.clusterId);
  t.like(latest, { reasonCode: 'rules_updated', subject: { type: 'site', id: site.id } });
});

test('what is no redirect is refused with its row', async (t) => {
  const site = await newSite();
  const good = redirect('/a');
  const wrong: [Body, string][] = [
    [redirect('/'), 'source'],
    [redirect('//'), 'source'],
    [redirect('a'), 'source'],
    [redirect('/a b'), 'source'],
    [redirect('/a?b'), 'source'],
    [redirect('/%00'), 'source'],
    [redirect('/%ff'), 'source'],
    [redirect(`/${'é'.repeat(256)}`), 'source'],
    [redirect(`${site.main.toUpperCase()}/a`), 'source'],
    [redirect('/b', ''), 'target'],
    [redirect('/b', 'new'), 'target'],
    [redirect('/b', '//other.example'), 'target'],
    [redirect('/b', '/new page'), 'target'],
    [redirect('/b', '/a\\b'), 'target'],
    [redirect('/b', 'ftp://other.example/'), 'target'],
    [redirect('/b', 'https://user@other.example/'), 'target'],
    [redirect('/b', `/${'a'.repeat(1024)}`), 'target'],
    [redirect('/b', `/${'é'.repeat(512)}`), 'target'],
    [redirect('/b', '/c', { statusCode: 303 }), 'statusCode'],
    [redirect('/b', '/c', { preserveQuery: 'yes' }), 'preserveQuery'],
    [redirect('/b', '/c', { more: 1 }), 'more'],
    [{ target: '/c' }, 'source'],
    [{ source: '/c' }, 'target'],
  ];
  for (const [row, field] of wrong) {
    const { issues } = await site.refused(t, INVALID, [good, row]);
    const at = (issues as Body[]).find(({ path }) => path.startsWith('/redirects/1'));
    const told = JSON.stringify(issues);
    t.true(at?.path === `/redirects/1/${field}` || told.includes(`"${field}"`), `${JSON.stringify(row)}: ${told}`);
  }
  const many = Array.from({ length: 5001 }, (_, index) => redirect(`/${index}x`));
  t.like((await site.refused(t, INVALID, many)).issues[0], { path: '/redirects', keyword: 'maxItems' });
  t.deepEqual((await site.read()).redirects, []);
});

test('the refusal of a host in upper case says so and gives the host to use', async (t) => {
  const site = await newSite();
  const { issues } = await site.refused(t, INVALID, [redirect('/a'), redirect('BUGS.localhost/x')]);
  const message = 'The host BUGS.localhost must be in lower case. Use bugs.localhost.';
  const params = { host: 'BUGS.localhost', use: 'bugs.localhost', message };
  t.deepEqual(issues, [{ path: '/redirects/1/source', keyword: 'hostCase', params }]);
});

test('redirects that lead back to themselves, and sources with #, are saved with a warning', async (t) => {
  const site = await newSite();
  const saved = await site.put([redirect('/loop', '/loop'), redirect('/a#b'), redirect('/fine')]);
  t.deepEqual(
    saved.warnings.map(({ source, code, message }: Body) => [source, code, message]),
    [
      [
        '/a%23b',
        'fragment',
        'Clients do not send # or the text after it. The source matches only requests for /a%23b.',
      ],
      ['/loop', 'loops', 'The redirect leads back to its own source: /loop → /loop.'],
    ],
  );
  const { warnings } = await site.read();
  t.deepEqual(
    warnings.map(({ source, code }: Body) => [source, code]),
    [['/loop', 'loops']],
  );
});

test('a source may be there once, in whatever spelling', async (t) => {
  const site = await newSite();
  const same: [string, string][] = [
    ['/a', '/a'],
    ['/a/b', '/a//./b'],
    ['/a/', '/%61/'],
    [`${site.main}/é`, `${site.main}./%C3%A9`],
  ];
  for (const [first, second] of same) {
    const { issues } = await site.refused(t, INVALID, [redirect('/0'), redirect(first), redirect(second, '/other')]);
    t.like(issues, [{ path: '/redirects/2/source', keyword: 'sameSource' }]);
    t.like(issues[0].params, { row: 2, first: '/redirects/1/source' });
  }
  const apart = ['/a', '/a/', '/A', '/a%2520', '/a%20', `${site.main}/a`];
  t.is((await site.put(apart.map((source) => redirect(source)))).redirects.length, apart.length);
});

test('hosts are names of the site or one label below a wildcard', async (t) => {
  const site = await newSite('*.wild.example', '.suffix.example', '~^pattern[0-9]+[.]example$', 'bücher.example');
  const hosts = [site.main, 'a.wild.example', 'bücher.example', 'xn--bcher-kva.example'];
  await site.put(hosts.map((host, index) => redirect(`${host}/${index}`)));
  const unknown = [
    'other.example',
    'wild.example',
    '*.wild.example',
    'a.b.wild.example',
    '!.wild.example',
    'a.suffix.example',
    'pattern1.example',
    `${site.main}:80`,
    '192.0.2.1',
  ];
  for (const host of unknown) {
    t.deepEqual(await site.refused(t, UNKNOWN_HOST, [redirect(`${host}/a`)]), { hosts: [host] }, host);
  }
  const all = unknown.flatMap((host) => [redirect(`${host}/a`), redirect(`${host}/b`)]);
  t.deepEqual(await site.refused(t, UNKNOWN_HOST, all), { hosts: unknown.slice(0, 5) });
});

test('redirects of a domain that is taken away stay, and the next save has to do without them', async (t) => {
  const site = await newSite('second.gone.example');
  const redirects = [redirect('second.gone.example/a'), redirect('/b')];
  await site.put(redirects);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main] });
  t.is((await site.read()).redirects.length, 2);
  t.is((await api.entries(site.clusterId, KIND)).length, 2);
  t.deepEqual(await site.refused(t, UNKNOWN_HOST, redirects), { hosts: ['second.gone.example'] });
  t.is((await site.put(redirects.slice(1))).redirects.length, 1);
});

test('a save that expects another version is refused', async (t) => {
  const site = await newSite();
  const { updatedAt } = await site.put([redirect('/a')], { expectedUpdatedAt: site.createdAt });
  const stale = { expectedUpdatedAt: site.createdAt };
  t.deepEqual(await site.refused(t, [409, 'UPDATED_AT_MISMATCH'], [redirect('/b')], stale), { updatedAt });
  t.deepEqual((await site.read()).redirects, [complete('/a')]);
});

test('only operators come to them, and only to those of a site', async (t) => {
  const missing: [number, string] = [404, 'SITE_NOT_FOUND'];
  await api.refused(t, missing, 'GET', '/sites/none/bulk-redirects');
  await api.refused(t, missing, 'PUT', '/sites/none/bulk-redirects', { redirects: [] });
  const site = await newSite();
  const scopes = ['sites:read', 'sites:write'];
  const account = await api.ok('POST', '/service-accounts', { name: `redirects ${made++}`, scopes });
  const { secret } = await api.ok('POST', `/service-accounts/${account.id}/keys`, {});
  for (const [method, body] of [['GET'], ['PUT', { redirects: [] }]] as [string, Body?][]) {
    const answer = await api.call(method, site.path, body, { 'x-api-key': secret });
    t.is(`${answer.status} ${answer.body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN');
  }
});

test('they end with their site', async (t) => {
  const site = await newSite();
  await site.put([redirect('/a'), redirect('/b'), redirect('/c')]);
  await api.ok('DELETE', `/sites/${site.id}`);
  t.deepEqual(await api.entries(site.clusterId, KIND), []);
  t.deepEqual(await api.sql('bulk_redirect').where({ site_id: site.id }), []);
});

test('a revision tells the redirects it changed, of all chunks together', async (t) => {
  const site = await newSite();
  await site.put([redirect('/a'), redirect('/b', '/x'), redirect('/c')]);
  const { revision } = await site.put([redirect('/a', '/newer'), redirect('/b', '/x'), redirect('/d%20e')]);
  const { items, total } = await api.ok('GET', `/clusters/${site.clusterId}/revisions/${revision}/diff`);
  t.is(total, 1);
  t.like(items[0], { kind: KIND, id: site.id, change: 'changed', settingsKnown: true, subject: { type: 'site' } });
  t.deepEqual(items[0].fields, [
    { path: '/a.target', from: '/new', to: '/newer' },
    { path: '/c.preserveQuery', from: false },
    { path: '/c.statusCode', from: 301 },
    { path: '/c.target', from: '/new' },
    { path: '/d%20e.preserveQuery', to: false },
    { path: '/d%20e.statusCode', to: 301 },
    { path: '/d%20e.target', to: '/new' },
  ]);
});

test('a rollback puts redirects back at the nodes, and in the settings where that is asked for', async (t) => {
  const site = await newSite();
  const first = Array.from({ length: 600 }, (_, index) => redirect(`/first/${index}`));
  const { revision } = await site.put(first);
  const published = await site.published();
  t.true(Object.keys(published).length > 200, 'more chunks than the settings that one rollback may put back');
  const saved = await site.put([redirect('/second'), ...first.slice(0, 300)]);
  const roll = `/clusters/${site.clusterId}/rollback`;

  await api.ok('POST', roll, { revision });
  t.deepEqual(await site.published(), published);
  t.is((await site.read()).redirects.length, 301);

  const { settings } = await api.ok('GET', `${roll}-preview?revision=${revision}&restoreSettings=true`);
  t.is(settings.total, 1);
  t.like(settings.items[0], { kind: KIND, id: site.id });
  t.is((await api.ok('POST', roll, { revision, restoreSettings: true })).restoredSettings, 1);
  const restored = await site.read();
  t.is(restored.redirects.length, 600);
  t.true(restored.updatedAt > saved.updatedAt);
  t.deepEqual(await site.published(), published);
  // A further save starts from what the rollback left.
  t.like(await site.put(first), { revision: null });
});
