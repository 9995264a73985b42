// Service accounts: machine identities with keys, and exactly what those may call (specification: Authentication 4, 5).
import { createHash } from 'node:crypto';
import test from 'ava';
import { Redis } from 'ioredis';
import { PROCEDURES } from '../../contract/index.ts';
import { type AnyProcedure, SCOPES } from '../../contract/procedure.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let second: TestConsole;
let api: Api;
let redis: Redis;

test.before(async () => {
  running = await startTestConsole();
  second = await startTestConsole({
    env: { REDIS_URL: running.env.REDIS_URL! },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
  });
  api = new Api(running);
  redis = new Redis(running.env.REDIS_URL!);
});

test.after.always(async () => {
  redis?.disconnect();
  await second?.stop();
  await running?.stop();
});

let sequence = 0;
const unique = (word: string) => `${word} ${++sequence}`;

const createAccount = (scopes: readonly string[] = [], more: Record<string, unknown> = {}): Promise<Body> =>
  api.ok('POST', '/service-accounts', { name: unique('account'), scopes, ...more });
const createKey = (accountId: string, body: Record<string, unknown> = {}): Promise<Body> =>
  api.ok('POST', `/service-accounts/${accountId}/keys`, body);
const newKey = async (scopes: readonly string[] = []) => (await createKey((await createAccount(scopes)).id)).secret;
const call = (secret: string, method: string, path: string, body?: unknown, at: TestConsole = running) =>
  at.client.request<Body>(method, `/api/v1${path}`, body, { 'x-api-key': secret });
const refusedEverywhere = (secret: string) =>
  eventually(
    async () => {
      const answers = await Promise.all([running, second].map((at) => call(secret, 'GET', '/me', undefined, at)));
      return answers.every(({ status }) => status === 401);
    },
    { what: 'the refusal at both gateways' },
  );

// Accounts --------------------------------------------------------------------------------------------------------------

test.serial('an account has a name, scopes and an enabled flag, and starts without keys', async (t) => {
  const account = await createAccount(['sites:write', 'clusters:read']);
  t.like(account, { scopes: ['clusters:read', 'sites:write'], enabled: true, keys: [] });
  const { items, total } = await api.ok('GET', '/service-accounts?pageSize=100');
  t.is(total, items.length);
  t.deepEqual(
    items.find(({ id }: Body) => id === account.id),
    account,
  );
  t.deepEqual(await api.audit(account.id), [
    {
      action: 'service_account.create',
      actorType: 'api_key',
      metadata: { name: account.name, scopes: account.scopes, enabled: true },
    },
  ]);
});

test.serial('a name of 64 characters is taken, of 65 refused, and names are unique', async (t) => {
  const name = 'n'.repeat(64);
  t.is((await api.ok('POST', '/service-accounts', { name })).name, name);
  await api.badField(t, '/name', 'POST', '/service-accounts', { name: `${name}n` });
  await api.badField(t, '/name', 'POST', '/service-accounts', { name: ' ' });
  t.deepEqual(await api.refused(t, [409, 'SERVICE_ACCOUNT_NAME_TAKEN'], 'POST', '/service-accounts', { name }), {
    name,
  });
  const other = await createAccount();
  await api.refused(t, [409, 'SERVICE_ACCOUNT_NAME_TAKEN'], 'PUT', `/service-accounts/${other.id}`, { name });
  t.is((await api.ok('PUT', `/service-accounts/${other.id}`, { name: other.name })).name, other.name);
});

test.serial('two accounts of one name at the same moment are one account and one refusal', async (t) => {
  const name = unique('race');
  const answers = await Promise.all(
    [0, 1, 2, 3].map(() => api.call('POST', '/service-accounts', { name, scopes: [] })),
  );
  t.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409]);
});

