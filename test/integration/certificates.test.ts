// Certificates through /api/v1 and the node channel: what is taken, who gets keys, and what is refused.
import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { latestEmail, readyCertificates } from '../../models/certificates/acme-certificate.ts';
import { checkChain } from '../../models/certificates/certificate-check.ts';
import { lostDomains } from '../../models/sites/site-https.ts';
import { SEALED_COLUMNS } from '../../runtime/reseal.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { QueryPlans } from '../helpers/query-plans.ts';
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

const newName = () => `shop-${made++}.example`;
const inputOf = ({ chainPem, privateKeyPem }: TestCertificate) => ({ chainPem, privateKeyPem });
const upload = (certificate: TestCertificate, name = `certificate-${made++}`): Promise<Body> =>
  api.ok('POST', '/certificates/upload', { name, ...inputOf(certificate) });
const get = (id: string): Promise<Body> => api.ok('GET', `/certificates/${id}`);

/** A site with HTTPS. */
async function secured(clusterId: string, domain: string, certificateId: string): Promise<string> {
  const { id } = await api.site(clusterId, domain);
  await api.ok('PUT', `/sites/${id}/https`, { settings: { certificateId } });
  return id;
}

test('an upload is answered with its chain and names, and never with its key', async (t) => {
  const root = await testAuthority('Test Root');
  const middle = await testAuthority('Test Middle', root);
  const domain = newName();
  const given = await testCertificate([domain, `*.${domain}`], { issuer: middle, between: [middle], key: 'rsa' });
  const answer = await upload(given, 'My shop');
  const { id, chain, createdAt, updatedAt, notBefore, notAfter, ...rest } = answer;
  t.deepEqual(rest, {
    name: 'My shop',
    names: [domain, `*.${domain}`],
    pendingNames: [],
    source: 'upload',
    status: 'ready',
    fingerprint: given.fingerprint,
    issuer: 'CN=Test Middle',
    keyType: 'rsa',
    autoRenew: false,
    renewAt: null,
    lastError: null,
    bindSiteId: null,
    siteCount: 0,
    sites: [],
    warnings: [],
  });
  t.deepEqual(
    chain.map(({ subject, issuer }: Body) => [subject, issuer]),
    [
      [`CN=${domain}`, 'CN=Test Middle'],
      ['CN=Test Middle', 'CN=Test Root'],
    ],
  );
  const leaf = new X509Certificate(given.pem);
  t.deepEqual(
    [notBefore, notAfter],
    [leaf.validFromDate, leaf.validToDate].map((date) => date.toISOString()),
  );
  t.is(createdAt, updatedAt);
  t.deepEqual(await get(id), answer);
  t.deepEqual(
    (await api.audit(id)).map(({ action, metadata }) => [action, metadata.names]),
    [['certificate.upload', [domain, `*.${domain}`]]],
  );
});

test('certificates are found by name and by DNS name, and sorted', async (t) => {
  const mark = `listed${made++}`;
  const far = await testCertificate([`far.${mark}.example`], { notAfter: new Date(Date.now() + 300 * 86_400_000) });
  await upload(far, `${mark} b`);
  await upload(await testCertificate([`near.${mark}.example`]), `${mark} a`);
  const names = async (query: string): Promise<string[]> =>
    (await api.ok('GET', `/certificates?${query}`)).items.map(({ name }: Body) => name);
  t.deepEqual(await names(`search=${mark.toUpperCase()}`), [`${mark} a`, `${mark} b`]);
  t.deepEqual(await names(`search=far.${mark}`), [`${mark} b`]);
  t.deepEqual(await names(`search=${mark}&sort=-name`), [`${mark} b`, `${mark} a`]);
  t.deepEqual(await names(`search=${mark}&sort=notAfter`), [`${mark} a`, `${mark} b`]);
  t.deepEqual(await names(`search=${mark}&source=acme`), []);
  t.deepEqual(await names(`search=${mark}&status=ready&pageSize=1&page=2`), [`${mark} b`]);
  t.like(await api.ok('GET', `/certificates?search=${mark}&pageSize=1`), { total: 2 });
});

