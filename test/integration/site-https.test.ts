// HTTPS and compression of sites through /api/v1: what is taken and kept, what nodes get of it, and what a rollback brings
// back.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_COMPRESSION, DEFAULT_HTTPS } from '../../contract/resources/site-https.ts';
import { endingCertificates } from '../../models/certificates/certificate.ts';
import { SiteCompressionSchema, SiteHttpsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { type TestCertificate, testAuthority, testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

async function upload(certificate: TestCertificate, name = `certificate-${made++}`): Promise<Body> {
  const { chainPem, privateKeyPem } = certificate;
  return api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem });
}

/** A site in a cluster of its own. */
async function newSite(...more: string[]) {
  const name = `secure-${made++}`;
  const clusterId = await api.cluster(name);
  const main = `${name}.example`;
  const domains = [main, ...more.map((prefix) => `${prefix}${main}`)];
  const site = await api.site(clusterId, main, { domains });
  const path = `/sites/${site.id}/https`;
  return {
    id: site.id as string,
    main,
    clusterId,
    path,
    createdAt: site.createdAt as string,
    read: (): Promise<Body> => api.ok('GET', path),
    put: (settings: Body, rest: Body = {}): Promise<Body> => api.ok('PUT', path, { settings, ...rest }),
    refused: (t: Parameters<Api['refused']>[0], status: number, code: string, settings: Body, rest: Body = {}) =>
      api.refused(t, [status, code], 'PUT', path, { settings, ...rest }),
    async https() {
      const body = await api.entry(clusterId, 'site-https', site.id);
      return body ? fromBinary(SiteHttpsSchema, body) : null;
    },
    async compression() {
      const body = await api.entry(clusterId, 'site-compression', site.id);
      return body ? fromBinary(SiteCompressionSchema, body) : null;
    },
  };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('a site has HTTP only, gets a certificate, and loses it again', async (t) => {
  const site = await newSite();
  const first = await site.read();
  t.deepEqual(first.settings, { ...DEFAULT_HTTPS, ...DEFAULT_COMPRESSION });
  t.is(first.updatedAt, site.createdAt);
  t.is(await site.https(), null);
  t.is(await site.compression(), null);
  const given = await testCertificate([site.main]);
  const { id, name } = await upload(given);
  const saved = await site.put({ certificateId: id, http3: true });
  t.regex(saved.revision, /^\d+$/);
  t.deepEqual(
    saved.certificates.map((one: Body) => [one.id, one.names, one.source, one.status]),
    [[id, [site.main], 'upload', 'ready']],
  );
  const entry = (await site.https())!;
  t.deepEqual(
    entry.certificates.map((one) => [one.certificateId, hex(one.fingerprint), one.name]),
    [[id, given.fingerprint, name]],
  );
  t.true(entry.http3);
  t.is((await site.put({ certificateId: id, http3: true })).revision, null);
  t.like(await site.put({}), { settings: { certificateId: null, http3: false } });
  t.is(await site.https(), null);
});

test('whatever compression a site asks for, nodes that know nothing of it hold the entry', async (t) => {
  const site = await newSite();
  const features = async (settings: Body): Promise<string[] | undefined> => {
    await site.put(settings);
    const key = { cluster_id: site.clusterId, kind: 'site-compression', resource_id: site.id, to_revision: null };
    return (await api.sql('config_entry').where(key).first())?.features;
  };
  t.deepEqual(await features({ gzipLevel: 9 }), ['compression-v1']);
  t.deepEqual(await features({ gzip: false }), ['compression-v1']);
  t.deepEqual(await features({ brotli: true, zstd: true }), ['brotli-v1', 'compression-v1', 'zstd-v1']);
  t.is(await features({}), undefined);
});

test('what is left out goes back to its default, which is that of the specification', async (t) => {
  const site = await newSite();
  const { id } = await upload(await testCertificate([site.main]));
  const all = {
    certificateId: id,
    forceHttps: true,
    redirectStatus: 308,
    redirectExcludedDomains: [site.main.toUpperCase()],
    hstsMaxAge: 31_536_000,
    hstsIncludeSubdomains: true,
    hstsPreload: true,
    minimumVersion: '1.3',
    cipherProfile: 'compatible',
    http2: false,
    ocspStapling: true,
    gzip: false,
    brotli: true,
    brotliLevel: 11,
    brotliMinLength: 1,
    brotliTypes: ['Text/HTML', 'text/html', 'application/wasm'],
    zstd: true,
    zstdLevel: 19,
    compressMaxLength: 1_000_000,
  };
  const { settings, updatedAt } = await site.put(all);
  t.like(settings, { ...all, redirectExcludedDomains: [site.main], brotliTypes: ['text/html', 'application/wasm'] });
  const https = (await site.https())!;
  t.like(https, { hstsMaxAge: 31_536_000, hstsPreload: true, http2: false, ocspStapling: true });
  t.like(https.forceHttps, { status: 308, port: 443 });
  t.deepEqual(
    https.forceHttps!.excluded.map(({ name }) => name),
    [site.main],
  );
  const compression = (await site.compression())!;
  t.like(compression.brotli, { enabled: true, level: 11, minLength: 1, types: ['text/html', 'application/wasm'] });
  t.is(compression.maxLength, 1_000_000n);
  t.is(compression.gzip!.enabled, false);
  await site.refused(t, 409, 'UPDATED_AT_MISMATCH', {}, { expectedUpdatedAt: site.createdAt });
  const plain = await site.put({ certificateId: id }, { expectedUpdatedAt: updatedAt });
  t.deepEqual(plain.settings, { ...DEFAULT_HTTPS, ...DEFAULT_COMPRESSION, certificateId: id });
  t.like(DEFAULT_HTTPS, {
    forceHttps: false,
    redirectStatus: 301,
    redirectPort: 443,
    redirectExcludedDomains: [],
    hstsMaxAge: 0,
    minimumVersion: '1.2',
    cipherProfile: 'modern',
    http2: true,
    http3: false,
    ocspStapling: false,
    clientCertificate: { mode: 'off', caPem: '', depth: 2, forwardHeaders: false },
  });
  t.like(DEFAULT_COMPRESSION, { gzip: true, gzipLevel: 0, gzipMinLength: 256, brotli: false, brotliLevel: 6 });
  t.like(DEFAULT_COMPRESSION, {
    brotliMinLength: 256,
    zstd: false,
    zstdLevel: 3,
    zstdMinLength: 256,
    compressMaxLength: 0,
  });
  t.is(await site.compression(), null);
});

test('what is out of its limits is refused by its field', async (t) => {
  const site = await newSite();
  const bad = async (settings: Body, field = Object.keys(settings)[0]!) =>
    api.badField(t, `/settings/${field}`, 'PUT', site.path, { settings });
  await bad({ redirectStatus: 304 });
  for (const port of [0, 65_536]) await bad({ redirectPort: port });
  for (const level of [-1, 10]) await bad({ gzipLevel: level });
  for (const level of [0, 12]) await bad({ brotliLevel: level });
  for (const level of [0, 20]) await bad({ zstdLevel: level });
  for (const length of [0, 1_048_577]) await bad({ zstdMinLength: length });
  await bad({ gzipTypes: Array.from({ length: 33 }, (_, n) => `text/x${n}`) });
  await bad({ gzipTypes: ['text/html; charset=utf-8'] }, 'gzipTypes/0');
  await bad({ hstsMaxAge: 63_072_001 });
  await bad({ minimumVersion: '1.1' });
  await bad({ additionalCertificateIds: ['a', 'b', 'c', 'd'] });
  await bad({ clientCertificate: { depth: 6 } }, 'clientCertificate/depth');
  t.is((await site.read()).updatedAt, site.createdAt);
});

test('what does not go together is refused', async (t) => {
  const site = await newSite();
  const authority = await testAuthority('Clients');
  const { id } = await upload(await testCertificate([site.main]));
  const required = { mode: 'required', caPem: authority.pem };
  for (const [field, settings] of Object.entries({
    forceHttps: { forceHttps: true },
    additionalCertificateIds: { additionalCertificateIds: [id] },
    clientCertificate: { clientCertificate: required },
  })) {
    t.deepEqual(await site.refused(t, 400, 'HTTPS_REQUIRES_CERTIFICATE', settings), { field });
  }
  const of = (more: Body) => ({ certificateId: id, ...more });
  t.deepEqual(await site.refused(t, 400, 'HTTPS_REDIRECT_PORT_INVALID', of({ redirectPort: 8443 })), { port: 8443 });
  const excluded = { redirectExcludedDomains: [site.main, 'other.example'] };
  t.deepEqual(await site.refused(t, 400, 'HTTPS_REDIRECT_DOMAIN_INVALID', of(excluded)), {
    domains: ['other.example'],
  });
  await site.refused(t, 400, 'CLIENT_CERTIFICATE_HTTP3', of({ http3: true, clientCertificate: required }));
  const reason = async (caPem: string) =>
    (await site.refused(t, 400, 'CLIENT_CA_INVALID', of({ clientCertificate: { mode: 'optional', caPem } }))).reason;
  t.is(await reason(''), 'none');
  t.is(await reason((await testCertificate([site.main])).pem), 'not_authority');
  t.deepEqual(await site.refused(t, 404, 'CERTIFICATE_NOT_FOUND', { certificateId: 'nobody' }), { id: 'nobody' });
  const ended = await upload(await testCertificate([site.main]));
  await api
    .sql('certificate')
    .where({ id: ended.id })
    .update({ not_after: new Date(0) });
  t.like(await site.refused(t, 409, 'CERTIFICATE_UNAVAILABLE', { certificateId: ended.id }), { id: ended.id });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/https');
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PUT', '/sites/nobody/https', { settings: {} });
  const saved = await site.put(of({ clientCertificate: { ...required, depth: 1, forwardHeaders: true } }));
  t.like(saved.settings.clientCertificate, { mode: 'required', depth: 1, forwardHeaders: true });
  t.like((await site.https())!.clientCertificates, { depth: 1, forwardHeaders: true });
});

test('what a site has stays while other settings change, though it expired or leaves a domain out', async (t) => {
  const site = await newSite('www.');
  const both = [site.main, `www.${site.main}`];
  const { id } = await upload(await testCertificate(both));
  await site.put({ certificateId: id, forceHttps: true, hstsMaxAge: 60 });
  await api
    .sql('certificate')
    .where({ id })
    .update({ not_after: new Date(0), names: [site.main] });
  t.like((await site.put({ certificateId: id })).settings, { forceHttps: false, hstsMaxAge: 0 });
  t.deepEqual((await site.read()).pendingDomains, [both[1]]);
  // Others have to be usable, and to cover what was covered.
  const apex = (await upload(await testCertificate([site.main]))).id;
  const stranger = (await upload(await testCertificate([both[1]!]))).id;
  await api
    .sql('certificate')
    .where({ id: stranger })
    .update({ not_after: new Date(0) });
  const more = { certificateId: id, additionalCertificateIds: [stranger] };
  t.like(await site.refused(t, 409, 'CERTIFICATE_UNAVAILABLE', more), { id: stranger });
  await api
    .sql('certificate')
    .where({ id: stranger })
    .update({ not_after: new Date(Date.now() + 86_400_000) });
  t.deepEqual(await site.refused(t, 400, 'CERTIFICATE_DOMAIN_MISMATCH', { certificateId: stranger }), {
    domains: [site.main],
  });
  t.like(await site.put({ certificateId: apex }), { pendingDomains: [both[1]] });
  t.like(await site.refused(t, 409, 'CERTIFICATE_UNAVAILABLE', { certificateId: id }), { id });
  // A site without a certificate begins with one that covers it all.
  await site.put({});
  t.deepEqual(await site.refused(t, 400, 'CERTIFICATE_DOMAIN_MISMATCH', { certificateId: apex }), {
    domains: [both[1]],
  });
});

test('certificates together have to cover every domain that one can name', async (t) => {
  const site = await newSite('*.', '.deep.', 'shop.');
  const { main } = site;
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [main, `*.${main}`, `.deep.${main}`, '~x[0-9]+'] });
  const [apex, wild, deep] = await Promise.all(
    [[main], [`*.${main}`], [`*.deep.${main}`]].map(async (names) => (await upload(await testCertificate(names))).id),
  );
  t.deepEqual(await site.refused(t, 400, 'CERTIFICATE_DOMAIN_MISMATCH', { certificateId: apex }), {
    domains: [`*.${main}`, `.deep.${main}`],
  });
  const saved = await site.put({ certificateId: apex, additionalCertificateIds: [wild, deep] });
  t.deepEqual(saved.pendingDomains, []);
  t.deepEqual(
    (await site.https())!.certificates.map(({ certificateId }) => certificateId),
    [apex, wild, deep],
  );
  // One label is under the wildcard, two are not.
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [main, `shop.${main}`] });
  const domains = [main, `a.b.${main}`];
  const refused = await api.refused(t, [400, 'CERTIFICATE_DOMAIN_MISMATCH'], 'PATCH', `/sites/${site.id}`, { domains });
  t.deepEqual(refused, { domains: [`a.b.${main}`] });
  t.deepEqual((await api.ok('GET', `/sites/${site.id}`)).domains, [main, `shop.${main}`]);
});

