// What a request for a site's certificate would ask for, and what stands in its way.
import test from 'ava';
import { checkHttps } from '../../services/certificates/acme/https-check.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const NODE = '198.51.100.7';
const absent = () => Promise.reject(Object.assign(new Error(), { code: 'ENODATA' }));

/** Answers addresses and CAA records as the tables have them. */
function resolver(addresses: Record<string, string[]>, caa: Record<string, Body[]> = {}) {
  return {
    resolve4: ((name: string) => (addresses[name] ? Promise.resolve(addresses[name]) : absent())) as never,
    resolve6: absent as never,
    resolveCaa: (name: string) =>
      caa[name] ? Promise.resolve(caa[name].map((record) => ({ type: 'CAA', ...record })) as never) : absent(),
  };
}

const check = (id: string, with_: ReturnType<typeof resolver>) => checkHttps(running.running.runtime, { id }, with_);

test('all that stands in the way is told at once', async (t) => {
  const clusterId = await api.cluster('blocked');
  await api.node(clusterId, 'old', { features: ['bans-v1'], addresses: [NODE] });
  const domains = ['a.blocked.org', 'b.blocked.org', 'c.blocked.org', '~^x[0-9]+[.]blocked[.]org$'];
  const site = await api.site(clusterId, domains[0]!, { domains });
  const found = await check(
    site.id,
    resolver(
      { 'a.blocked.org': [NODE], 'b.blocked.org': [NODE, '192.0.2.1'] },
      {
        'blocked.org': [{ critical: 0, issue: 'other.example' }],
        'a.blocked.org': [{ critical: 0, issue: 'letsencrypt.org; x=1' }],
      },
    ),
  );
  t.deepEqual(found.blockers, [
    { code: 'nodes_lack_http01', nodes: ['old'] },
    { code: 'dns_not_pointing', name: 'b.blocked.org', pointing: 'elsewhere' },
    { code: 'dns_not_pointing', name: 'c.blocked.org', pointing: 'unresolved' },
    { code: 'caa_forbidden', name: 'b.blocked.org' },
    { code: 'caa_forbidden', name: 'c.blocked.org' },
  ]);
  t.deepEqual(found.request.names, domains.slice(0, 3));
});

test('CAA records may want another account or another way, or something that no authority knows', async (t) => {
  const clusterId = await api.cluster('narrow');
  await api.node(clusterId, 'able', { features: ['http01-v1'], addresses: [NODE] });
  const directory_url = 'https://acme-v02.api.letsencrypt.org/directory';
  const ours = 'https://acme-v02.api.letsencrypt.org/acme/acct/1';
  await api
    .sql('acme_account')
    .insert({ id: 'ours', directory_url, email: 'a@b.org', eab_kid: '', private_key: '', url: ours });
  const issue = (parameters: string) => [{ critical: 0, issue: `letsencrypt.org${parameters}` }];
  const cases: [boolean, Body[]][] = [
    [true, issue('; validationmethods=dns-01, http-01')],
    [false, issue('; validationmethods=dns-01')],
    [true, [...issue('; validationmethods=dns-01'), ...issue(' ;ValidationMethods=http-01')]],
    [true, issue(`; accounturi=${ours}`)],
    [false, issue('; accounturi=https://acme-v02.api.letsencrypt.org/acme/acct/2')],
    [false, [{ critical: 128, tbs: 'x' }, ...issue('')]],
    [true, [{ critical: 0, tbs: 'x' }, ...issue('')]],
    [false, [{ critical: 128, Issue: 'other.example' }]],
    [true, [{ critical: 128, iodef: 'mailto:a@b.org' }]],
    [false, [{ critical: 0, issue: ';' }]],
  ];
  const domains = cases.map((_, index) => `n${index}.narrow.org`);
  const site = await api.site(clusterId, domains[0]!, { domains });
  const addresses = Object.fromEntries(domains.map((name) => [name, [NODE]]));
  const caa = Object.fromEntries(cases.map(([, records], index) => [domains[index]!, records]));
  const { blockers } = await check(site.id, resolver(addresses, caa));
  const forbidden = domains.filter((_, index) => !cases[index]![0]);
  t.deepEqual(
    blockers,
    forbidden.map((name) => ({ code: 'caa_forbidden', name })),
  );
});

test('an own authority that cannot be asked is told', async (t) => {
  const clusterId = await api.cluster('asked');
  await api.node(clusterId, 'able', { features: ['http01-v1'], addresses: [NODE] });
  const site = await api.site(clusterId, 'asked.org');
  const found = async () =>
    (await checkHttps(running.running.runtime, { id: site.id, ca: 'custom' }, resolver({ 'asked.org': [NODE] })))
      .blockers;
  t.deepEqual(await found(), [{ code: 'directory_failed', reason: 'missing' }]);
  await api
    .sql('acme_directory')
    .insert({ id: 1, url: 'https://127.0.0.1:1/', ca_pem: '', eab_kid: '', updated_at: new Date() });
  t.deepEqual(await found(), [{ code: 'directory_failed', reason: 'unreachable' }]);
});

