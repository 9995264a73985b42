// Names shown to an authority by DNS: through a server that takes signed changes, and through a webhook.
import { createHmac, randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { type AcmeCluster, orderOver, requestOf, startAcmeCluster, useAuthority } from '../helpers/acme-cluster.ts';
import { startAcmeDirectory } from '../helpers/acme-directory.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { TestDns } from '../helpers/dns-server.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { createTestDatabase, servers } from '../helpers/servers.ts';

const ZONE = 'zone.example.org';
const MASTER_KEY = randomBytes(32).toString('base64');
const HOOK_SECRET = 'what requests are signed with';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let running: TestConsole;
let api: Api;
let cluster: AcmeCluster;
let dns: TestDns;
let hook: Server;
let hookStatus = 204;
let updates: Body;
let hooked: Body;

const start = (setUp = true) =>
  startTestConsole({
    database: { url: database.url },
    env: { SVC_MASTER_KEY: MASTER_KEY, SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' },
    setUp,
  });

test.before('start', async () => {
  const key = { name: 'key.example.org', algorithm: 'hmac-sha512', secret: randomBytes(64) } as const;
  dns = await new TestDns(ZONE, key).start();
  hook = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const signed = `${request.headers['x-svc-timestamp']}.${body}`;
    const expected = `v1=${createHmac('sha256', HOOK_SECRET).update(signed).digest('hex')}`;
    const { action, zone, name, type, value } = JSON.parse(body);
    const right = request.headers['x-svc-signature'] === expected && zone === ZONE && type === 'TXT';
    const status = right ? hookStatus : 400;
    if (status === 204) dns.change(action === 'present' ? 'add' : 'remove', name, value);
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  database = await createTestDatabase(await servers());
  running = await start();
  api = new Api(running);
  const asked = new Resolver({ timeout: 2_000, tries: 2 });
  asked.setServers([dns.address]);
  cluster = await startAcmeCluster(running, api, {
    async look({ name, type, digest }) {
      if (type !== 'dns-01') return 'unauthorized';
      const found = await asked.resolveTxt(`_acme-challenge.${name}`).catch(() => []);
      return found.some((chunks) => chunks.join('') === digest) || 'unauthorized';
    },
  });
  updates = await api.ok('POST', '/dns-credentials', updateCredential());
  hooked = await api.ok('POST', '/dns-credentials', hookCredential());
});
test.after.always('stop', async () => {
  await cluster?.stop();
  await running?.stop();
  await database?.drop();
  await dns?.stop();
  hook?.closeAllConnections();
  hook?.close();
});

const updateCredential = (more: Body = {}): Body => ({
  name: 'Own server',
  provider: 'rfc2136',
  zone: ZONE,
  server: dns.address,
  keyName: dns.key.name,
  algorithm: dns.key.algorithm,
  secret: dns.key.secret.toString('base64'),
  nameservers: [dns.address],
  ...more,
});
const hookCredential = (more: Body = {}): Body => ({
  name: 'Webhook',
  provider: 'webhook',
  zone: ZONE,
  url: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/records`,
  secret: HOOK_SECRET,
  nameservers: [dns.address],
  ...more,
});
const request = (names: string[], more: Body = {}) =>
  api.ok(
    'POST',
    '/certificates/request',
    requestOf(names, { challenge: 'dns01', dnsCredentialId: updates.id, skipDnsCheck: false, ...more }),
  );
const certificate = (id: string) => api.ok('GET', `/certificates/${id}`);
const noRecords = () => eventually(() => dns.texts.size === 0, { what: 'no record is left' });

test.serial(
  'a name and its wildcard are shown at one place, aliases are followed, and nothing stays behind',
  async (t) => {
    dns.aliases.set(`_acme-challenge.alias.${ZONE}`, `alias.records.${ZONE}`);
    const names = [ZONE, `*.${ZONE}`, `alias.${ZONE}`];
    const site = await api.site(cluster.clusterId, names[0]!, { domains: names });
    const { request: asked, blockers } = await api.ok('GET', `/sites/${site.id}/https/check?ca=custom`);
    t.like(asked, { challenge: 'dns01' });
    t.true([updates.id, hooked.id].includes(asked.dnsCredentialId));
    t.deepEqual(blockers, []);
    const made = await request(names, { bindSiteId: site.id });
    const over = await orderOver(api, made.id);
    t.is(over.state, 'done', JSON.stringify(over));
    t.deepEqual((await certificate(made.id)).names.toSorted(), names.toSorted());
    t.is(dns.together, 2);
    t.true(dns.changes.includes(`add alias.records.${ZONE}`));
    await noRecords();
    await eventually(async () => (await api.sql('acme_dns_record')).length === 0);
    t.like(await api.ok('GET', `/dns-credentials/${updates.id}`), { certificateCount: 1, lastError: null });

    // A wildcard that the site gets later is asked for with the same credential.
    const added = `*.deeper.${ZONE}`;
    await api.ok('PATCH', `/sites/${site.id}`, { domains: [...names, added] });
    await eventually(async () => (await certificate(made.id)).names.includes(added), { everyMs: 500 });
    await noRecords();
    const refused = await api.refused(t, [409, 'DNS_CREDENTIAL_IN_USE'], 'DELETE', `/dns-credentials/${updates.id}`);
    t.deepEqual(refused, { clusters: [], certificates: [names[0]], records: 0 });
  },
);

test.serial(
  'domains that a site gets before its first order is over are asked for when it has the certificate',
  async (t) => {
    const names = [`first.${ZONE}`, `*.first.${ZONE}`];
    for (const [name, autoRenew] of [
      [`first.${ZONE}`, true],
      [`once.${ZONE}`, false],
    ] as const) {
      const site = await api.site(cluster.clusterId, name);
      const released = Promise.withResolvers<void>();
      const { look } = cluster.authority.options;
      cluster.authority.options.look = (shown) => released.promise.then(() => look(shown));
      const made = await request([name], { bindSiteId: site.id, autoRenew });
      await eventually(async () => (await certificate(made.id)).status === 'issuing');
      await api.ok('PATCH', `/sites/${site.id}`, { domains: [name, `*.${name}`] });
      cluster.authority.options.look = look;
      released.resolve();
      await eventually(async () => (await certificate(made.id)).bindSiteId === null);
      t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, made.id);
      // Nobody wants one to be renewed that is not.
      if (!autoRenew) {
        t.like(await certificate(made.id), { status: 'ready', renewAt: null, pendingNames: [], names: [name] });
        continue;
      }
      const whole = await eventually(async () => {
        const now = await certificate(made.id);
        return now.names.length === 2 && now;
      });
      t.deepEqual(whole.names.toSorted(), names.toSorted());
      t.deepEqual((await api.ok('GET', `/sites/${site.id}/https`)).pendingDomains, []);
    }
    await noRecords();
  },
);

test.serial('a webhook is told of each value; what it refuses is told of its credential', async (t) => {
  const name = `hook.${ZONE}`;
  hookStatus = 403;
  const refused = await request([`*.${name}`], { dnsCredentialId: hooked.id });
  t.like(await orderOver(api, refused.id), { state: 'failed', error: { code: 'dns_unauthorized' } });
  t.is((await api.ok('GET', `/dns-credentials/${hooked.id}`)).lastError, 'dns_unauthorized');
  await api.ok('PUT', `/dns-credentials/${updates.id}`, {
    ...updateCredential({ keyName: 'other.example.org' }),
    provider: undefined,
    zone: undefined,
  });
  const wrongKey = await orderOver(api, (await request([`*.${name}`])).id);
  t.is(wrongKey.error.code, 'dns_unauthorized');
  const site = await api.site(cluster.clusterId, `*.${name}`);
  const { blockers, request: asked } = await api.ok('GET', `/sites/${site.id}/https/check?ca=custom`);
  t.deepEqual(blockers, [
    {
      code: 'dns_credential_failed',
      credential: asked.dnsCredentialId === updates.id ? updates.name : hooked.name,
      error: 'dns_unauthorized',
    },
  ]);
  await api.ok('PUT', `/dns-credentials/${updates.id}`, {
    ...updateCredential(),
    provider: undefined,
    zone: undefined,
  });
  hookStatus = 204;
  const done = await orderOver(api, (await request([`*.${name}`], { dnsCredentialId: hooked.id })).id);
  t.is(done.state, 'done', JSON.stringify(done));
  await noRecords();
});

test.serial('a credential is tried: a value is written, looked for and removed, and what fails is told', async (t) => {
  const place = `_acme-challenge.${ZONE}`;
  const tried = async (id: string) => (await api.ok('POST', `/dns-credentials/${id}/try`, {})).steps;
  const lastError = async () => (await api.ok('GET', `/dns-credentials/${updates.id}`)).lastError;
  const step = (name: string, error: string | null = null) => ({
    step: name,
    state: error === null ? 'done' : 'failed',
    error,
  });
  const skipped = (name: string) => ({ ...step(name), state: 'skipped' });
  for (const { id } of [updates, hooked]) {
    const before = dns.changes.length;
    t.deepEqual(
      await tried(id),
      ['write', 'look', 'remove'].map((name) => step(name)),
    );
    t.deepEqual(dns.changes.slice(before), [`add ${place}`, `remove ${place}`]);
    t.like((await api.audit(id)).at(-1), { action: 'dns_credential.try' });
  }
  dns.hidden.add(place);
  t.deepEqual(await tried(updates.id), [step('write'), step('look', 'dns_propagation_timeout'), step('remove')]);
  dns.hidden.delete(place);
  dns.refuses = 'add';
  t.deepEqual(await tried(updates.id), [step('write', 'dns_refused'), skipped('look'), skipped('remove')]);
  t.is(await lastError(), 'dns_refused');
  t.deepEqual(await api.sql('acme_dns_record').where('certificate_id', 'like', 'trial %'), []);

  // Nobody asks a server of a private network that the operator did not name.
  const { id: inside } = await api.ok('POST', '/dns-credentials', updateCredential({ server: '10.0.0.1' }));
  t.deepEqual(await tried(inside), [step('write', 'dns_address_refused'), skipped('look'), skipped('remove')]);
  await api.ok('DELETE', `/dns-credentials/${inside}`);

  // What could not be removed is by the job.
  dns.refuses = 'remove';
  t.deepEqual(await tried(updates.id), [step('write'), step('look'), step('remove', 'dns_refused')]);
  t.is(dns.texts.size, 1);
  dns.refuses = null;
  await api.sql('acme_dns_record').update({ next_at: new Date() });
  await noRecords();
  t.deepEqual((await tried(updates.id)).at(-1), step('remove'));
  t.is(await lastError(), null);
  await api.refused(t, [404, 'DNS_CREDENTIAL_NOT_FOUND'], 'POST', '/dns-credentials/none/try', {});
});

test.serial(
  'certificates of an own authority are renewed where it is now, after its address has changed',
  async (t) => {
    const name = `moved.${ZONE}`;
    const made = await request([name]);
    t.is((await orderOver(api, made.id)).state, 'done');
    const former = await certificate(made.id);
    const key = Buffer.from('a key of theirs').toString('base64url');
    const { look } = cluster.authority.options;
    const next = await startAcmeDirectory({ look, external: { outer: key } });
    await useAuthority(api, next, { eabKid: 'outer', eabHmacKey: key });
    await api.ok('POST', `/certificates/${made.id}/renew`);
    const renewed = await eventually(async () => {
      const now = await certificate(made.id);
      return ['ready', 'error'].includes(now.status) && now.fingerprint !== former.fingerprint && now;
    });
    t.like(renewed, { status: 'ready', lastError: null });
    t.deepEqual(
      next.issued.map(({ names }) => names),
      [[name]],
    );
    t.deepEqual(
      [...next.accounts.values()].map(({ external }) => external),
      ['outer'],
    );
    await useAuthority(api, cluster.authority, { eabKid: '' });
    await next.close();
    await noRecords();
  },
);

test.serial('records go however the order ends, and a removal that fails is tried again', async (t) => {
  cluster.authority.options.script = (asked) => (asked === 'finalize' ? { type: 'caa', status: 403 } : null);
  dns.refuses = 'remove';
  const made = await request([`refused.${ZONE}`]);
  t.like(await orderOver(api, made.id), { state: 'failed', error: { code: 'acme_caa' } });
  delete cluster.authority.options.script;
  await eventually(async () => (await api.sql('acme_dns_record').where({ ended: true, tries: 1 })).length === 1);
  t.is(dns.texts.size, 1);
  await api.ok('DELETE', `/certificates/${made.id}`);
  dns.refuses = null;
  await api.sql('acme_dns_record').update({ next_at: new Date() });
  await noRecords();
});

test.serial('names outside of the zone, and servers that never answer, end an order with their names', async (t) => {
  const outside = await orderOver(api, (await request([`in.${ZONE}`, 'out.localhost'])).id);
  t.like(outside, { state: 'failed', error: { code: 'dns_zone_mismatch', params: { names: ['out.localhost'] } } });
  const name = `hidden.${ZONE}`;
  dns.hidden.add(`_acme-challenge.${name}`);
  const made = await request([name]);
  await eventually(async () => {
    const { steps } = await api.ok('GET', `/certificates/${made.id}/progress`);
    return steps.some(({ step, state }: Body) => step === 'propagate' && state === 'running');
  });
  await api
    .sql('acme_order')
    .where({ certificate_id: made.id })
    .update({ step_at: new Date(Date.now() - 600_000) });
  const over = await orderOver(api, made.id);
  t.like(over, {
    state: 'failed',
    error: { code: 'dns_propagation_timeout', params: { names: [`_acme-challenge.${name}`] } },
  });
  await noRecords();
});

test.serial(
  'credentials: what belongs to their provider, their secret stays here, and edits of others are not lost',
  async (t) => {
    const path = '/dns-credentials';
    const bad = (field: string, body: Body) => api.badField(t, field, 'POST', path, body);
    await bad('/zone', hookCredential({ zone: 'not a zone' }));
    await bad('/url', hookCredential({ url: undefined }));
    await bad('/url', hookCredential({ url: 'http://hooks.example.org/' }));
    await bad('/url', hookCredential({ url: 'https://user@hooks.example.org/' }));
    await bad('/server', hookCredential({ server: 'ns.example.org' }));
    await bad('/server', updateCredential({ server: 'ns.example.org:99999' }));
    await bad('/keyName', updateCredential({ keyName: undefined }));
    await bad('/secret', updateCredential({ secret: 'no base64, but long enough' }));
    await bad('/nameservers/1', updateCredential({ nameservers: ['ns.example.org', 'no name'] }));
    const wild = requestOf(['*.example.org'], { challenge: 'dns01' });
    await api.badField(t, '/dnsCredentialId', 'POST', '/certificates/request', wild);
    const http = requestOf(['a.example.org'], { dnsCredentialId: hooked.id });
    await api.badField(t, '/dnsCredentialId', 'POST', '/certificates/request', http);
    const missing = { ...wild, dnsCredentialId: 'none' };
    await api.refused(t, [404, 'DNS_CREDENTIAL_NOT_FOUND'], 'POST', '/certificates/request', missing);
    await api.refused(t, [404, 'DNS_CREDENTIAL_NOT_FOUND'], 'GET', `${path}/none`);

    const made = await api.ok('POST', path, updateCredential({ name: 'Short-lived', algorithm: undefined }));
    t.like(made, { provider: 'rfc2136', zone: ZONE, algorithm: 'hmac-sha256', url: null });
    const { name, server, keyName } = made;
    const changed = { name: 'Changed', server, keyName, expectedUpdatedAt: made.updatedAt };
    const now = await api.ok('PUT', `${path}/${made.id}`, changed);
    t.like(now, { name: 'Changed', nameservers: [] });
    await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', `${path}/${made.id}`, { ...changed, name });
    const found = await api.ok('GET', `${path}?search=chang`);
    t.deepEqual(found, { items: [now], total: 1 });
    const [, secret] = [made, dns.key.secret.toString('base64')];
    for (const answer of [made, now, found, await api.audit(made.id)]) t.false(JSON.stringify(answer).includes(secret));
    const { secret: sealed } = await api.sql('dns_credential').where({ id: made.id }).first();
    t.regex(sealed, /^1\./);
    await api.ok('DELETE', `${path}/${made.id}`);
    await api.refused(t, [404, 'DNS_CREDENTIAL_NOT_FOUND'], 'DELETE', `${path}/${made.id}`);
  },
);

test.serial('another console goes on where one ended, and removes what that one wrote', async (t) => {
  const name = `resumed.${ZONE}`;
  dns.hidden.add(`_acme-challenge.${name}`);
  const made = await request([name]);
  await eventually(() => dns.texts.has(`_acme-challenge.${name}`));
  await running.stop();
  running = await start(false);
  dns.hidden.clear();
  const rows = running.running.runtime.pools.api;
  await eventually(async () => (await rows('certificate').where({ id: made.id }).first()).status === 'ready', {
    everyMs: 500,
    what: 'the certificate',
  });
  await noRecords();
  await eventually(async () => (await rows('acme_dns_record')).length === 0, { what: 'nothing is left to remove' });
  t.pass();
});
