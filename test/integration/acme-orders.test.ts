// Orders of certificates from the request to the site, at an authority that is as strict as a real one.
import { X509Certificate } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { ALL_FEATURES } from '../../bench/fleet/fleet.ts';
import { sweepRehearsals } from '../../models/certificates/acme-certificate.ts';
import { beginDueOrders, takeDueOrder } from '../../models/certificates/acme-order.ts';
import { type AcmeCluster, orderOver, requestOf, startAcmeCluster, useAuthority } from '../helpers/acme-cluster.ts';
import type { Asked, Verdict } from '../helpers/acme-directory.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { insertDue } from '../helpers/due-certificates.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let cluster: AcmeCluster;
let last = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  cluster = await startAcmeCluster(running, api);
});
test.after.always('stop', async () => {
  await cluster?.stop();
  await running?.stop();
});
test.afterEach.always('the authority does as it should', () => {
  delete cluster.authority.options.script;
});

const newName = () => `h${last++}.example.org`;
const newSite = (name: string) => api.site(cluster.clusterId, name);
const request = (names: string[], more: Body = {}) => api.ok('POST', '/certificates/request', requestOf(names, more));
const certificate = (id: string) => api.ok('GET', `/certificates/${id}`);

/** The verdict once for each of the requests of a kind, then none. */
function script(asked: Asked, ...verdicts: Verdict[]): void {
  const left = [...verdicts];
  cluster.authority.options.script = (kind) => (kind === asked ? (left.shift() ?? null) : null);
}

const limited = (type: string, status: number): Verdict => ({ type, status, headers: { 'retry-after': '7200' } });

test.serial('one request brings a certificate to its site, and cleans up behind itself', async (t) => {
  const names = [newName(), newName()];
  const site = await api.site(cluster.clusterId, names[0]!, { domains: names });
  const made = await request(names, { bindSiteId: site.id });
  t.like(made, { source: 'acme', status: 'pending', bindSiteId: site.id, names, autoRenew: true, fingerprint: null });
  const over = await orderOver(api, made.id);
  t.is(over.state, 'done', JSON.stringify(over));
  t.true(over.steps.every(({ state }: Body) => state === 'done'));
  const done = await certificate(made.id);
  t.like(done, { status: 'ready', bindSiteId: null, lastError: null, keyType: 'p256' });
  t.deepEqual(done.names.toSorted(), names.toSorted());
  t.is(done.chain.length, 2);
  const { issued } = cluster.authority;
  t.is(new X509Certificate(issued.at(-1)!.pem).fingerprint256.replaceAll(':', '').toLowerCase(), done.fingerprint);
  const life = Date.parse(done.notAfter) - Date.parse(done.notBefore);
  t.is(Date.parse(done.renewAt), Math.round(Date.parse(done.notBefore) + (life * 2) / 3));
  t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, made.id);
  await eventually(async () => (await api.entries(cluster.clusterId, 'site-https')).includes(site.id));
  await eventually(() => cluster.node.answers.size === 0);
  const audit = (await api.audit(site.id)).find(({ action }) => action === 'site.https_update');
  t.is(audit?.actorType, 'system');
  const order = await api.sql('acme_order').where({ certificate_id: made.id }).first();
  t.is(order.private_key, null);
});

test.serial('an issued certificate is not bound to its site while a node lacks a capability for it', async (t) => {
  const name = newName();
  const site = await newSite(name);
  const lacking = await api.node(cluster.clusterId, 'old', { features: ['http01-v1'], online: false });
  // Awaited here: a query of knex runs only when something waits for it.
  t.teardown(async () => {
    await api.sql('node').where({ id: lacking }).delete();
  });
  const revisions = await api.reasons(cluster.clusterId);
  const made = await request([name], { bindSiteId: site.id });
  t.is((await orderOver(api, made.id)).state, 'done');
  const done = await certificate(made.id);
  t.like(done, { status: 'ready', bindSiteId: null, lastError: 'node_capability_required', names: [name] });
  t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, null);
  t.deepEqual(await api.reasons(cluster.clusterId), revisions);
  // An operator decides otherwise.
  await api.ok('PUT', `/sites/${site.id}/https`, { settings: { certificateId: made.id } });
});