test('certificates that end soon and those that failed are found', async (t) => {
  const mark = `wanting${made++}`;
  const day = 86_400_000;
  const until = async (days: number, name: string) => {
    const notAfter = new Date(Date.now() + days * day);
    return (await upload(await testCertificate([`${name}.${mark}.example`], { notAfter }), `${mark} ${name}`))
      .id as string;
  };
  const [soon, ended, later] = [await until(13, 'soon'), await until(20, 'ended'), await until(15, 'later')];
  await api
    .sql('certificate')
    .where({ id: ended })
    .update({ not_after: new Date(0) });
  const site = await api.site(await api.cluster(mark), `${mark}.example`);
  await api
    .sql('certificate')
    .where({ id: later })
    .update({ status: 'error', last_error: 'acme_dns', source: 'acme', requested_names: [], bind_site_id: site.id });
  const found = async (query: string): Promise<string[]> =>
    (await api.ok('GET', `/certificates?search=${mark}&sort=notAfter&${query}`)).items.map(({ id }: Body) => id);
  t.deepEqual(await found(''), [ended, soon, later]);
  t.deepEqual(await found('condition=ending'), [ended, soon]);
  t.deepEqual(await found('condition=failed'), [later]);
  t.deepEqual(await found(`bindSiteId=${site.id}`), [later]);
  t.is((await api.ok('GET', `/certificates?condition=failed&bindSiteId=${site.id}`)).total, 1);
});

test.serial('a page of certificates reads few of 20,000, whatever it is sorted by and searched for', async (t) => {
  const { id } = await upload(await testCertificate([newName()]));
  await api.sql.raw(
    `insert into certificate (name, names, source, status, fingerprint, chain, private_key, issuer, key_type, not_before,
         not_after)
       select 'Customer ' || n, array['www.customer-' || n || '.example'], source, status, fingerprint, chain,
           private_key, issuer, key_type, not_before, not_after - make_interval(secs => n)
         from certificate cross join generate_series(1, 20000) n where id = ?`,
    [id],
  );
  await api.sql.raw(
    `update certificate set status = 'error', last_error = 'acme_dns', not_after = now() + interval '1 day'
      where name ~ 'Customer .*999$'`,
  );
  // What the search index has not sorted in yet is read whole, and makes the planner shun it.
  await api.sql.raw('vacuum analyze certificate');
  const plans = new QueryPlans(api, running);
  await plans.connect();
  t.teardown(() => plans.end());
  for (const [query, total] of [
    ['', 20_001],
    ['sort=name', 20_001],
    ['sort=-notAfter', 20_001],
    ['search=customer-19999', 1],
    ['search=CUSTOMER%2019999', 1],
    ['search=w.customer-1999&sort=notAfter', 11],
    ['condition=failed&sort=name', 20],
    ['condition=ending', 20],
    ['bindSiteId=nobody', 0],
  ] as const) {
    t.is((await api.ok('GET', `/certificates?${query}`)).total, total, query);
    const read = await plans.rowsRead(
      `/certificates?${query}`,
      // Jobs look for certificates meanwhile, but never for a page of them.
      (sql) => sql.includes('from certificate c') && sql.includes('offset'),
    );
    t.is(read.length, 1, query);
    // A page, joined to the sites that use each of it.
    t.true(read[0]! <= 200, `${query} reads ${read[0]} rows`);
  }
  // None of them was asked for.
  const named = await plans.rowsRead(
    () => readyCertificates(api.sql, ['www.customer-77.example']),
    (sql) => sql.includes('names &&'),
  );
  t.true(named.length === 1 && named[0]! < 100, `${named} rows read for a name`);
  const latest = await plans.rowsRead(
    () => latestEmail(api.sql),
    (sql) => sql.includes("'email'"),
  );
  t.true(latest[0]! <= 1, `reads ${latest[0]} rows`);
  await api.sql('certificate').delete();
});