test.serial('unknown scopes and scopes given twice are refused', async (t) => {
  await api.badField(t, '/scopes/0', 'POST', '/service-accounts', { name: 'x', scopes: ['sites:delete'] });
  const twice = ['sites:read', 'sites:read'];
  await api.badField(t, '/scopes', 'POST', '/service-accounts', { name: 'x', scopes: twice });
});

test.serial('a change keeps what it does not name, and a change of nothing writes nothing', async (t) => {
  const account = await createAccount(['sites:read']);
  const changed = await api.ok('PUT', `/service-accounts/${account.id}`, { scopes: ['usage:read', 'sites:read'] });
  t.like(changed, { name: account.name, scopes: ['sites:read', 'usage:read'], enabled: true });
  t.true(changed.updatedAt > account.updatedAt);
  const same = await api.ok('PUT', `/service-accounts/${account.id}`, { scopes: ['usage:read', 'sites:read'] });
  t.deepEqual(same, changed);
  const audit = await api.audit(account.id);
  t.deepEqual(
    audit.map(({ action }) => action),
    ['service_account.create', 'service_account.update'],
  );
  t.like(audit[1]!.metadata, { before: { scopes: ['sites:read'] }, after: { scopes: ['sites:read', 'usage:read'] } });
});

test.serial('an account that changed meanwhile is not changed', async (t) => {
  const account = await createAccount();
  const path = `/service-accounts/${account.id}`;
  const changed = await api.ok('PUT', path, { enabled: false, expectedUpdatedAt: account.updatedAt });
  const body = { enabled: true, expectedUpdatedAt: account.updatedAt };
  t.deepEqual(await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', path, body), { updatedAt: changed.updatedAt });
});

test.serial('an account that is not there answers 404', async (t) => {
  const missing: [number, string] = [404, 'SERVICE_ACCOUNT_NOT_FOUND'];
  await api.refused(t, missing, 'PUT', '/service-accounts/none', { enabled: true });
  await api.refused(t, missing, 'DELETE', '/service-accounts/none');
  await api.refused(t, missing, 'POST', '/service-accounts/none/keys', {});
  await api.refused(t, missing, 'POST', '/service-accounts/none/keys/none/revoke', {});
});

// Keys ------------------------------------------------------------------------------------------------------------------

test.serial('a key is shown once, and only its SHA-256 is stored', async (t) => {
  const account = await createAccount();
  const { key, secret } = await createKey(account.id, { name: 'ci' });
  t.regex(secret, /^ews_[A-Za-z0-9_-]{43}$/);
  t.like(key, { name: 'ci', prefix: secret.slice(0, 10), lastUsedAt: null, revokedAt: null });
  const row = await api.sql('service_account_key').where({ id: key.id }).first();
  t.deepEqual(row.secret_hash, createHash('sha256').update(secret).digest());
  const everything = [row, await api.ok('GET', '/service-accounts?pageSize=100'), await api.audit(account.id)];
  t.false(JSON.stringify(everything).includes(secret.slice(10)));
  t.deepEqual((await api.audit(account.id)).at(-1), {
    action: 'service_account.key_create',
    actorType: 'api_key',
    metadata: { keyId: key.id, prefix: key.prefix, name: 'ci' },
  });
});

test.serial('making a key refuses an idempotency key and makes nothing', async (t) => {
  const { id } = await createAccount();
  const answer = await api.call('POST', `/service-accounts/${id}/keys`, {}, { 'idempotency-key': 'once' });
  t.is(`${answer.status} ${answer.body.code}`, '400 IDEMPOTENCY_KEY_UNSUPPORTED');
  t.is((await api.sql('service_account_key').where({ service_account_id: id })).length, 0);
});

test.serial('an account has at most 50 live keys, and shows 100 with every live one among them', async (t) => {
  const { id } = await createAccount();
  const oldest = await createKey(id);
  const filler = (count: number, revokedAt: Date | null) =>
    api.sql('service_account_key').insert(
      Array.from({ length: count }, () => ({
        service_account_id: id,
        name: 'k',
        prefix: 'ews_xxxxxx',
        secret_hash: createHash('sha256').update(unique('key')).digest(),
        revoked_at: revokedAt,
      })),
    );
  await filler(49, null);
  await filler(120, new Date());
  t.deepEqual(await api.refused(t, [409, 'SERVICE_ACCOUNT_KEY_LIMIT'], 'POST', `/service-accounts/${id}/keys`, {}), {
    limit: 50,
  });
  const { items } = await api.ok('GET', '/service-accounts?pageSize=100');
  const { keys } = items.find((account: Body) => account.id === id);
  t.is(keys.length, 100);
  t.is(keys.filter(({ revokedAt }: Body) => revokedAt === null).length, 50);
  t.is(keys.at(-1).id, oldest.key.id);
});

test.serial('GET /me tells a service account who it is', async (t) => {
  const { id, name } = await createAccount(['sites:read']);
  const { secret } = await createKey(id);
  const { status, body } = await call(secret, 'GET', '/me');
  t.is(status, 200);
  t.deepEqual(body, {
    user: { id, name, email: '', twoFactorEnabled: false },
    serviceAccount: { id, name, scopes: ['sites:read'] },
  });
});

test.serial('a service account key works on /api/v1 only', async (t) => {
  const secret = await newKey(SCOPES);
  t.is((await call(secret, 'GET', '/sites')).status, 200);
  const headers = { 'x-api-key': secret, 'x-csrf-token': 'orpc' };
  t.is((await running.client.request('POST', '/rpc/sites/list', {}, headers)).status, 401);
  const session = await running.client.request('GET', '/api/auth/get-session', undefined, { 'x-api-key': secret });
  t.is(session.body, null);
});

test.serial('the last use is noted once a minute, not with every request', async (t) => {
  const { id } = await createAccount();
  const { key, secret } = await createKey(id);
  await api.sql.raw(`
    create table written (id text);
    create function note_write() returns trigger language plpgsql as
      $$ begin insert into written values (new.id); return new; end $$;
    create trigger note_write after update on service_account_key for each row execute function note_write()`);
  for (let round = 0; round < 20; round++) t.is((await call(secret, 'GET', '/me')).status, 200);
  await eventually(
    async () => (await api.sql('service_account_key').where({ id: key.id }).first()).last_used_at !== null,
    { what: 'the note of the use' },
  );
  // The minute can turn over once in between.
  const writes = await api.sql('written').where({ id: key.id });
  t.true(writes.length >= 1 && writes.length <= 2, String(writes.length));
});

// Ending ----------------------------------------------------------------------------------------------------------------

test.serial('a revoked key answers 401 at every gateway and stays listed; the other keys go on', async (t) => {
  const account = await createAccount();
  const [first, other] = [await createKey(account.id), await createKey(account.id)];
  for (const at of [running, second]) t.is((await call(first.secret, 'GET', '/me', undefined, at)).status, 200);
  const path = `/service-accounts/${account.id}/keys/${first.key.id}/revoke`;
  const revoked = await api.ok('POST', path, {});
  t.truthy(revoked.revokedAt);
  await refusedEverywhere(first.secret);
  t.is((await call(other.secret, 'GET', '/me')).status, 200);
  t.deepEqual(await api.ok('POST', path, {}), revoked);
  const { items } = await api.ok('GET', '/service-accounts?pageSize=100');
  const listed = items.find(({ id }: Body) => id === account.id).keys;
  t.deepEqual(
    listed.map(({ id, revokedAt }: Body) => [id, revokedAt !== null]),
    [
      [other.key.id, false],
      [first.key.id, true],
    ],
  );
  const audit = await api.audit(account.id);
  t.is(audit.filter(({ action }) => action === 'service_account.key_revoke').length, 1);
});

test.serial('a key of another account is not revoked', async (t) => {
  const [mine, other] = [await createAccount(), await createAccount()];
  const { key, secret } = await createKey(mine.id);
  const path = `/service-accounts/${other.id}/keys/${key.id}/revoke`;
  await api.refused(t, [404, 'SERVICE_ACCOUNT_KEY_NOT_FOUND'], 'POST', path, {});
  t.is((await call(secret, 'GET', '/me')).status, 200);
});

test.serial('the keys of a disabled account answer 401 until it is enabled again', async (t) => {
  const { id } = await createAccount();
  const { secret } = await createKey(id);
  for (const at of [running, second]) t.is((await call(secret, 'GET', '/me', undefined, at)).status, 200);
  await api.ok('PUT', `/service-accounts/${id}`, { enabled: false });
  await refusedEverywhere(secret);
  await api.ok('PUT', `/service-accounts/${id}`, { enabled: true });
  await eventually(async () => (await call(secret, 'GET', '/me', undefined, second)).status === 200);
  t.pass();
});

test.serial('deleting an account deletes its keys', async (t) => {
  const account = await createAccount();
  const { key, secret } = await createKey(account.id);
  for (const at of [running, second]) t.is((await call(secret, 'GET', '/me', undefined, at)).status, 200);
  t.deepEqual(await api.ok('DELETE', `/service-accounts/${account.id}`), {});
  await refusedEverywhere(secret);
  t.is(await api.sql('service_account_key').where({ id: key.id }).first(), undefined);
  const entry = (await api.audit(account.id)).at(-1);
  t.deepEqual(entry, { action: 'service_account.delete', actorType: 'api_key', metadata: { liveKeys: 1 } });
});

test.serial('scopes taken away are gone at every gateway', async (t) => {
  const { id } = await createAccount(['sites:read']);
  const { secret } = await createKey(id);
  for (const at of [running, second]) t.is((await call(secret, 'GET', '/sites', undefined, at)).status, 200);
  await api.ok('PUT', `/service-accounts/${id}`, { scopes: [] });
  await eventually(async () => {
    const answers = await Promise.all([running, second].map((at) => call(secret, 'GET', '/sites', undefined, at)));
    return answers.every(({ status, body }) => status === 403 && body.code === 'SCOPE_REQUIRED');
  });
  t.pass();
});

// What a service account may call --------------------------------------------------------------------------------------

// Authentication 5 as it stands in the specification.
const TABLE: readonly {
  procedure: string;
  endpoint: string;
  scope: string | null;
  /** What it has to be asked with. */
  query?: string;
}[] = [
  { procedure: 'system.status', endpoint: 'GET /system/status', scope: null },
  { procedure: 'account.me', endpoint: 'GET /me', scope: null },
  { procedure: 'dns.catalog', endpoint: 'GET /dns/catalog', scope: null },
  { procedure: 'settings.get', endpoint: 'GET /settings', scope: 'system:read' },
  { procedure: 'clusters.list', endpoint: 'GET /clusters', scope: 'clusters:read' },
  { procedure: 'clusters.get', endpoint: 'GET /clusters/{id}', scope: 'clusters:read' },
  { procedure: 'sites.list', endpoint: 'GET /sites', scope: 'sites:read' },
  { procedure: 'sites.get', endpoint: 'GET /sites/{id}', scope: 'sites:read' },
  { procedure: 'sites.launch', endpoint: 'GET /sites/{id}/launch', scope: 'sites:read' },
  { procedure: 'sites.setEnabled', endpoint: 'PUT /sites/{id}/enabled', scope: 'sites:write' },
  { procedure: 'dns.siteTarget', endpoint: 'GET /sites/{siteId}/cname', scope: 'sites:read' },
  {
    procedure: 'usage.list',
    endpoint: 'GET /usage',
    scope: 'usage:read',
    query: '?from=2026-01-01T00:00:00Z&to=2026-01-01T00:05:00Z',
  },
  { procedure: 'usage.changes', endpoint: 'GET /usage/changes', scope: 'usage:read' },
];

const endpointOf = ({ method, path }: AnyProcedure) => `${method} ${path}`;
const request = (secret: string, endpoint: string, body: unknown = {}, id = 'none') => {
  const [method = '', path = ''] = endpoint.split(' ');
  return call(secret, method, path.replace(/\{[^}]+\}/g, id), /GET|DELETE/.test(method) ? undefined : body);
};