test.serial('a rehearsal goes every step and leaves nothing behind but its progress', async (t) => {
  const names = [newName(), newName()];
  const site = await api.site(cluster.clusterId, names[0]!, { domains: names });
  const { total: before } = await api.ok('GET', '/certificates');
  const rehearse = (more: Body = {}) =>
    api.ok('POST', '/certificates/rehearse', {
      names,
      email: 'ops@example.org',
      ca: 'custom',
      skipDnsCheck: true,
      ...more,
    });
  const made = await rehearse();
  t.like(made, { state: 'waiting', error: null });
  const id = made.certificateId;
  const over = await orderOver(api, id);
  t.is(over.state, 'done', JSON.stringify(over));
  t.true(over.steps.every(({ state }: Body) => state === 'done'));
  t.is(over.nextTryAt, null);
  t.deepEqual(cluster.authority.issued.at(-1)!.names.toSorted(), names.toSorted());
  t.is((await api.ok('GET', '/certificates')).total, before);
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/renew'],
    ['DELETE', ''],
  ] as const) {
    await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], method, `/certificates/${id}${path}`);
  }
  t.deepEqual((await api.ok('GET', `/sites/${site.id}/https/check?ca=custom`)).certificates, []);
  t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, null);
  const order = await api.sql('acme_order').where({ certificate_id: id }).first();
  t.like(order, { private_key: null, csr: null, certificate_url: null });
  await eventually(() => cluster.node.answers.size === 0);

  // One that fails says why, and is not tried again.
  script('finalize', { type: 'caa', status: 403 });
  const refused = (await rehearse()).certificateId;
  t.like(await orderOver(api, refused), { state: 'failed', error: { code: 'acme_caa' }, nextTryAt: null });
  await api
    .sql('certificate')
    .whereIn('id', [id, refused])
    .update({ updated_at: new Date(0) });
  t.is(await sweepRehearsals(api.sql), 2);
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'GET', `/certificates/${id}/progress`);

  // Let's Encrypt has another directory for it, and so another account.
  // No site serves the name, so nobody is asked.
  const unserved = [newName()];
  const staged = await rehearse({ ca: undefined, email: 'staged@example.org', names: unserved });
  const [account] = await api.sql('acme_account').where({ email: 'staged@example.org' });
  t.is(account.directory_url, 'https://acme-staging-v02.api.letsencrypt.org/directory');
  t.like(await orderOver(api, staged.certificateId), { error: { code: 'http01_unserved' } });
  await api.badField(t, '/ca', 'POST', '/certificates/rehearse', { names, email: 'ops@example.org', ca: 'zerossl' });
});

test.serial('what is lost on the way is asked again, and one certificate comes of it', async (t) => {
  const kinds: Asked[] = ['nonce', 'new-order', 'authorization', 'challenge', 'order', 'finalize', 'certificate'];
  const { authority } = cluster;
  const [issued, asked] = [authority.issued.length, authority.requests.length];
  const left = new Set(kinds);
  authority.options.script = (kind) => (left.delete(kind) ? 'lose' : null);
  const names = kinds.map(() => [newName(), newName()]);
  const made = await Promise.all(
    names.map(async (both) => {
      await api.site(cluster.clusterId, both[0]!, { domains: both });
      return (await request(both)).id as string;
    }),
  );
  for (const id of made) {
    t.is((await orderOver(api, id)).state, 'done');
    t.is((await certificate(id)).status, 'ready');
  }
  t.deepEqual([...left], []);
  t.is(authority.issued.length, issued + made.length);
  // What was asked for beside it is not asked for again.
  const challenges = authority.requests.slice(asked).filter((kind) => kind === 'challenge');
  t.is(challenges.length, 2 * made.length + 1);
});

test.serial('nonces that the authority takes no more are replaced', async (t) => {
  const name = newName();
  await newSite(name);
  const bad: Verdict = { type: 'badNonce', status: 400 };
  script('new-order', bad, bad);
  t.is((await orderOver(api, (await request([name])).id)).state, 'done');
});