test('what 2,500 sites would lose with other names is found without their certificates once for each', async (t) => {
  const clusterId = await api.cluster(`many-${made++}`);
  const names = Array.from({ length: 100 }, (_, n) => `www-${n}.many-customers.example`);
  const [id, twin] = await Promise.all([
    upload(await testCertificate(['*.many.example', ...names.slice(1)])),
    upload(await testCertificate(['0.many.example', ...names.slice(1)])),
  ]).then((both) => both.map((one) => one.id as string));
  const inserted = await api.sql.raw(
    `with made as (
       insert into site (cluster_id, name, origins, origin_settings, content_settings, ports, search_text)
         select :clusterId, 'many ' || n, '[]', '{}', '{}', '{}', '' from generate_series(0, 2499) n returning id, name
     ), domain as (
       insert into site_domain (site_id, position, form, name)
         select id, 0, 'exact', substr(name, 6) || '.many.example' from made
     ), https as (
       insert into site_https (site_id, cluster_id, https, compression, updated_at)
         select id, :clusterId, '{}', '{}', now() from made returning site_id
     ) insert into site_certificate (site_id, position, certificate_id)
         select site_id, c.position - 1, c.id
           from https cross join unnest(array[:id, :twin]) with ordinality c(id, position)`,
    { clusterId, id: id!, twin: twin! },
  );
  t.is(inserted.rowCount, 5000);
  const answers: unknown[][] = [];
  const lost = await api.sql.transaction((trx) => {
    trx.on('query-response', ({ rows }: { rows: unknown[] }) => answers.push(rows));
    return lostDomains(trx, id!, ['1.many.example']);
  });
  t.deepEqual(
    lost.map(({ name }) => name).sort(),
    Array.from({ length: 2500 }, (_, n) => `${n}.many.example`)
      .slice(2)
      .sort(),
  );
  t.true(answers.length > 3 && answers.every((rows) => rows.length <= 1000));
  const bytes = JSON.stringify(answers).length;
  t.true(bytes < 1_000_000, `${bytes} bytes`);
});

test('each thing that can be wrong with an upload has its code', async (t) => {
  const good = await testCertificate(['a.example']);
  const other = await testCertificate(['a.example']);
  const refused = (code: string, body: Body) =>
    api.refused(t, [400, code], 'POST', '/certificates/upload', { name: 'Refused', ...inputOf(good), ...body });
  await refused('CERTIFICATE_KEY_MISMATCH', { privateKeyPem: other.privateKeyPem });
  await refused('CERTIFICATE_KEY_UNREADABLE', { privateKeyPem: 'x'.repeat(40) });
  await refused('CERTIFICATE_CHAIN_UNREADABLE', { chainPem: 'x'.repeat(40) });
  await refused('CERTIFICATE_CHAIN_FOREIGN_BLOCK', { chainPem: good.privateKeyPem });
  await refused('CERTIFICATE_CHAIN_ORDER', { chainPem: `${good.pem}\n${(await testAuthority('Stranger')).pem}` });
  await refused('CERTIFICATE_INVALID', inputOf(await testCertificate(['a.example'], { authority: true })));
  await refused('CERTIFICATE_NO_DNS_NAMES', inputOf(await testCertificate([])));
  await refused('CERTIFICATE_KEY_TYPE_UNSUPPORTED', inputOf(await testCertificate(['a.example'], { key: 'ed25519' })));
  const ended = { notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() - 60_000) };
  await refused('CERTIFICATE_NOT_CURRENTLY_VALID', inputOf(await testCertificate(['a.example'], ended)));
  const bad = (field: string, body: Body) =>
    api.badField(t, `/${field}`, 'POST', '/certificates/upload', { name: 'Refused', ...inputOf(good), ...body });
  await bad('name', { name: ' ' });
  await bad('name', { name: 'x'.repeat(101) });
  await bad('chainPem', { chainPem: 'x'.repeat(131_073) });
  await bad('chainPem', { chainPem: 'x'.repeat(31) });
  await bad('privateKeyPem', { privateKeyPem: 'x'.repeat(32_769) });
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'GET', '/certificates/nobody');
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'GET', '/certificates/nobody/nodes');
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'DELETE', '/certificates/nobody');
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'PUT', '/certificates/nobody', inputOf(good));
});