test.serial('the table names procedures and endpoints as the contract does', (t) => {
  for (const { procedure, endpoint } of TABLE) {
    const declared = PROCEDURES.get(procedure);
    t.is(declared && endpointOf(declared), endpoint, procedure);
  }
});

test.serial(
  'every other procedure answers SERVICE_ACCOUNT_FORBIDDEN, whatever the scopes, and does nothing',
  async (t) => {
    const secret = await newKey(SCOPES);
    const listed = new Set(TABLE.map(({ procedure }) => procedure));
    const audited = () => api.sql('audit_entry').max('id').first();
    const before = await audited();
    for (const procedure of PROCEDURES.values()) {
      if (procedure.access === 'public' || listed.has(procedure.name)) continue;
      const { status, body } = await request(secret, endpointOf(procedure));
      t.is(`${status} ${body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN', procedure.name);
    }
    t.deepEqual(await audited(), before);
  },
);

test.serial('a listed procedure without its scope answers SCOPE_REQUIRED and names it', async (t) => {
  for (const { procedure, endpoint, scope } of TABLE) {
    if (scope === null) continue;
    const secret = await newKey(SCOPES.filter((other) => other !== scope));
    const { status, body } = await request(secret, endpoint, { enabled: true });
    t.like({ status, ...body }, { status: 403, code: 'SCOPE_REQUIRED', data: { scope } }, procedure);
  }
});

test.serial('a listed procedure answers with its scope alone', async (t) => {
  const clusterId = await api.cluster('scoped');
  const site = await api.site(clusterId, 'scoped.example');
  for (const { procedure, endpoint, scope, query = '' } of TABLE) {
    const secret = await newKey(scope === null ? [] : [scope]);
    const id = endpoint.includes('/clusters/') ? clusterId : site.id;
    const { status } = await request(secret, endpoint + query, { enabled: false }, id);
    t.is(status, 200, procedure);
  }
  const [entry] = await api.sql('audit_entry').where({ action: 'site.disable', target_id: site.id });
  t.is(entry.actor_type, 'service_account');
  t.regex(entry.actor_name, /^account /);
});

// Counting and replaying -----------------------------------------------------------------------------------------------

test.serial('service account keys are not counted', async (t) => {
  const secret = await newKey();
  const counters = () => redis.keys(`${running.env.SVC_REDIS_PREFIX}svc:rate:*`);
  const before = (await counters()).length;
  for (let batch = 0; batch < 13; batch++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => call(secret, 'GET', '/me')));
    t.true(answers.every(({ status }) => status === 200));
  }
  t.is((await counters()).length, before);
});

test.serial('each service account has its own namespace of idempotency keys', async (t) => {
  const clusterId = await api.cluster('namespaces');
  const site = await api.site(clusterId, 'namespaces.example');
  const [mine, other] = [await createAccount(['sites:write']), await createAccount(['sites:write'])];
  const keys = [await createKey(mine.id), await createKey(mine.id), await createKey(other.id)];
  const disable = (secret: string) =>
    running.client.request<Body>(
      'PUT',
      `/api/v1/sites/${site.id}/enabled`,
      { enabled: false },
      { 'x-api-key': secret, 'idempotency-key': 'shared' },
    );
  const replayed = async (secret: string) => (await disable(secret)).headers.get('idempotent-replayed');
  t.is(await replayed(running.client.accessKey), null);
  t.is(await replayed(keys[0]!.secret), null);
  t.is(await replayed(keys[1]!.secret), 'true');
  t.is(await replayed(keys[2]!.secret), null);
  t.is(await replayed(running.client.accessKey), 'true');
});