test.serial('a fault of the authority is waited out', async (t) => {
  const name = newName();
  await newSite(name);
  script('finalize', { type: 'serverInternal', status: 500 }, { type: '', status: 503 });
  t.is((await orderOver(api, (await request([name])).id)).state, 'done');
});

test.serial('refusals become codes, and the next order is later', async (t) => {
  for (const [asked, type, code] of [
    ['finalize', 'caa', 'acme_caa'],
    ['new-order', 'rejectedIdentifier', 'acme_rejected_identifier'],
    ['new-order', 'somethingElse', 'acme_error'],
  ] as const) {
    const name = newName();
    await newSite(name);
    script(asked, { type, status: 403 });
    const made = await request([name]);
    const over = await orderOver(api, made.id);
    t.like(over, { state: 'failed', error: { code } });
    const failed = await certificate(made.id);
    t.like(failed, { status: 'error', lastError: code, fingerprint: null });
    const wait = Date.parse(failed.renewAt) - Date.parse(over.finishedAt);
    t.is(wait, 3_600_000);
    t.false(JSON.stringify([failed, over]).includes('text of the authority'));
  }
});

test.serial('a name that the node does not answer for fails by its name', async (t) => {
  const names = [newName(), newName()];
  await api.site(cluster.clusterId, names[0]!, { domains: names });
  const { look } = cluster.authority.options;
  cluster.authority.options.look = async (shown) => (shown.name === names[1] ? 'connection' : look(shown));
  const made = await request(names);
  const over = await orderOver(api, made.id);
  cluster.authority.options.look = look;
  t.like(over, { state: 'failed', error: { code: 'acme_connection', params: { names: [names[1]] } } });
  t.is(over.steps.find(({ state }: Body) => state === 'failed').step, 'validate');
  t.like(
    over.names.find(({ name }: Body) => name === names[1]),
    { state: 'invalid', error: 'acme_connection' },
  );
  await eventually(() => cluster.node.answers.size === 0);
});

/** What the console logs as an error until the end of the test. */
function errorsOf(t: ExecutionContext): unknown[] {
  const { log } = running.running.runtime;
  const { error } = log;
  t.teardown(() => {
    log.error = error;
  });
  const logged: unknown[] = [];
  log.error = (...args: unknown[]) => void logged.push(args);
  return logged;
}

/** A node that is online for as long as nobody says otherwise, and takes no answer. */
async function silent(clusterId: string) {
  const nodeId = await api.node(clusterId, `silent-${last++}`, { features: [...ALL_FEATURES] });
  const seen = (at: unknown) => api.sql('node_state').where({ node_id: nodeId }).update({ last_seen_at: at });
  await seen(api.sql.raw("now() + interval '1 hour'"));
  return { nodeId, leaves: () => seen(new Date(0)) };
}

/** An order whose answers the silent node never has. */
async function waiting(clusterId: string, known?: string) {
  const name = known ?? newName();
  const { id: siteId } = known ? { id: '' } : await api.site(clusterId, name);
  const { id } = await request([name]);
  const row = () => api.sql('acme_order').where({ certificate_id: id });
  await eventually(async () => (await row().first())?.state === 'propagate', { everyMs: 100 });
  return { id, siteId, name, row };
}

test.serial('nodes that go offline in the middle are waited for no more, others for their time', async (t) => {
  const { clusterId } = cluster;
  const node = await silent(clusterId);
  const late = await waiting(clusterId);
  await late.row().update({ step_at: api.sql.raw("now() - interval '41 s'") });
  const { state, error } = await orderOver(api, late.id);
  t.deepEqual([state, error.code, error.params.nodes.length], ['failed', 'http01_apply_timeout', 1]);
  t.true(error.params.nodes[0].startsWith('silent-'));
  const others = await waiting(clusterId);
  await node.leaves();
  t.is((await orderOver(api, others.id)).state, 'done');
  const lonely = await api.cluster(`lonely-${last++}`);
  const only = await silent(lonely);
  const nobody = await waiting(lonely);
  await only.leaves();
  t.like(await orderOver(api, nobody.id), { state: 'failed', error: { code: 'http01_no_nodes' } });
});