test('a certificate that is used is replaced, in all clusters, and not deleted', async (t) => {
  const clusters = [await api.cluster(`used-${made++}`), await api.cluster(`used-${made++}`)];
  const [one, two] = [newName(), newName()];
  const { id, name } = await upload(await testCertificate([one, two]));
  const first = await secured(clusters[0]!, one, id);
  await secured(clusters[1]!, two, id);
  t.deepEqual(await api.refused(t, [409, 'CERTIFICATE_IN_USE'], 'DELETE', `/certificates/${id}`), {
    sites: [one, two],
  });
  t.deepEqual(
    (await get(id)).sites.map((site: Body) => site.name),
    [one, two],
  );
  const less = inputOf(await testCertificate([one]));
  const refused = await api.refused(t, [400, 'CERTIFICATE_DOMAIN_MISMATCH'], 'PUT', `/certificates/${id}`, less);
  t.deepEqual(refused, { domains: [two] });
  const next = await testCertificate([`*.example`, one, two]);
  const answer = await api.call('PUT', `/certificates/${id}`, inputOf(next));
  t.like(answer.body, { id, name, fingerprint: next.fingerprint, siteCount: 2 });
  for (const clusterId of clusters) t.true(answer.headers.get('x-svc-change')!.includes(clusterId));
  t.is((await api.reasons(clusters[0]!)).at(-1), 'certificate_updated');
  t.is((await api.audit(id)).at(-1)!.action, 'certificate.replace');
  await api
    .sql('certificate')
    .where({ id })
    .update({ source: 'acme', requested_names: [one, two], status: 'issuing' });
  await api.refused(t, [409, 'CERTIFICATE_NOT_UPLOADED'], 'PUT', `/certificates/${id}`, inputOf(next));
  await api.refused(t, [409, 'CERTIFICATE_BUSY'], 'DELETE', `/certificates/${id}`);
  await api.sql('certificate').where({ id }).update({ status: 'ready' });
  for (const site of [first]) await api.ok('DELETE', `/sites/${site}`);
  t.deepEqual(await api.refused(t, [409, 'CERTIFICATE_IN_USE'], 'DELETE', `/certificates/${id}`), { sites: [two] });
});

test('keys are sealed, and in no entry, revision, audit entry, outbox row, answer or error', async (t) => {
  t.true(SEALED_COLUMNS.some(({ table, column }) => table === 'certificate' && column === 'private_key'));
  const clusterId = await api.cluster(`sealed-${made++}`);
  const domain = newName();
  const given = await testCertificate([domain]);
  const { id } = await upload(given);
  const siteId = await secured(clusterId, domain, id);
  const key = checkChain(given.chainPem, given.privateKeyPem, new Date()).privateKey;
  const { rows } = await api.sql.raw<{ rows: { row: string }[] }>(`
    select t::text as row from config_blob t union all select t::text from config_revision t
    union all select t::text from config_settings t union all select t::text from config_entry t
    union all select t::text from audit_entry t union all select t::text from outbox t
    union all select t::text from certificate t union all select t::text from idempotency_record t`);
  const answers = await Promise.all(
    ['/certificates', `/certificates/${id}`, `/sites/${siteId}/https`].map((path) => api.ok('GET', path)),
  );
  const dump = [...rows.map(({ row }) => row), JSON.stringify(answers)].join('\n');
  t.true(dump.includes(id));
  const secret = key.subarray(36, 68);
  for (const encoding of ['hex', 'base64', 'base64url'] as const) {
    t.false(dump.includes(secret.toString(encoding)));
    t.false(dump.includes(key.toString(encoding)));
  }
});