test('an excluded domain that the site loses makes settings of before stale', async (t) => {
  const site = await newSite('www.');
  const www = `www.${site.main}`;
  const { id } = await upload(await testCertificate([site.main, www]));
  const settings = { certificateId: id, forceHttps: true, redirectExcludedDomains: [www] };
  const { updatedAt } = await site.put(settings);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main] });
  t.deepEqual((await site.read()).settings.redirectExcludedDomains, []);
  await site.refused(t, 409, 'UPDATED_AT_MISMATCH', settings, { expectedUpdatedAt: updatedAt });
});

/** Makes an upload one that an authority renews. */
/** Its order is under way and waits, so that none begins. */
const renewable = async (id: string, names: string[], challenge = 'http01') => {
  const now = new Date();
  const waits = { state: 'check', urgent: false, next_at: new Date(now.getTime() + 86_400_000) };
  await api.sql('acme_order').insert({ certificate_id: id, names, started_at: now, step_at: now, ...waits });
  await api
    .sql('certificate')
    .where({ id })
    .update({
      source: 'acme',
      requested_names: names,
      auto_renew: true,
      request: JSON.stringify({ challenge }),
    });
};

test('domains that an authority can be asked for wait for it by plain HTTP', async (t) => {
  const site = await newSite();
  const added = `new.${site.main}`;
  const { id, name } = await upload(await testCertificate([site.main]));
  await renewable(id, [site.main]);
  await site.put({ certificateId: id, forceHttps: true });
  const wild = { domains: [site.main, `*.${site.main}`] };
  await api.refused(t, [400, 'CERTIFICATE_DOMAIN_MISMATCH'], 'PATCH', `/sites/${site.id}`, wild);
  const { certificateReissue } = await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main, added] });
  t.deepEqual(certificateReissue, { id, name });
  t.deepEqual(
    (await site.https())!.pending.map((domain) => domain.name),
    [added],
  );
  t.deepEqual((await site.read()).pendingDomains, [added]);
  t.deepEqual((await api.ok('GET', `/certificates/${id}`)).pendingNames, [added]);
  const due = await api.sql('certificate').where({ id }).first('renew_at');
  t.true(due.renew_at <= new Date());
  t.like((await api.ok('GET', `/sites/${site.id}/launch`)).certificate, { state: 'issuing', id, uncovered: [added] });
  // Saving what was read is taken while it waits.
  t.is((await site.put({ certificateId: id, forceHttps: true, hstsMaxAge: 60 })).pendingDomains.length, 1);
  await api.sql('certificate').where({ id }).update({ status: 'error', last_error: 'acme_dns' });
  const { certificate } = await api.ok('GET', `/sites/${site.id}/launch`);
  // What it has is good for the other domains.
  t.like(certificate, { state: 'uncovered', id, uncovered: [added], error: 'acme_dns' });
  const { domains } = await api.ok('GET', `/sites/${site.id}`);
  t.deepEqual(domains, [site.main, added]);
  const { features } = await api
    .sql('config_entry')
    .where({ kind: 'site-https', resource_id: site.id, to_revision: null })
    .first();
  t.deepEqual(features, ['https-v1', 'tls-pending-domains-v1']);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main] });
  t.deepEqual((await site.https())!.pending, []);
});