test.serial('a cluster that goes under an order leaves it without nodes, and nothing to be logged', async (t) => {
  const logged = errorsOf(t);
  const gone = await api.cluster(`gone-${last++}`);
  const { nodeId } = await silent(gone);
  const { id, siteId } = await waiting(gone);
  await api.ok('DELETE', `/sites/${siteId}`);
  await api.ok('DELETE', `/nodes/${nodeId}`);
  await api.ok('DELETE', `/clusters/${gone}`);
  t.like(await orderOver(api, id), { state: 'failed', error: { code: 'http01_no_nodes' } });
  t.deepEqual(logged, []);
  await api.ok('DELETE', `/certificates/${id}`);
});

test.serial('a step that cannot be written waits longer each time, and goes on when it can', async (t) => {
  const name = newName();
  await newSite(name);
  const logged = errorsOf(t);
  await api.sql.raw(`
    create function refuse_${name.split('.')[0]}() returns trigger language plpgsql as $$ begin
      if new.state = 'failed' and new.names[1] = '${name}' then raise 'not now'; end if;
      return new;
    end $$;
    create trigger refused before update on acme_order for each row execute function refuse_${name.split('.')[0]}()`);
  cluster.authority.options.script = (kind) => (kind === 'finalize' ? { type: 'caa', status: 403 } : null);
  const made = await request([name]);
  const row = () => api.sql('acme_order').where({ certificate_id: made.id }).first();
  const { tries } = await eventually(async () => {
    const found = await row();
    return found?.tries >= 2 && found;
  });
  t.true(logged.length >= 2 && logged.length < tries + 10, `${logged.length} of ${tries}`);
  await api.sql.raw('drop trigger refused on acme_order');
  t.like(await orderOver(api, made.id), { state: 'failed', error: { code: 'acme_caa' } });
});

test.serial('what another order shows too stays when the first one ends', async (t) => {
  const node = await silent(cluster.clusterId);
  cluster.authority.options.reuses = true;
  const first = await waiting(cluster.clusterId);
  const second = await waiting(cluster.clusterId, first.name);
  delete cluster.authority.options.reuses;
  await second.row().update({ step_at: api.sql.raw("now() + interval '1 hour'") });
  await first.row().update({ step_at: api.sql.raw("now() - interval '41 s'") });
  t.is((await orderOver(api, first.id)).error.code, 'http01_apply_timeout');
  const shown = await api.sql('acme_token').where({ host: first.name });
  t.deepEqual(
    shown.map(({ removed }) => removed),
    [false],
  );
  await node.leaves();
  t.is((await orderOver(api, second.id)).state, 'done');
  await eventually(() => cluster.node.answers.size === 0);
});

test.serial('orders under way are gone on with before others begin, and few begin at once', async (t) => {
  await running.running.runtime.pools.api
    .transaction(async (sql) => {
      const begin = async () => {
        await beginDueOrders(sql, 10);
        const orders = sql('acme_order as o').join('certificate as c', 'c.id', 'o.certificate_id');
        const found = await orders.where('c.name', 'like', 'turn-%').groupBy('c.name').select('c.name').count();
        return Object.fromEntries(found.map(({ name, count }) => [name, Number(count)]));
      };
      const taken = async (count: number) => {
        const ids: string[] = [];
        for (let nth = 0; nth < count; nth++) ids.push((await takeDueOrder(sql, ids))!.certificateId);
        return ids;
      };
      await insertDue(sql, { name: 'turn-renewed', count: 3_000, issued: true });
      t.deepEqual(await begin(), { 'turn-renewed': 10 });
      t.deepEqual(await begin(), { 'turn-renewed': 10 });
      const under = await taken(4);
      await sql('acme_order').whereIn('certificate_id', under).update({ state: 'propagate' });
      t.deepEqual(await begin(), { 'turn-renewed': 14 });
      t.deepEqual((await taken(4)).toSorted(), under.toSorted());
      // Somebody waits for these, behind none of the others.
      await insertDue(sql, { name: 'turn-new', count: 30, issued: false });
      t.deepEqual(await begin(), { 'turn-renewed': 14, 'turn-new': 10 });
      const urgent = await taken(10);
      t.is(Number((await sql('certificate').whereIn('id', urgent).where('name', 'turn-new').count())[0]!.count), 10);
      t.deepEqual((await taken(14)).slice(10).toSorted(), under.toSorted());
      throw new Error('nobody else saw it');
    })
    .catch((error: Error) => t.is(error.message, 'nobody else saw it'));
});

