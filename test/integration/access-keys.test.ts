// Access keys and what the gateway does with them: scope, revocation, rate limit, idempotency.
import { createHash } from 'node:crypto';
import test from 'ava';
import { Redis } from 'ioredis';
import pg from 'pg';
import { CallError } from '../../bin/lib/console-client.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';

interface Key {
  id: string;
  name: string;
  prefix: string;
  scope: string;
  lastUsedAt: string | null;
  revokedAt: string | null;
}

interface ErrorBody {
  code: string;
  data: Record<string, unknown>;
}

let running: TestConsole;
let database: pg.Pool;
let redis: Redis;

test.before(async () => {
  running = await startTestConsole();
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 4 });
  redis = new Redis(running.env.REDIS_URL!);
});

test.after.always(async () => {
  redis?.disconnect();
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

/** Lets nobody change clusters until the answered function is called; calling it again does nothing. */
async function lockClusters(): Promise<() => Promise<void>> {
  const client = await database.connect();
  await client.query('begin');
  await client.query('lock table cluster in share mode');
  let unlocking: Promise<void> | undefined;
  const unlock = async () => {
    await client.query('rollback');
    client.release();
  };
  return () => {
    unlocking ??= unlock();
    return unlocking;
  };
}

let sequence = 0;
const unique = (prefix: string) => `${prefix}-${++sequence}`;

// Keys ----------------------------------------------------------------------------------------------------------------

test.serial('a key is made by a session, its secret is answered once, and only its hash is stored', async (t) => {
  const { key, secret } = await createKey('deploy');
  t.regex(secret, /^ewk_[A-Za-z0-9_-]{43}$/);
  t.like(key, { name: 'deploy', scope: 'readwrite', prefix: secret.slice(0, 10), lastUsedAt: null, revokedAt: null });
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
  await eventually(async () => (await withKey(secret, 'GET', '/me')).status === 401, { what: 'the refusal' });
  const again = await running.client.api<Key>('DELETE', `/access-keys/${key.id}`);
  t.is(again.revokedAt, revoked.revokedAt);
  const { items } = await running.client.api<{ items: Key[] }>('GET', '/access-keys?pageSize=100');
  t.truthy(items.find((item) => item.id === key.id)?.revokedAt);
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

// Rate limit ----------------------------------------------------------------------------------------------------------

test.serial(
  '600 requests in a row pass, the next one is refused before its body is read and does not count',
  async (t) => {
    const { key, secret } = await createKey('busy');
    const name = `${running.env.SVC_REDIS_PREFIX}svc:rate:${key.id}`;
    for (let batch = 0; batch < 12; batch++) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => withKey(secret, 'GET', '/system/status')));
      t.true(answers.every(({ status }) => status === 200));
    }
    // Public procedures ask for no key and are not counted; these are.
    for (let batch = 0; batch < 12; batch++) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => withKey(secret, 'GET', '/me')));
      t.true(
        answers.every(({ status }) => status === 200),
        `batch ${batch}`,
      );
    }
    t.is(await redis.get(name), '600');
    const left = await redis.pttl(name);
    const before = await clusterCount();
    const refused = await withKey(secret, 'POST', '/clusters', { name: 'late' });
    t.is(refused.status, 429);
    t.is(refused.body.code, 'API_KEY_RATE_LIMITED');
    const wait = refused.body.data.retryAfterSeconds as number;
    t.true(Number.isInteger(wait) && wait >= 1 && wait <= 60);
    t.is(refused.headers.get('retry-after'), String(wait));
    t.is(await redis.get(name), '600');
    t.true((await redis.pttl(name)) <= left);
    t.is(await clusterCount(), before);
    t.is((await withKey(running.client.accessKey, 'GET', '/me')).status, 200);
    // 60 s of silence, shortened: the count lives exactly as long as the key in Redis.
    await redis.pexpire(name, 1);
    await eventually(async () => (await redis.exists(name)) === 0);
    t.is((await withKey(secret, 'GET', '/me')).status, 200);
    t.is(await redis.get(name), '1');
  },
);