test('the launch check says what certificates do for the site', async (t) => {
  const site = await newSite();
  const launch = async () => (await api.ok('GET', `/sites/${site.id}/launch`)).certificate;
  t.deepEqual(await launch(), { state: 'none', id: null, name: null, uncovered: [], partly: [], error: null });
  const { id, name } = await upload(await testCertificate([site.main]));
  await site.put({ certificateId: id });
  t.deepEqual(await launch(), { state: 'covered', id, name, uncovered: [], partly: [], error: null });
  await api
    .sql('certificate')
    .where({ id })
    .update({ not_after: new Date(0) });
  t.like(await launch(), { state: 'expired', id, uncovered: [site.main] });
  const attention = async () => {
    const { attention: items } = await api.ok('GET', `/overview?clusterId=${site.clusterId}`);
    return items.find(({ kind }: Body) => kind === 'certificates_ending');
  };
  t.like(await attention(), { count: 1, named: [{ type: 'site', id: site.id }] });
});

test('the launch check names domains that certificates cover for some names only', async (t) => {
  const site = await newSite();
  const suffix = `.deep.${site.main}`;
  const pattern = `~^rx[0-9]+\\.${site.main.replaceAll('.', '\\.')}$`;
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main, suffix, pattern] });
  const { id } = await upload(await testCertificate([site.main, `*${suffix}`]));
  await site.put({ certificateId: id });
  const { certificate } = await api.ok('GET', `/sites/${site.id}/launch`);
  t.like(certificate, { state: 'covered', uncovered: [] });
  t.deepEqual(certificate.partly.toSorted(), [suffix, pattern].toSorted());
});