test.serial('an authority that wants to be left alone is: the order ends, and the next begins then', async (t) => {
  const domain = `limited${last++}.org`;
  const names = [`a.${domain}`, `b.${domain}`];
  for (const name of names) await newSite(name);
  script('new-order', limited('rateLimited', 429));
  const first = await request([names[0]!]);
  const over = await orderOver(api, first.id);
  t.like(over, { state: 'failed', error: { code: 'acme_rate_limited' } });
  t.is(over.nextTryAt, over.error.params.until);
  await api.sql('acme_bucket').where('key', 'like', 'account %').delete();
  const before = cluster.authority.requests.filter((asked) => asked === 'new-order').length;
  // Another certificate of the same domain is not even asked for.
  const second = await orderOver(api, (await request([names[1]!])).id);
  t.like(second, { state: 'failed', error: { code: 'acme_rate_limited' } });
  t.is(cluster.authority.requests.filter((asked) => asked === 'new-order').length, before);
});

test.serial('what one order is refused holds no other, unless nobody is answered', async (t) => {
  const name = newName();
  await newSite(name);
  const ordered = async () => orderOver(api, (await request([name])).id);
  const buckets = async () => (await api.sql('acme_bucket').where('until', '>', new Date())).map(({ key }) => key);
  await api.sql('acme_bucket').delete();
  script('finalize', limited('rateLimited', 429));
  const alone = await ordered();
  t.like(alone, { state: 'failed', error: { code: 'acme_rate_limited' } });
  t.is(alone.nextTryAt, alone.error.params.until);
  t.deepEqual(await buckets(), []);
  script('nonce', limited('', 429));
  const { nextTryAt, finishedAt } = await ordered();
  t.true(Date.parse(nextTryAt) - Date.parse(finishedAt) > 7_000_000);
  t.deepEqual(await buckets(), [`directory ${cluster.authority.url}`]);
  const before = cluster.authority.requests.length;
  t.like(await ordered(), { state: 'failed', error: { code: 'acme_rate_limited' } });
  t.is(cluster.authority.requests.length, before);
  await api.sql('acme_bucket').delete();
});

test.serial('a short rest is waited out by the order itself', async (t) => {
  const name = newName();
  await newSite(name);
  const asked = () => cluster.authority.requests.filter((kind) => kind === 'finalize').length;
  const before = asked();
  script('finalize', { type: 'serverInternal', status: 500, headers: { 'retry-after': '55' } });
  const made = await request([name]);
  const row = () => api.sql('acme_order').where({ certificate_id: made.id });
  const nextAt = await eventually(async () => {
    const found = await row().first();
    return found?.error ? (found.next_at as Date) : undefined;
  });
  t.true(nextAt.getTime() > Date.now() + 10_000);
  t.is(asked(), before + 1);
  await row().update({ next_at: new Date() });
  t.is((await orderOver(api, made.id)).state, 'done');
});

test.serial(
  'names that no site has, and clusters without a node, are told before the authority is asked',
  async (t) => {
    const before = cluster.authority.requests.length;
    const unserved = await orderOver(api, (await request([newName()])).id);
    t.is(unserved.error.code, 'http01_unserved');
    const name = newName();
    await api.site(await api.cluster('empty'), name);
    t.is((await orderOver(api, (await request([name])).id)).error.code, 'http01_no_nodes');
    t.is(cluster.authority.requests.length, before);
  },
);