test('a node gets the certificates that its cluster serves, as they are now, and no other', async (t) => {
  const clusters = [await api.cluster(`node-${made++}`), await api.cluster(`node-${made++}`)];
  const [mine, foreign, unused] = [newName(), newName(), newName()];
  const certificates = await Promise.all([mine, foreign, unused].map((name) => testCertificate([name])));
  const ids = (await Promise.all(certificates.map((one) => upload(one)))).map(({ id }) => id as string);
  const siteId = await secured(clusters[0]!, mine, ids[0]!);
  await secured(clusters[1]!, foreign, ids[1]!);
  const connection = connectAs(running, await enrollOne(running, clusters[0]!, ['https-v1']));
  t.teardown(() => connection.destroy());
  const refs = ids.map((certificateId, index) => ({
    certificateId,
    fingerprint: Uint8Array.from(Buffer.from(certificates[index]!.fingerprint, 'hex')),
    name: '',
  }));
  const ask = async (asked: typeof refs) =>
    (await connection.call('getCertificates', { certificates: asked })).certificates;
  const [material, ...more] = await ask(refs);
  t.deepEqual(more, []);
  t.is(material!.certificateId, ids[0]!);
  const kept = checkChain(certificates[0]!.chainPem, certificates[0]!.privateKeyPem, new Date());
  t.deepEqual(
    material!.chain.map((der) => Buffer.from(der)),
    kept.chain,
  );
  t.deepEqual(Buffer.from(material!.privateKey), kept.privateKey);
  t.deepEqual(await ask([]), []);
  await t.throwsAsync(ask(Array.from({ length: 65 }, () => refs[0]!)), { message: /at most 64/ });
  const next = await testCertificate([mine]);
  await api.ok('PUT', `/certificates/${ids[0]}`, inputOf(next));
  t.deepEqual(await ask([refs[0]!]), []);
  const fingerprint = Uint8Array.from(Buffer.from(next.fingerprint, 'hex'));
  t.is((await ask([{ ...refs[0]!, fingerprint }])).length, 1);
  await api.ok('PUT', `/sites/${siteId}/https`, { settings: {} });
  t.deepEqual(await ask([{ ...refs[0]!, fingerprint }]), []);
});

test('each node tells whether it serves a certificate', async (t) => {
  const clusterId = await api.cluster(`served-${made++}`);
  const domain = newName();
  const { id } = await upload(await testCertificate([domain]), 'The\u00a0"first"');
  t.deepEqual(await api.ok('GET', `/certificates/${id}/nodes`), { items: [], total: 0 });
  const siteId = await secured(clusterId, domain, id);
  const { epoch, revision } = await api.sql('cluster_head').where({ cluster_id: clusterId }).first('epoch', 'revision');
  const later = await testCertificate([domain]);
  await api.ok('PUT', `/certificates/${id}`, inputOf(later));
  const head = (await api.sql('cluster_head').where({ cluster_id: clusterId }).first('revision')).revision;
  const failing = (reason: string, others = 0) => {
    const entry = (kind: string, id: string) => ({ kind, id, reason, running: true });
    const beside = Array.from({ length: others }, (_, n) => entry('site-compression', String(n)));
    return JSON.stringify([...beside, ...(others < 100 ? [entry('site-https', siteId)] : [])]);
  };
  const own = String.raw`certificate "The\u00a0\"first\"": the pack does not have this certificate`;
  const other = 'certificate "Other": the pack does not have this certificate';
  const states: Record<string, Body> = {
    a: { state: 'serving', row: { revision: head } },
    b: { state: 'former', row: { revision } },
    c: { state: 'pending', row: { revision: '1' } },
    d: {
      state: 'failed',
      row: { revision: head, failed: failing('its redirect is none') },
      message: 'its redirect is none',
    },
    d1: { state: 'failed', row: { revision: head, failed: failing(own, 99) }, message: own },
    d2: { state: 'pending', row: { revision: head, failed: failing(other) }, message: other },
    d3: { state: 'unknown', row: { revision: head, failed: failing(other, 100) } },
    e: { state: 'unsupported', row: { revision: head, features: [] } },
    f: { state: 'offline', row: { revision: head, last_seen_at: new Date(0) } },
  };
  for (const [name, { row }] of Object.entries(states)) {
    const node = await api.node(clusterId, name, { features: ['https-v1'] });
    await api
      .sql('node_state')
      .where({ node_id: node })
      .update({ epoch, track: 'S', ...row });
  }
  await api.node(clusterId, 'gone', { features: ['https-v1'], status: 'disabled' });
  const { items, total } = await api.ok('GET', `/certificates/${id}/nodes`);
  t.is(total, 9);
  t.deepEqual(
    items.map(({ name, state, message }: Body) => [name, state, message]),
    Object.entries(states).map(([name, { state, message = '' }]) => [name, state, message]),
  );
  t.like(await api.ok('GET', `/certificates/${id}/nodes?pageSize=3&page=4`), { items: [], total: 9 });
});