test.serial('the count holds over several gateways and restarts its clock with every counted request', async (t) => {
  const second = await startTestConsole({
    env: { REDIS_URL: running.env.REDIS_URL! },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
  });
  try {
    const { key, secret } = await createKey('spread');
    const name = `${running.env.SVC_REDIS_PREFIX}svc:rate:${key.id}`;
    const urls = [running, second];
    for (let batch = 0; batch < 12; batch++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          urls[index % 2]!.client.request('GET', '/api/v1/me', undefined, { 'x-api-key': secret }),
        ),
      );
    }
    for (const { client } of urls) {
      t.is((await client.request('GET', '/api/v1/me', undefined, { 'x-api-key': secret })).status, 429);
    }
    await redis.set(name, '10', 'PX', 5_000);
    await withKey(secret, 'GET', '/me');
    t.is(await redis.get(name), '11');
    t.true((await redis.pttl(name)) > 50_000);
  } finally {
    await second.stop();
  }
});

// Idempotency ---------------------------------------------------------------------------------------------------------

const create = (name: string, key: string, secret = running.client.accessKey) =>
  withKey<ErrorBody & { id: string }>(secret, 'POST', '/clusters', { name }, { 'idempotency-key': key });

test.serial('the same request is answered again without running again', async (t) => {
  const name = unique('once');
  const first = await create(name, name);
  t.is(first.status, 201);
  t.is(first.headers.get('idempotent-replayed'), null);
  t.truthy(first.headers.get('x-svc-change'));
  const second = await create(name, name);
  t.is(second.status, 201);
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.is(second.headers.get('x-svc-change'), first.headers.get('x-svc-change'));
  t.deepEqual(second.body, first.body);
  const { rowCount } = await database.query('select 1 from cluster where name = $1', [name]);
  t.is(rowCount, 1);
});

test.serial('a key bare and the same key quoted are one; all access keys share one namespace', async (t) => {
  const name = unique('shared');
  const other = await createKey('other');
  t.is((await create(name, name)).status, 201);
  const quoted = await create(name, `"${name}"`, other.secret);
  t.is(quoted.status, 201);
  t.is(quoted.headers.get('idempotent-replayed'), 'true');
});

test.serial('of many equal requests at once one runs', async (t) => {
  const name = unique('crowd');
  const answers = await Promise.all(Array.from({ length: 20 }, () => create(name, name)));
  const ran = answers.filter(({ status, headers }) => status === 201 && headers.get('idempotent-replayed') === null);
  t.is(ran.length, 1);
  for (const { status, body, headers } of answers.filter((answer) => answer !== ran[0])) {
    const repeated = status === 201 && headers.get('idempotent-replayed') === 'true' && body.id === ran[0]!.body.id;
    t.true(repeated || (status === 409 && body.code === 'IDEMPOTENCY_IN_PROGRESS'), `${status} ${body.code}`);
  }
  t.is((await database.query('select 1 from cluster where name = $1', [name])).rowCount, 1);
});

test.serial('another body, path, query or method with the key is a mismatch', async (t) => {
  const name = unique('mismatch');
  const first = await create(name, name);
  t.is(first.status, 201);
  const headers = { 'idempotency-key': name };
  const { accessKey } = running.client;
  for (const [method, path, body] of [
    ['POST', '/clusters', { name: `${name}x` }],
    ['POST', '/clusters?x=1', { name }],
    ['POST', '/regions', { name }],
    ['PATCH', `/clusters/${first.body.id}`, { name }],
  ] as const) {
    const answer = await withKey(accessKey, method, path, body, headers);
    t.is(answer.status, 422, `${method} ${path}`);
    t.is(answer.body.code, 'IDEMPOTENCY_KEY_MISMATCH');
  }
});

test.serial('4xx answers are stored and repeated', async (t) => {
  const name = unique('taken');
  await create(name, `${name}-first`);
  const refused = await create(name, name);
  t.is(refused.status, 409);
  await database.query('update cluster set name = $1 where name = $2', [`${name}-renamed`, name]);
  const again = await create(name, name);
  t.is(again.status, 409);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.deepEqual(again.body, refused.body);
  const invalid = await create('Not Valid', `${name}-invalid`);
  t.is(invalid.status, 400);
  t.is((await create('Not Valid', `${name}-invalid`)).headers.get('idempotent-replayed'), 'true');
});