test.serial('names that lead elsewhere are told before the authority is asked', async (t) => {
  const name = newName();
  await newSite(name);
  const before = cluster.authority.requests.length;
  const over = await orderOver(api, (await request([name], { skipDnsCheck: false })).id);
  t.like(over, { state: 'failed', error: { code: 'http01_dns_not_pointing', params: { names: [name] } } });
  t.is(cluster.authority.requests.length, before);
});

test.serial('a renewal replaces the certificate where it is, without a name that no site has', async (t) => {
  const names = [newName(), newName()];
  const site = await api.site(cluster.clusterId, names[0]!, { domains: names });
  const made = await request(names, { bindSiteId: site.id });
  await orderOver(api, made.id);
  const former = await certificate(made.id);
  await api.ok('PATCH', `/sites/${site.id}`, { domains: [names[0]] });
  await api.ok('POST', `/certificates/${made.id}/renew`);
  const next = await eventually(
    async () => {
      const now = await certificate(made.id);
      return now.fingerprint !== former.fingerprint && now;
    },
    { everyMs: 200 },
  );
  t.like(next, { id: made.id, status: 'ready', names: [names[0]], siteCount: 1 });
  t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, made.id);
});

test.serial('a renewal that fails leaves the former certificate where it is', async (t) => {
  const name = newName();
  const site = await newSite(name);
  const made = await request([name], { bindSiteId: site.id });
  await orderOver(api, made.id);
  const former = await certificate(made.id);
  /** Asks for the next one, and answers what became of it. */
  const renewed = async () => {
    await api.ok('POST', `/certificates/${made.id}/renew`);
    return eventually(
      async () => {
        const now = await certificate(made.id);
        return (now.lastError !== null || now.fingerprint !== former.fingerprint) && now.status !== 'issuing' && now;
      },
      { everyMs: 200 },
    );
  };
  script('finalize', { type: 'caa', status: 403 });
  const failed = await renewed();
  const { fingerprint, notAfter } = former;
  t.like(failed, { status: 'error', lastError: 'acme_caa', fingerprint, notAfter, siteCount: 1 });
  const { finishedAt, nextTryAt } = await api.ok('GET', `/certificates/${made.id}/progress`);
  t.is(Date.parse(nextTryAt) - Date.parse(finishedAt), 12 * 3_600_000);
  t.is((await api.ok('GET', `/sites/${site.id}/https`)).settings.certificateId, made.id);
  t.true((await api.entries(cluster.clusterId, 'site-https')).includes(site.id));
  // Another account has the former one.
  await api.sql('certificate').where({ id: made.id }).update({ last_error: null });
  script('new-order', { type: 'unauthorized', status: 403 });
  t.is((await renewed()).status, 'ready');
  t.is(cluster.authority.issued.at(-1)!.replaces, null);
  t.is(cluster.authority.issued.length - cluster.authority.issued.findIndex(({ names }) => names[0] === name), 2);
});

test.serial('an authority that wants a renewal early gets it, and says in which time the next one is', async (t) => {
  const name = newName();
  await newSite(name);
  const made = await request([name]);
  await orderOver(api, made.id);
  const former = await certificate(made.id);
  const look = () => api.sql('acme_order').where({ certificate_id: made.id }).update({ renewal_check_at: new Date() });
  const hours = (count: number) => new Date(Date.now() + count * 3_600_000);
  cluster.authority.window = { start: hours(-2), end: hours(-1) };
  await look();
  const next = await eventually(
    async () => {
      const now = await certificate(made.id);
      return now.status === 'ready' && now.fingerprint !== former.fingerprint && now;
    },
    { everyMs: 500, what: 'another certificate' },
  );
  t.regex(cluster.authority.issued.at(-1)!.replaces ?? '', /^[\w-]+[.][\w-]+$/);
  t.true(Date.parse(next.renewAt) > Date.now());
  const window = { start: hours(24), end: hours(48) };
  cluster.authority.window = window;
  await look();
  const inside = (at: string) => Date.parse(at) >= window.start.getTime() && Date.parse(at) <= window.end.getTime();
  const { renewAt } = await eventually(
    async () => {
      const now = await certificate(made.id);
      return inside(now.renewAt) && now;
    },
    { everyMs: 500, what: 'a renewal within the time that the authority says' },
  );
  const asked = () => cluster.authority.requests.filter((kind) => kind === 'renewal').length;
  const before = asked();
  await look();
  await eventually(() => asked() > before);
  await eventually(async () => {
    const { renewal_check_at: at } = await api.sql('acme_order').where({ certificate_id: made.id }).first();
    return at.getTime() > Date.now();
  });
  t.is((await certificate(made.id)).renewAt, renewAt, 'drawn once');
  cluster.authority.window = null;
});