test('a read-only key reads certificates and changes none, and no service account comes near them', async (t) => {
  const { id } = await upload(await testCertificate([newName()]));
  const with_ = (key: string, method: string, path: string, body?: unknown) =>
    running.client.request<Body>(method, `/api/v1${path}`, body, { 'x-api-key': key });
  const { secret } = await running.client.rpc<Body>('accessKeys.create', { name: 'reader', scope: 'read' });
  for (const path of ['/certificates', `/certificates/${id}`, `/certificates/${id}/nodes`, '/certificates/settings']) {
    t.is((await with_(secret, 'GET', path)).status, 200, path);
  }
  const input = { name: 'Not taken', ...inputOf(await testCertificate([newName()])) };
  t.is((await with_(secret, 'POST', '/certificates/upload', input)).body.code, 'ACCESS_KEY_READ_ONLY');
  t.is((await with_(secret, 'DELETE', `/certificates/${id}`)).body.code, 'ACCESS_KEY_READ_ONLY');
  const account = await api.ok('POST', '/service-accounts', {
    name: `robot-${made++}`,
    scopes: ['sites:read', 'sites:write'],
  });
  const robot = await api.ok('POST', `/service-accounts/${account.id}/keys`, {});
  for (const path of ['/certificates', `/certificates/${id}`]) {
    t.is((await with_(robot.secret, 'GET', path)).body.code, 'SERVICE_ACCOUNT_FORBIDDEN', path);
  }
  t.deepEqual(await api.ok('GET', '/certificates/settings'), {
    acmeDirectory: null,
    acmeDirectoryEab: false,
    defaultCa: 'letsencrypt',
  });
});

test('a console that takes a certificate and gives it to a node logs nothing of it', async (t) => {
  const other = await startTestConsoleProcess({ env: { LOG_LEVEL: 'trace' } });
  t.teardown(() => other.stop());
  const { items } = await other.client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const domain = newName();
  const given = await testCertificate([domain]);
  const call = <T>(method: string, path: string, body: unknown) => other.client.api<T>(method, path, body);
  const { id } = await call<Body>('POST', '/certificates/upload', { name: 'Logged', ...inputOf(given) });
  const { site } = await call<Body>('POST', '/sites', {
    clusterId: items[0]!.id,
    domains: [domain],
    origins: [{ address: 'origin.example' }],
  });
  await call('PUT', `/sites/${site.id}/https`, { settings: { certificateId: id } });
  const connection = connectAs(other, await enrollOne(other, items[0]!.id, ['https-v1']));
  t.teardown(() => connection.destroy());
  const fingerprint = Uint8Array.from(Buffer.from(given.fingerprint, 'hex'));
  const { certificates } = await connection.call('getCertificates', {
    certificates: [{ certificateId: id, fingerprint, name: '' }],
  });
  t.is(certificates.length, 1);
  const key = Buffer.from(certificates[0]!.privateKey);
  const log = other.log();
  t.true(log.includes('getCertificates') || log.length > 0);
  const lines = given.privateKeyPem.split('\n').filter((line) => line.length > 40);
  for (const text of [...lines, key.toString('hex'), key.toString('base64')]) t.false(log.includes(text));
});