test.serial('while the first request runs the second is refused', async (t) => {
  const name = unique('running');
  const unlock = await lockClusters();
  t.teardown(unlock);
  const first = create(name, name);
  await eventually(async () => {
    const { rowCount } = await database.query(`select 1 from idempotency_record where key = $1 and state = 'running'`, [
      name,
    ]);
    return rowCount === 1;
  });
  const second = await create(name, name);
  t.is(second.status, 409);
  t.is(second.body.code, 'IDEMPOTENCY_IN_PROGRESS');
  await unlock();
  // On a machine that is busy enough the lock was not had in time.
  t.true([201, 503].includes((await first).status));
});

test.serial('5xx answers are not stored: the same key runs again', async (t) => {
  const name = unique('busy-table');
  const unlock = await lockClusters();
  t.teardown(unlock);
  const unavailable = await create(name, name);
  t.is(unavailable.status, 503);
  t.is(unavailable.body.code, 'SERVICE_UNAVAILABLE');
  t.truthy(unavailable.headers.get('retry-after'));
  await unlock();
  const retried = await create(name, name);
  t.is(retried.status, 201);
  t.is(retried.headers.get('idempotent-replayed'), null);
});

test.serial('401 and 429 claim no key', async (t) => {
  const name = unique('unclaimed');
  t.is((await create(name, name, `ewk_${'A'.repeat(43)}`)).status, 401);
  const { rowCount } = await database.query('select 1 from idempotency_record where key = $1', [name]);
  t.is(rowCount, 0);
});

test.serial('a record that runs for more than 10 minutes is taken over, and its owner cannot finish', async (t) => {
  const name = unique('interrupted');
  const unlock = await lockClusters();
  t.teardown(unlock);
  const first = create(name, name);
  await eventually(async () => {
    const { rowCount } = await database.query(`select 1 from idempotency_record where key = $1 and state = 'running'`, [
      name,
    ]);
    return rowCount === 1;
  });
  // Ten minutes later, the first attempt still stands at the lock.
  await database.query(`update idempotency_record set started_at = now() - interval '11 minutes' where key = $1`, [
    name,
  ]);
  const second = create(name, name);
  await eventually(async () => {
    const { rowCount } = await database.query(`select 1 from idempotency_record where key = $1 and attempt = 2`, [
      name,
    ]);
    return rowCount === 1;
  });
  await unlock();
  const [fenced, done] = await Promise.all([first, second]);
  const statuses = [fenced.status, done.status].sort();
  t.true(statuses.filter((status) => status === 201).length <= 1, statuses.join());
  const { rowCount } = await database.query('select 1 from cluster where name = $1', [name]);
  const repeated = await create(name, name);
  t.is(repeated.status, 201);
  t.true(rowCount === 0 || repeated.headers.get('idempotent-replayed') === 'true');
  t.is((await database.query('select 1 from cluster where name = $1', [name])).rowCount, 1);
});

for (const [key, code] of [
  ['', 'IDEMPOTENCY_KEY_INVALID'],
  ['""', 'IDEMPOTENCY_KEY_INVALID'],
  ['"open', 'IDEMPOTENCY_KEY_INVALID'],
  ['x'.repeat(256), 'IDEMPOTENCY_KEY_INVALID'],
  ['"a";b=1', 'IDEMPOTENCY_KEY_INVALID'],
] as const) {
  test.serial(
    `the idempotency key ${JSON.stringify(key.slice(0, 20))} (${key.length}) is refused and nothing runs`,
    async (t) => {
      const before = await clusterCount();
      const answer = await create(unique('refused'), key);
      t.is(answer.status, 400);
      t.is(answer.body.code, code);
      t.is(await clusterCount(), before);
    },
  );
}

test.serial('GET and DELETE ignore the key', async (t) => {
  const headers = { 'idempotency-key': '"broken' };
  t.is((await withKey(running.client.accessKey, 'GET', '/me', undefined, headers)).status, 200);
  t.is((await withKey(running.client.accessKey, 'DELETE', '/clusters/none', undefined, headers)).status, 404);
});

test.serial('records older than 24 hours are forgotten', async (t) => {
  const name = unique('old');
  t.is((await create(name, name)).status, 201);
  await database.query(`update idempotency_record set started_at = now() - interval '25 hours' where key = $1`, [name]);
  const again = await create(name, name);
  t.is(again.status, 409);
  t.is(again.headers.get('idempotent-replayed'), null);
});