test('the launch check tells requests for a site without a certificate from those that cannot bring one', async (t) => {
  const site = await newSite();
  const launch = async () => (await api.ok('GET', `/sites/${site.id}/launch`)).certificate;
  const rows = () => api.sql('certificate');
  // Nobody is asked: it is due in a day.
  const [{ id }] = await rows().insert(
    {
      name: 'Coming',
      names: [site.main],
      requested_names: [site.main],
      source: 'acme',
      status: 'pending',
      auto_renew: true,
      renew_at: new Date(Date.now() + 86_400_000),
      bind_site_id: site.id,
      request: JSON.stringify({ challenge: 'http01' }),
    },
    'id',
  );
  const coming = (state: string, error: string | null = null) => ({
    state,
    id,
    name: 'Coming',
    uncovered: [site.main],
    partly: [],
    error,
  });
  t.deepEqual(await launch(), coming('issuing'));
  await rows().where({ id }).update({ status: 'issuing' });
  t.deepEqual(await launch(), coming('issuing'));
  await rows().where({ id }).update({ status: 'error', last_error: 'acme_caa' });
  t.deepEqual(await launch(), coming('failed', 'acme_caa'));

  // One that is valid and has other names, which nobody was asked to extend.
  const other = await upload(await testCertificate([site.main]));
  await rows().where({ id }).update({ bind_site_id: null });
  await site.put({ certificateId: other.id });
  t.like(await launch(), { state: 'covered', id: other.id });
  await rows()
    .where({ id: other.id })
    .update({ names: [`else.${site.main}`] });
  t.like(await launch(), { state: 'uncovered', id: other.id, uncovered: [site.main], error: null });
  // Only once nothing that the site has can be used, a failed try is all there is.
  await rows().where({ id }).update({ bind_site_id: site.id });
  t.like(await launch(), { state: 'uncovered', id, error: 'acme_caa' });
  await rows()
    .where({ id: other.id })
    .update({ not_after: new Date(0) });
  t.like(await launch(), { state: 'failed', id, error: 'acme_caa' });
});

