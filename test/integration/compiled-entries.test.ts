// Whatever administrators do, the published entries are what compiling everything anew gives.
import test from 'ava';
import fc from 'fast-check';
import { ENTRY_KINDS } from '../../models/config/entry-kinds.ts';
import { bodyHash } from '../../proto/entry-hash.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;
let clusters: string[];
/** Chains for every domain that sites get here, and the certificates: an upload, and one that an authority renews. */
let chains: { chainPem: string; privateKeyPem: string }[];
let certificates: string[];

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusters = [await api.cluster('one'), await api.cluster('two')];
  const names = Array.from({ length: 6 }, (_, n) => [`d${n}.example`, `*.d${n}.example`]).flat();
  chains = await Promise.all([names, names, names.slice(0, 6)].map((some) => testCertificate(some)));
  certificates = [];
  for (const { chainPem, privateKeyPem } of chains) {
    const given = { name: 'Certificate', chainPem, privateKeyPem };
    certificates.push((await api.ok('POST', '/certificates/upload', given)).id);
  }
  await api
    .sql('certificate')
    .where({ id: certificates[2] })
    .update({
      source: 'acme',
      requested_names: names.slice(0, 6),
      auto_renew: true,
      request: JSON.stringify({ challenge: 'dns01' }),
    });
});
test.after.always('stop', () => running?.stop());

/** Compiles every kind of the cluster anew; answers `kind/id hash features refs` of each entry. */
async function compiled(clusterId: string): Promise<string[]> {
  const lines: string[] = [];
  for (const { kind, list, compile } of ENTRY_KINDS) {
    for await (const ids of list(api.sql, clusterId)) {
      for (const [id, { body, features, refs }] of await compile(api.sql, clusterId, ids)) {
        lines.push(`${kind}/${id} ${bodyHash(body).toString('hex')} ${features} ${refs}`);
      }
    }
  }
  return lines.sort();
}

async function live(clusterId: string): Promise<string[]> {
  const rows = await api.sql('config_entry').where({ cluster_id: clusterId, to_revision: null });
  return rows
    .map(({ kind, resource_id: id, blob_hash: hash, features, refs }) =>
      [`${kind}/${id}`, hash.toString('hex'), features, refs].join(' '),
    )
    .sort();
}

const small = fc.nat(5);
const cidr = fc.constantFrom('10.0.0.0/8', '10.1.2.3', '192.168.0.0/16', '2001:db8::/32', '203.0.113.7', '127.0.0.1');
const cidrs = fc.array(cidr, { maxLength: 4 });
const domain = fc.tuple(fc.constantFrom('', '*.', '.', '~'), small).map(([marker, n]) => `${marker}d${n}.example`);
const origin = fc.record({
  address: fc.constantFrom('a.example', 'b.example', '8.8.8.8', '10.1.2.3'),
  weight: fc.integer({ min: 1, max: 3 }),
});
const kind = fc.constantFrom('allow', 'block', 'collection');
const action = fc.constantFrom('page', 'close', 'site');

const expressions = fc.array(
  fc.constantFrom('true', 'http.host eq "a"', 'ip.src in $l1', 'ip.src in $l2', 'http.referer eq "a"'),
  { maxLength: 3 },
);
const rule = (expression: string, index: number) => ({
  name: `Rule ${index}`,
  phase: 'waf-custom',
  expression,
  enabled: index !== 1,
  action: { kind: 'block' },
});

interface World {
  sites: string[];
  lists: string[];
}
/** One thing an administrator does; refusals are part of life. */
type Step = (world: World) => Promise<Body>;