test.serial('a domain that is added while an order runs is asked for at once', async (t) => {
  const names = [newName(), newName()];
  const site = await newSite(names[0]!);
  const made = await request([names[0]!], { bindSiteId: site.id });
  await orderOver(api, made.id);
  script('finalize', { type: 'serverInternal', status: 500 });
  await api.ok('POST', `/certificates/${made.id}/renew`);
  await eventually(async () => (await certificate(made.id)).status === 'issuing');
  await api.ok('PATCH', `/sites/${site.id}`, { domains: names });
  const whole = await eventually(
    async () => {
      const now = await certificate(made.id);
      return now.status === 'ready' && now.pendingNames.length === 0 && now.names.length === 2 && now;
    },
    { everyMs: 300 },
  );
  t.deepEqual(whole.names.toSorted(), names.toSorted());
});

test.serial('accounts are shared, and external ones are bound to them', async (t) => {
  const { authority } = cluster;
  authority.options.external = { outer: Buffer.from('a key of theirs').toString('base64url') };
  const name = newName();
  await newSite(name);
  const without = await orderOver(api, (await request([name], { email: 'new@example.org' })).id);
  t.is(without.error.code, 'acme_external_account_required');
  await useAuthority(api, authority, { eabKid: 'outer', eabHmacKey: authority.options.external.outer });
  t.like(await api.ok('GET', '/settings/acme-directory'), { eabKid: 'outer', eabHmacKeySet: true });
  const before = authority.accounts.size;
  for (const each of [name, newName()]) {
    await newSite(each).catch(() => undefined);
    const over = await orderOver(api, (await request([each], { email: 'new@example.org' })).id);
    t.is(over.state, 'done', JSON.stringify(over.error));
  }
  t.is(authority.accounts.size, before + 1);
  t.is([...authority.accounts.values()].at(-1)!.external, 'outer');
  delete authority.options.external;
  await useAuthority(api, authority, { eabKid: '' });
});

test.serial('an account that the authority has forgotten is made anew, once', async (t) => {
  const name = newName();
  await newSite(name);
  const unknown: Verdict = { type: 'accountDoesNotExist', status: 400 };
  // In the middle: what was shown for the former authorizations goes.
  script('challenge', unknown);
  t.is((await orderOver(api, (await request([name])).id)).state, 'done');
  await eventually(() => cluster.node.answers.size === 0);
  script('new-order', unknown, unknown);
  const over = await orderOver(api, (await request([name])).id);
  t.like(over, { state: 'failed', error: { code: 'acme_account_does_not_exist' } });
});

test.serial('an authority whose address nobody may reach is not asked again and again', async (t) => {
  const name = newName();
  await newSite(name);
  // The API takes no such address; names of authorities may come to lead there.
  await api.sql('acme_directory').update({ url: 'https://169.254.169.254/' });
  const made = await request([name]);
  t.like(await orderOver(api, made.id), { state: 'failed', error: { code: 'acme_address_refused' } });
  t.is((await api.sql('acme_order').where({ certificate_id: made.id }).first()).tries, 0);
  await useAuthority(api, cluster.authority);
});