test('the overview names sites whose certificate ends and that nobody renews, or not in time', async (t) => {
  const site = await newSite();
  const { id } = await upload(await testCertificate([site.main]));
  await site.put({ certificateId: id });
  const ending = async (began: number, left: number, more: Body = {}): Promise<number> => {
    const at = (days: number) => new Date(Date.now() + days * 86_400_000);
    const change = { source: 'acme', requested_names: [site.main], auto_renew: true, status: 'ready', ...more };
    await api
      .sql('certificate')
      .where({ id })
      .update({ ...change, not_before: at(-began), not_after: at(left) });
    // The overview itself is asked at most every two seconds.
    return (await endingCertificates(api.sql, site.clusterId))[0]?.count ?? 0;
  };
  const byHand = { source: 'upload', requested_names: null, auto_renew: false };
  t.is(await ending(80, 15, byHand), 0);
  t.is(await ending(80, 13, byHand), 1);
  t.is(await ending(80, 13, { auto_renew: false }), 1);
  // It is renewed by itself: only once that fails, until a quarter of its time is left, or too late.
  t.is(await ending(80, 3), 0);
  const failed = { status: 'error', last_error: 'acme_dns' };
  t.is(await ending(10, 10, failed), 0);
  t.is(await ending(80, 13, failed), 1);
  t.is(await ending(80, -1), 1);
  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  t.is(await ending(80, -1), 0);
});