const pick = (ids: readonly string[], n: number) => ids[n % Math.max(ids.length, 1)] ?? 'nobody';
const steps: fc.Arbitrary<Step>[] = [
  fc
    .tuple(small, fc.array(domain, { minLength: 1, maxLength: 3 }), fc.array(origin, { minLength: 1, maxLength: 2 }))
    .map(
      ([n, domains, origins]): Step =>
        async ({ sites }) => {
          const { body } = await api.call('POST', '/sites', { clusterId: pick(clusters, n), domains, origins });
          if (body.site) sites.push(body.site.id);
          return body;
        },
    ),
  fc
    .tuple(
      small,
      fc.record(
        {
          name: fc.constantFrom('x', 'y'),
          domains: fc.array(domain, { minLength: 1, maxLength: 2 }),
          origins: fc.array(origin, { minLength: 1, maxLength: 2 }),
          originSettings: fc.record({ tries: fc.integer({ min: 1, max: 5 }) }),
        },
        { requiredKeys: [] },
      ),
    )
    .map(
      ([n, body]): Step =>
        ({ sites }) =>
          api.call('PATCH', `/sites/${pick(sites, n)}`, body),
    ),
  fc.tuple(small, fc.boolean()).map(
    ([n, enabled]): Step =>
      ({ sites }) =>
        api.call('PUT', `/sites/${pick(sites, n)}/enabled`, { enabled }),
  ),
  small.map(
    (n): Step =>
      ({ sites }) =>
        api.call('DELETE', `/sites/${pick(sites, n)}`),
  ),
  fc.tuple(small, kind, cidrs).map(
    ([n, listKind, entries]): Step =>
      async ({ lists }) => {
        const { body } = await api.call('POST', '/ip-lists', { name: `l${n}`, kind: listKind, entries });
        if (body.id) lists.push(body.id);
        return body;
      },
  ),
  fc.tuple(small, kind, cidrs).map(
    ([n, listKind, entries]): Step =>
      ({ lists }) =>
        api.call('PUT', `/ip-lists/${pick(lists, n)}`, { kind: listKind, entries }),
  ),
  small.map(
    (n): Step =>
      ({ lists }) =>
        api.call('DELETE', `/ip-lists/${pick(lists, n)}`),
  ),
  cidrs.map(
    (list): Step =>
      () =>
        api.call('PUT', '/settings/origin-allow-list', { cidrs: list }),
  ),
  fc
    .tuple(
      small,
      fc.constantFrom<Body>(
        { mode: 'direct' },
        { mode: 'direct', dropForwardedFor: true },
        { mode: 'proxy_protocol' },
        { mode: 'header', header: 'x-real-ip', trustedCidrs: ['10.0.0.1'] },
      ),
    )
    .map(
      ([n, settings]): Step =>
        () =>
          api.call('PUT', `/clusters/${pick(clusters, n)}/client-ip`, { settings }),
    ),
  fc.tuple(small, small, action, action, fc.boolean()).map(
    ([n, site, unknownHost, ipAccess, enabled]): Step =>
      ({ sites }) =>
        api.call('PUT', `/clusters/${pick(clusters, n)}/unknown-hosts`, {
          unknownHost,
          ipAccess,
          defaultSiteId: sites.length > 0 ? pick(sites, site) : null,
          scan: { enabled },
        }),
  ),
  fc.tuple(small, fc.boolean(), fc.boolean(), fc.boolean()).map(
    ([n, underAttack, enabled, followTemplate]): Step =>
      ({ sites }) =>
        api.call('PATCH', `/sites/${pick(sites, n)}/protection`, { underAttack, cc: { enabled, followTemplate } }),
  ),
  fc.boolean().map(
    (underAttack): Step =>
      () =>
        api.call('PUT', '/settings/protection', { underAttack }),
  ),
  fc.tuple(small, expressions).map(
    ([n, conditions]): Step =>
      ({ sites }) =>
        api.call('PUT', `/sites/${pick(sites, n)}/rules`, { rules: conditions.map(rule) }),
  ),
  expressions.map(
    (conditions): Step =>
      () =>
        api.call('PUT', '/platform-rules', { rules: conditions.map(rule) }),
  ),
  fc.tuple(small, fc.uniqueArray(small), small).map(
    ([n, sources, target]): Step =>
      ({ sites }) =>
        api.call('PUT', `/sites/${pick(sites, n)}/bulk-redirects`, {
          redirects: sources.map((source) => ({ source: `/old/${source}`, target: `/new/${target}` })),
        }),
  ),
  fc.tuple(small, fc.nat(3), fc.boolean(), fc.boolean()).map(
    ([n, one, http3, zstd]): Step =>
      ({ sites }) =>
        api.call('PUT', `/sites/${pick(sites, n)}/https`, {
          settings: { certificateId: certificates[one] ?? null, http3, zstd },
        }),
  ),
  fc.tuple(fc.nat(1), fc.nat(1)).map(
    ([one, chain]): Step =>
      () => {
        const { chainPem, privateKeyPem } = chains[chain]!;
        return api.call('PUT', `/certificates/${certificates[one]}`, { chainPem, privateKeyPem });
      },
  ),
  small.map(
    (siteQps): Step =>
      () =>
        api.call('PUT', '/settings/cc-template', { siteQps }),
  ),
];

test('published entries equal compiled ones after any history, also with steps at the same time', async (t) => {
  const world: World = { sites: [], lists: [] };
  let published = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 8 }),
      async (history) => {
        for (const together of history) await Promise.all(together.map((step) => step(world)));
        // What a platform change could not publish in time is left to a job.
        await eventually(async () => (await api.sql('publish_request').select('id')).length === 0);
        for (const clusterId of clusters) {
          const expected = await compiled(clusterId);
          published += expected.length;
          t.deepEqual(await live(clusterId), expected);
          const head = await api.sql('cluster_head').where({ cluster_id: clusterId }).first();
          t.is(Number(head.entry_count), expected.length);
        }
      },
    ),
    { numRuns: 25, endOnFailure: true },
  );
  t.true(published > 50);
});