test('nothing stands in the way of a site whose names lead to nodes that can answer', async (t) => {
  const clusterId = await api.cluster('free');
  await api.node(clusterId, 'able', { features: ['http01-v1'], addresses: [NODE] });
  const site = await api.site(clusterId, 'free.org');
  const found = await check(site.id, resolver({ 'free.org': [NODE] }));
  t.deepEqual(found.blockers, []);
  t.like(found.request, { names: ['free.org'], challenge: 'http01', dnsCredentialId: null });
});

test('wildcards want a credential for DNS, patterns have no names, and a cluster may be away', async (t) => {
  const clusterId = await api.cluster('away');
  const wild = await api.site(clusterId, '*.wild.org');
  t.deepEqual((await check(wild.id, resolver({}))).blockers, [
    { code: 'dns_credential_missing', names: ['*.wild.org'] },
  ]);
  const pattern = await api.site(clusterId, '~^y[0-9]+[.]wild[.]org$');
  t.deepEqual((await check(pattern.id, resolver({}))).blockers, [{ code: 'no_certificate_names' }]);
  const plain = await api.site(clusterId, 'plain.org');
  t.deepEqual((await check(plain.id, resolver({}))).blockers[0], { code: 'nodes_offline', cluster: 'away' });
});

test('certificates that cover every domain are offered', async (t) => {
  const site = await api.site(await api.cluster('kept'), 'a.kept.org', { domains: ['a.kept.org', 'b.kept.org'] });
  const upload = async (name: string, names: string[]) => {
    const { chainPem, privateKeyPem } = await testCertificate(names);
    return (await api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem })).id;
  };
  const id = await upload('both', ['*.kept.org']);
  await upload('one', ['a.kept.org']);
  t.deepEqual((await check(site.id, resolver({}))).certificates, [{ id, name: 'both' }]);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/none/https/check');
});

test('servers that do not answer delay the check by a bounded time, and their names are named', async (t) => {
  const clusterId = await api.cluster('silent');
  await api.node(clusterId, 'able', { features: ['http01-v1'], addresses: [NODE] });
  const domains = Array.from({ length: 40 }, (_, index) => `n${index}.a.b.c.silent.org`);
  const site = await api.site(clusterId, domains[0]!, { domains });
  const answers = resolver({ [domains[0]!]: ['192.0.2.1'] }, { [domains[0]!]: [{ critical: 0, issue: ';' }] });
  const silent = new Promise<never>(() => undefined);
  const mute = {
    resolve4: ((name: string) => (name === domains[0] ? Promise.resolve(['192.0.2.1']) : silent)) as never,
    resolve6: ((name: string) => (name === domains[0] ? absent() : silent)) as never,
    resolveCaa: (name: string) => (name.startsWith('n') && name !== domains[0] ? silent : answers.resolveCaa(name)),
  };
  const found = await checkHttps(running.running.runtime, { id: site.id }, mute, 500);
  t.deepEqual(found.blockers, [
    { code: 'dns_not_pointing', name: domains[0], pointing: 'elsewhere' },
    { code: 'caa_forbidden', name: domains[0] },
  ]);
  t.deepEqual(found.unchecked, domains.slice(1));
  t.deepEqual(found.request.names, domains);
});

test('CAA records of all labels are asked side by side, those that names share once', async (t) => {
  const clusterId = await api.cluster('shared');
  await api.node(clusterId, 'able', { features: ['http01-v1'], addresses: [NODE] });
  const domains = ['x.a.shared.org', 'y.a.shared.org'];
  const site = await api.site(clusterId, domains[0]!, { domains });
  const asked: string[] = [];
  const { resolve4, resolve6 } = resolver({});
  const open = Promise.withResolvers<void>();
  const wanted = ['x.a.shared.org', 'y.a.shared.org', 'a.shared.org', 'shared.org', 'org'].toSorted();
  // Each answer waits until all were asked.
  const resolveCaa = async (name: string): Promise<never> => {
    asked.push(name);
    if (asked.length === wanted.length) open.resolve();
    await open.promise;
    return absent();
  };
  const found = await checkHttps(running.running.runtime, { id: site.id }, { resolve4, resolve6, resolveCaa });
  t.deepEqual(asked.toSorted(), wanted);
  t.deepEqual(found.unchecked, []);
});