test('a domain that comes back with a rollback and that no certificate covers any more is reached by plain HTTP', async (t) => {
  const site = await newSite('www.');
  const both = [site.main, `www.${site.main}`];
  const { id } = await upload(await testCertificate(both));
  const { revision } = await site.put({ certificateId: id, forceHttps: true });
  t.deepEqual((await site.https())!.pending, []);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [site.main] });
  const { chainPem, privateKeyPem } = await testCertificate([site.main]);
  await api.ok('PUT', `/certificates/${id}`, { chainPem, privateKeyPem });
  await api.ok('POST', `/clusters/${site.clusterId}/rollback`, { revision, restoreSettings: true });
  t.deepEqual((await api.ok('GET', `/sites/${site.id}`)).domains, both);
  const pending = async () => (await site.https())!.pending.map(({ name }) => name);
  t.deepEqual(await pending(), [both[1]]);
  t.deepEqual((await site.read()).pendingDomains, [both[1]]);
  // Another chain that covers it ends that.
  const again = await testCertificate(both);
  await api.ok('PUT', `/certificates/${id}`, { chainPem: again.chainPem, privateKeyPem: again.privateKeyPem });
  t.deepEqual(await pending(), []);
});

test('a rollback puts the settings back, with the certificates as they are now', async (t) => {
  const site = await newSite();
  const [one, two] = [await testCertificate([site.main]), await testCertificate([site.main])];
  const [first, second] = [await upload(one), await upload(two)];
  const { revision } = await site.put({ certificateId: first.id, hstsMaxAge: 60, zstd: true });
  await site.put({ certificateId: second.id });
  const renewed = await testCertificate([site.main]);
  const { chainPem, privateKeyPem } = renewed;
  await api.ok('PUT', `/certificates/${first.id}`, { chainPem, privateKeyPem });
  const roll = `/clusters/${site.clusterId}/rollback`;
  await api.ok('POST', roll, { revision });
  const entry = (await site.https())!;
  t.is(entry.hstsMaxAge, 60);
  t.deepEqual(
    entry.certificates.map(({ fingerprint }) => hex(fingerprint)),
    [renewed.fingerprint],
  );
  t.true((await site.compression())!.zstd!.enabled);
  // The settings are those that were saved last, and the certificate that nodes run counts as used all the same.
  t.is((await site.read()).settings.certificateId, second.id);
  const used = await api.refused(t, [409, 'CERTIFICATE_IN_USE'], 'DELETE', `/certificates/${first.id}`);
  t.deepEqual(used, { sites: [site.main] });
  // A certificate that is replaced while its settings are those of a rollback leaves the rollback as it is.
  const again = await testCertificate([site.main]);
  await api.ok('PUT', `/certificates/${first.id}`, { chainPem: again.chainPem, privateKeyPem: again.privateKeyPem });
  const now = (await site.https())!;
  t.deepEqual(
    [now.hstsMaxAge, ...now.certificates.map(({ fingerprint }) => hex(fingerprint))],
    [60, again.fingerprint],
  );
  await site.put({});
  await api.ok('POST', roll, { revision, restoreSettings: true });
  t.like((await site.read()).settings, { certificateId: first.id, hstsMaxAge: 60, zstd: true });
  await site.put({});
  await api
    .sql('certificate')
    .where({ id: first.id })
    .update({ not_after: new Date(0) });
  const missing = await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', roll, { revision });
  t.like(missing.resources, [{ type: 'certificate', id: first.id, name: first.name }]);
  await api.ok('DELETE', `/certificates/${first.id}`);
  const gone = await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', roll, { revision });
  t.like(gone.resources, [{ type: 'certificate', id: first.id }]);
  const settings = { revision, restoreSettings: true };
  const neither = await api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', roll, settings);
  t.like(neither.resources, [{ type: 'certificate', id: first.id }]);
});