test.serial('requests are refused for what cannot be had', async (t) => {
  const path = '/certificates/request';
  const site = await newSite(newName());
  const bad = (field: string, body: Body) => api.badField(t, field, 'POST', path, body);
  await bad('/names/0', requestOf(['*.example.org']));
  await bad('/names/1', requestOf(['a.example.org', 'A.example.org.']));
  await bad('/names/0', requestOf(['no spaces.example.org']));
  await bad('/eabHmacKey', requestOf(['a.example.org'], { eabKid: 'one' }));
  await bad('/eabKid', requestOf(['a.example.org'], { ca: 'zerossl' }));
  const other = requestOf(['other.example.org'], { bindSiteId: site.id });
  const { domains } = await api.refused(t, [400, 'CERTIFICATE_DOMAIN_MISMATCH'], 'POST', path, other);
  t.is(domains.length, 1);
  const missing = requestOf(['other.example.org'], { bindSiteId: 'none' });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'POST', path, missing);
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'POST', '/certificates/none/renew');
  await api.refused(t, [404, 'CERTIFICATE_NOT_FOUND'], 'GET', '/certificates/none/progress');
});

test.serial('a certificate whose request names no account fails alone', async (t) => {
  const name = newName();
  await newSite(name);
  const kept = (await request([name])).id;
  t.is((await orderOver(api, kept)).state, 'done');
  // Rows that the API does not make, as of a restored part of a database; due before what is asked for afterwards.
  const broken = async (request: Body | null) => {
    const row = { names: [name], requested_names: [name], source: 'acme', status: 'pending', renew_at: new Date(0) };
    const [made] = await api.sql('certificate').insert({ name, request, ...row }, 'id');
    return made.id as string;
  };
  const asked = { ca: 'custom', email: 'ops@example.org', challenge: 'http01', keyType: 'ec256', skipDnsCheck: true };
  const [none, gone, empty] = [await broken(asked), await broken({ ...asked, accountId: 'gone' }), await broken(null)];
  t.is((await orderOver(api, (await request([name])).id)).state, 'done');
  for (const id of [none, gone]) {
    const over = await orderOver(api, id);
    t.like(over, { state: 'failed', error: { code: 'acme_account_does_not_exist' } });
    t.is(over.steps.find(({ state }: Body) => state === 'failed').step, 'account');
    t.like(await certificate(id), { status: 'error', lastError: 'acme_account_does_not_exist' });
  }
  await api.sql('certificate').whereIn('id', [none, gone, empty]).delete();
});

test.serial('one request at a time for a site, and one order for a certificate', async (t) => {
  const name = newName();
  const site = await newSite(name);
  script('new-order', ...new Array(3).fill({ type: 'serverInternal', status: 500 }));
  const made = await request([name], { bindSiteId: site.id });
  const again = requestOf([name], { bindSiteId: site.id });
  await api.refused(t, [409, 'CERTIFICATE_BUSY'], 'POST', '/certificates/request', again);
  await eventually(async () => (await certificate(made.id)).status === 'issuing');
  await api.refused(t, [409, 'CERTIFICATE_BUSY'], 'POST', `/certificates/${made.id}/renew`);
  t.is((await orderOver(api, made.id)).state, 'done');
});

test.serial('a directory that is none is not saved', async (t) => {
  const path = '/settings/acme-directory';
  const { url, caPem } = cluster.authority;
  const refused = (code: string, body: Body) => api.refused(t, [400, code], 'PUT', path, body);
  t.is((await refused('ACME_DIRECTORY_INVALID', { url, caPem: '' })).reason, 'tls');
  t.is((await refused('ACME_DIRECTORY_INVALID', { url: url.replace('https', 'http'), caPem })).reason, 'url');
  t.is((await refused('ACME_DIRECTORY_INVALID', { url: 'https://169.254.169.254/', caPem })).reason, 'refused');
  t.is((await refused('ACME_DIRECTORY_INVALID', { url: `${url.slice(0, -9)}nonce`, caPem })).reason, 'answer');
  await refused('ACME_DIRECTORY_CA_INVALID', { url, caPem: 'no certificate' });
  await refused('ACME_DIRECTORY_EAB_INCOMPLETE', { url, caPem, eabKid: 'one' });
  t.like(await api.ok('GET', path), { url });
});
