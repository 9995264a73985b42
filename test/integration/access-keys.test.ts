// Access keys: how they are made, what they may do, and how they end.
import { createHash } from 'node:crypto';
import test from 'ava';
import pg from 'pg';
import { CallError } from '../../bin/lib/console-client.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';

interface Key {
  id: string;
  name: string;
  prefix: string;
  scope: string;
  state: string;
  lastUsedAt: string | null;
  revokedAt: string | null;
}

interface ErrorBody {
  code: string;
  data: Record<string, unknown>;
}

let running: TestConsole;
let database: pg.Pool;

test.before(async () => {
  running = await startTestConsole();
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 4 });
});

test.after.always(async () => {
  await database?.end();
  await running?.stop();
});

const createKey = (name: string, scope?: string) =>
  running.client.rpc<{ key: Key; secret: string }>('accessKeys.create', scope ? { name, scope } : { name });

const withKey = <T = ErrorBody>(
  secret: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => running.client.request<T>(method, `/api/v1${path}`, body, { 'x-api-key': secret, ...headers });

const clusterCount = async () => Number((await database.query('select count(*) from cluster')).rows[0].count);

// Keys ----------------------------------------------------------------------------------------------------------------

test.serial('a key is made by a session, its secret is answered once, and only its hash is stored', async (t) => {
  const { key, secret } = await createKey('deploy');
  t.regex(secret, /^ewk_[A-Za-z0-9_-]{43}$/);
  t.like(key, { name: 'deploy', scope: 'readwrite', state: 'active', prefix: secret.slice(0, 10) });
  t.like(key, { lastUsedAt: null, revokedAt: null });
  const { rows } = await database.query('select * from access_key where id = $1', [key.id]);
  t.deepEqual(rows[0].secret_hash, createHash('sha256').update(secret).digest());
  t.false(JSON.stringify(rows).includes(secret));
  const list = await running.client.api<{ items: Key[]; total: number }>('GET', '/access-keys');
  t.false(JSON.stringify(list).includes(secret));
  t.true(list.items.some((item) => item.id === key.id));
  const { rows: entries } = await database.query(
    `select * from audit_entry where action = 'api_key.create' and target_id = $1`,
    [key.id],
  );
  t.like(entries[0], { actor_type: 'user', target_type: 'api_key', target_name: 'deploy' });
  t.false(JSON.stringify(entries).includes(secret));
});

for (const [body, path, keyword] of [
  [{}, '/name', 'required'],
  [{ name: '' }, '/name', 'minLength'],
  [{ name: 'x'.repeat(65) }, '/name', 'maxLength'],
  [{ name: ' \t ' }, '/name', 'pattern'],
  [{ name: 5 }, '/name', 'type'],
  [{ name: 'x', scope: 'write' }, '/scope', 'const'],
  [{ name: 'x', key: 'y' }, '/key', 'additionalProperties'],
] as const) {
  test.serial(`creating with ${JSON.stringify(body).slice(0, 40)} answers 400 at ${path}`, async (t) => {
    const error = await t.throwsAsync(running.client.rpc('accessKeys.create', body), { instanceOf: CallError });
    t.is(error.answer.status, 400);
    const { issues } = (error.answer.body as ErrorBody).data as { issues: { path: string; keyword: string }[] };
    t.true(issues.some((issue) => issue.path === path && issue.keyword === keyword));
  });
}

test.serial('names of 1 and 64 characters are accepted', async (t) => {
  t.is((await createKey('x')).key.name, 'x');
  t.is((await createKey('x'.repeat(64))).key.name.length, 64);
});

test.serial('a key cannot make keys', async (t) => {
  const answer = await withKey(running.client.accessKey, 'POST', '/access-keys', { name: 'child' });
  t.is(answer.status, 403);
  t.is(answer.body.code, 'ACCESS_KEY_SESSION_REQUIRED');
});

test.serial('making a key refuses an idempotency key and makes nothing', async (t) => {
  const headers = { 'idempotency-key': 'once' };
  const fresh = await createKey('for the refusal');
  const answer = await withKey(fresh.secret, 'POST', '/access-keys', { name: 'x' }, headers);
  t.true(['ACCESS_KEY_SESSION_REQUIRED', 'IDEMPOTENCY_KEY_UNSUPPORTED'].includes(answer.body.code));
});

test.serial('a read-only key reads and changes nothing', async (t) => {
  const { secret } = await createKey('reader', 'read');
  for (const path of ['/me', '/clusters', '/access-keys', '/settings', '/system/status']) {
    t.is((await withKey(secret, 'GET', path)).status, 200, path);
  }
  const before = await clusterCount();
  for (const [method, path, body] of [
    ['POST', '/clusters', { name: 'never' }],
    ['PATCH', '/clusters/x', {}],
    ['DELETE', '/clusters/x', undefined],
    ['DELETE', '/access-keys/x', undefined],
  ] as const) {
    const answer = await withKey(secret, method, path, body);
    t.is(answer.status, 403, `${method} ${path}`);
    t.is(answer.body.code, 'ACCESS_KEY_READ_ONLY');
  }
  t.is(await clusterCount(), before);
});

test.serial('a revoked key answers 401 at once and stays listed', async (t) => {
  const { key, secret } = await createKey('short');
  t.is((await withKey(secret, 'GET', '/me')).status, 200);
  const revoked = await running.client.api<Key>('DELETE', `/access-keys/${key.id}`);
  t.truthy(revoked.revokedAt);
  t.is(revoked.state, 'revoked');
  await eventually(async () => (await withKey(secret, 'GET', '/me')).status === 401, { what: 'the refusal' });
  const again = await running.client.api<Key>('DELETE', `/access-keys/${key.id}`);
  t.is(again.revokedAt, revoked.revokedAt);
  const { items } = await running.client.api<{ items: Key[] }>('GET', '/access-keys?pageSize=100');
  t.like(
    items.find((item) => item.id === key.id),
    { state: 'revoked', revokedAt: revoked.revokedAt },
  );
  const { rowCount } = await database.query(
    `select 1 from audit_entry where action = 'api_key.revoke' and target_id = $1 and actor_type = 'api_key'`,
    [key.id],
  );
  t.is(rowCount, 1);
});

test.serial('revoking a key that is not there answers 404', async (t) => {
  const answer = await withKey(running.client.accessKey, 'DELETE', '/access-keys/none');
  t.is(answer.status, 404);
  t.is(answer.body.code, 'ACCESS_KEY_NOT_FOUND');
});

test.serial('a revocation reaches another gateway', async (t) => {
  const second = await startTestConsole({
    env: { REDIS_URL: running.env.REDIS_URL! },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
  });
  try {
    const { key, secret } = await createKey('everywhere');
    const me = () => second.client.request('GET', '/api/v1/me', undefined, { 'x-api-key': secret });
    t.is((await me()).status, 200);
    await running.client.api('DELETE', `/access-keys/${key.id}`);
    await eventually(async () => (await me()).status === 401, { what: 'the refusal at the other gateway' });
    t.pass();
  } finally {
    await second.stop();
  }
});

test.serial('the last use of a key is noted', async (t) => {
  const { key, secret } = await createKey('used');
  await withKey(secret, 'GET', '/me');
  await withKey(secret, 'GET', '/me');
  const used = await eventually(
    async () => {
      const { rows } = await database.query('select last_used_at from access_key where id = $1', [key.id]);
      return (rows[0].last_used_at as Date | null) ?? undefined;
    },
    { what: 'the note of the use' },
  );
  t.true(used.getTime() <= Date.now());
});