test('a certificate that goes while a rollback brings it back: the rollback is refused, and the site keeps what it has', async (t) => {
  for (const restoreSettings of [false, true]) {
    const site = await newSite();
    const [first, second] = [
      await upload(await testCertificate([site.main])),
      await upload(await testCertificate([site.main])),
    ];
    const { revision } = await site.put({ certificateId: first.id });
    await site.put({ certificateId: second.id });
    const kept = await site.https();
    const deletion = await api.sql.transaction();
    const { rows } = await deletion.raw('select pg_backend_pid() as pid');
    await deletion('certificate').where({ id: first.id }).delete();
    const roll = `/clusters/${site.clusterId}/rollback`;
    const rolling = api.refused(t, [409, 'ROLLBACK_RESOURCE_UNAVAILABLE'], 'POST', roll, { revision, restoreSettings });
    await eventually(async () => {
      const { rows: waiting } = await api.sql.raw('select from pg_stat_activity where ? = any(pg_blocking_pids(pid))', [
        rows[0].pid,
      ]);
      return waiting.length > 0;
    });
    await deletion.commit();
    t.like((await rolling).resources, [{ type: 'certificate', id: first.id }]);
    t.deepEqual(await site.https(), kept);
    t.is((await site.read()).settings.certificateId, second.id);
  }
});

test('while a canary tries settings, another certificate reaches everybody and the rest waits', async (t) => {
  const site = await newSite();
  const given = await upload(await testCertificate([site.main]));
  await site.put({ certificateId: given.id });
  const { items } = await api.ok('GET', `/node-groups?clusterId=${site.clusterId}`);
  const node = await api.node(site.clusterId, `canary-${made++}`, { features: ['canary-v1', 'https-v1'] });
  const [{ id: group }] = items;
  await api.sql('node_group').where({ id: group }).update({ is_canary: true });
  t.truthy(node);
  await api
    .sql('cluster_rollout')
    .insert({ cluster_id: site.clusterId, enabled: true })
    .onConflict('cluster_id')
    .merge();
  await site.put({ certificateId: given.id, hstsMaxAge: 60 });
  const tracks = async () => {
    const rows = await api
      .sql('config_entry')
      .join('config_blob', 'hash', 'blob_hash')
      .where({ cluster_id: site.clusterId, kind: 'site-https', resource_id: site.id, to_revision: null })
      .orderBy('track');
    return rows.map(({ track, body }) => {
      const { hstsMaxAge, certificates } = fromBinary(SiteHttpsSchema, body);
      return [track, hstsMaxAge, ...certificates.map(({ fingerprint }) => hex(fingerprint))];
    });
  };
  t.deepEqual(await tracks(), [
    ['C', 60, given.fingerprint],
    ['S', 0, given.fingerprint],
  ]);
  const { chainPem, privateKeyPem, fingerprint } = await testCertificate([site.main]);
  await api.ok('PUT', `/certificates/${given.id}`, { chainPem, privateKeyPem });
  t.deepEqual(await tracks(), [
    ['C', 60, fingerprint],
    ['S', 0, fingerprint],
  ]);
  // Also where the canary has no HTTPS at all.
  await site.put({});
  const other = await testCertificate([site.main]);
  await api.ok('PUT', `/certificates/${given.id}`, { chainPem: other.chainPem, privateKeyPem: other.privateKeyPem });
  t.deepEqual(await tracks(), [['S', 0, other.fingerprint]]);
});
