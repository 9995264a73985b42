// Idempotency-Key on POST, PUT and PATCH: every case of the specification's table (Authentication 8), over two gateways.
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { Answer } from '../../bin/lib/console-client.ts';
import { LostClaims } from '../../services/api-gateway/lost-claims.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { rawRequest } from '../helpers/raw-http.ts';
import type { Body } from '../helpers/resources.ts';

let running: TestConsole;
let second: TestConsole;
let database: pg.Pool;

test.before(async () => {
  running = await startTestConsole();
  second = await startTestConsole({
    env: { REDIS_URL: running.env.REDIS_URL! },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
  });
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 4 });
});

test.after.always(async () => {
  await database?.end();
  await second?.stop();
  await running?.stop();
});

const withKey = (
  secret: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  at: TestConsole = running,
) => at.client.request<Body>(method, `/api/v1${path}`, body, { 'x-api-key': secret, ...headers });

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

const create = (name: string, key: string, secret = running.client.accessKey, at: TestConsole = running) =>
  withKey(secret, 'POST', '/clusters', { name }, { 'idempotency-key': key }, at);

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
  const other = await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'other' });
  t.is((await create(name, name)).status, 201);
  const quoted = await create(name, `"${name}"`, other.secret);
  t.is(quoted.status, 201);
  t.is(quoted.headers.get('idempotent-replayed'), 'true');
});

test.serial('of 100 equal requests at once, at two gateways, one runs', async (t) => {
  const name = unique('crowd');
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      create(name, name, running.client.accessKey, index % 2 === 0 ? running : second),
    ),
  );
  const ran = answers.filter(({ status, headers }) => status === 201 && headers.get('idempotent-replayed') === null);
  t.is(ran.length, 1);
  for (const { status, body, headers } of answers.filter((answer) => answer !== ran[0])) {
    const repeated = status === 201 && headers.get('idempotent-replayed') === 'true' && body.id === ran[0]!.body.id;
    t.true(repeated || (status === 409 && body.code === 'IDEMPOTENCY_IN_PROGRESS'), `${status} ${body.code}`);
  }
  t.is((await database.query('select 1 from cluster where name = $1', [name])).rowCount, 1);
  const { rowCount } = await database.query(
    `select 1 from audit_entry where action = 'cluster.create' and target_name = $1`,
    [name],
  );
  t.is(rowCount, 1);
});

// One procedure of each way to change something; the replay is what was answered first, its X-Svc-Change included.
for (const { what, method, path, body, changes } of [
  { what: 'a create with a revision', method: 'POST', path: '/sites', changes: true, body: site('replayed.example') },
  { what: 'a create without one', method: 'POST', path: '/regions', changes: false, body: { name: 'R', code: 'rr' } },
  {
    what: 'a change of every cluster, which is published after its transaction',
    method: 'POST',
    path: '/ip-lists',
    changes: true,
    body: { name: 'replayed', kind: 'block', entries: ['203.0.113.9'] },
  },
  {
    what: 'a ban, which has a feed instead of revisions',
    method: 'POST',
    path: '/bans',
    changes: true,
    body: { scope: 'platform', cidr: '203.0.113.77', reason: 'abuse', durationSeconds: 600 },
  },
  { what: 'a setting', method: 'PUT', path: '/settings/bans', changes: false, body: { maxTotal: 5000 } },
  { what: 'a change of nothing', method: 'PUT', path: '/settings/bans', changes: false, body: { maxTotal: 5000 } },
]) {
  test.serial(`${what} is replayed as it was answered, at the other gateway too`, async (t) => {
    const headers = { 'idempotency-key': unique('replay') };
    const first = await withKey(running.client.accessKey, method, path, body, headers);
    t.true(first.status === 200 || first.status === 201, JSON.stringify(first.body));
    t.is(first.headers.get('x-svc-change') !== null, changes);
    for (const at of [running, second]) {
      const again = await withKey(running.client.accessKey, method, path, body, headers, at);
      t.is(again.headers.get('idempotent-replayed'), 'true');
      t.is(again.status, first.status);
      t.is(again.headers.get('x-svc-change'), first.headers.get('x-svc-change'));
      t.deepEqual(again.body, first.body);
    }
  });
}

function site(domain: string) {
  return { domains: [domain], origins: [{ address: 'origin.example' }] };
}

test.serial('the body is compared byte by byte, as it was sent', async (t) => {
  const name = unique('bytes');
  const send = (body: string) =>
    withKey(running.client.accessKey, 'POST', '/clusters', body, {
      'idempotency-key': name,
      'content-type': 'application/json',
    });
  const text = JSON.stringify({ name });
  t.is((await send(text)).status, 201);
  t.is((await send(text)).headers.get('idempotent-replayed'), 'true');
  for (const other of [`${text} `, text.replace(':', ': '), text.replace('name', '\\u006eame')]) {
    t.is((await send(other)).body.code, 'IDEMPOTENCY_KEY_MISMATCH', other);
  }
});

test.serial('the query is part of the request, in the order it was sent', async (t) => {
  const key = unique('query');
  const send = (query: string) =>
    withKey(running.client.accessKey, 'POST', `/clusters?${query}`, { name: key }, { 'idempotency-key': key });
  // A refusal like any other: stored and repeated.
  t.is((await send('a=1&b=2')).status, 400);
  t.is((await send('a=1&b=2')).headers.get('idempotent-replayed'), 'true');
  t.is((await send('b=2&a=1')).status, 422);
  t.is((await send('a=1')).status, 422);
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

const readOnlyKey = async () =>
  (await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'r', scope: 'read' })).secret;

/** The answer comes again, from the other gateway too, though the same request would be answered otherwise now. */
async function repeats(t: ExecutionContext, status: number, send: (at: TestConsole) => Promise<Answer<Body>>) {
  const first = await send(running);
  t.is(first.status, status);
  t.is(first.headers.get('idempotent-replayed'), null);
  for (const at of [running, second]) {
    const again = await send(at);
    t.is(again.status, status);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(again.body, first.body);
  }
}

test.serial('403 answers are stored and repeated, to every caller of the namespace', async (t) => {
  const name = unique('forbidden');
  const secret = await readOnlyKey();
  await repeats(t, 403, (at) => create(name, name, secret, at));
  const other = await create(name, name);
  t.is(`${other.status} ${other.body.code}`, '403 ACCESS_KEY_READ_ONLY');
  t.is(other.headers.get('idempotent-replayed'), 'true');
  t.is((await create(`${name}x`, name, secret)).body.code, 'IDEMPOTENCY_KEY_MISMATCH');
  t.is((await create(name, `${name}-next`)).status, 201);
});

test.serial('what one key has changed is not repeated to one that may not change it', async (t) => {
  const name = unique('unread');
  t.is((await create(name, name)).status, 201);
  const refused = await create(name, name, await readOnlyKey());
  t.is(refused.body.code, 'ACCESS_KEY_READ_ONLY');
  t.is(refused.headers.get('idempotent-replayed'), null);
  t.is((await create(name, name)).headers.get('idempotent-replayed'), 'true');
});

test.serial('415 answers are stored and repeated', async (t) => {
  const key = unique('media');
  const send = (body: string, at: TestConsole) =>
    withKey(
      running.client.accessKey,
      'POST',
      '/clusters',
      body,
      { 'idempotency-key': key, 'content-type': 'text/xml' },
      at,
    );
  await repeats(t, 415, (at) => send('<name/>', at));
  t.is((await send('<other/>', running)).body.code, 'IDEMPOTENCY_KEY_MISMATCH');
});

test.serial('413 answers are stored and repeated', async (t) => {
  const key = unique('large');
  const send = (body: string, at: TestConsole) =>
    withKey(
      running.client.accessKey,
      'POST',
      '/clusters',
      body,
      { 'idempotency-key': key, 'content-type': 'application/json' },
      at,
    );
  await repeats(t, 413, (at) => send(`{"name":"${'x'.repeat(1024 * 1024)}"}`, at));
  t.is((await send('{}', running)).body.code, 'IDEMPOTENCY_KEY_MISMATCH');
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
    const taken = `select 1 from idempotency_record where key = $1 and started_at > now() - interval '10 minutes'`;
    return (await database.query(taken, [name])).rowCount === 1;
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

test.serial('a record that still runs after 10 minutes is taken over by the same request only', async (t) => {
  const name = unique('other-request');
  await database.query(
    `insert into idempotency_record (namespace, key, method, path, body_hash, state, started_at)
     values ('access-keys', $1, 'POST', '/api/v1/regions', '\\x00', 'running', now() - interval '11 minutes')`,
    [name],
  );
  t.is((await create(name, name)).body.code, 'IDEMPOTENCY_KEY_MISMATCH');
});

test.serial('a claim that nobody knows of is given back, even when it is made after that was asked for', async (t) => {
  const lost = new LostClaims(running.running.runtime);
  const [late, other] = [unique('late'), unique('other')];
  const record = (key: string, attempt: number) =>
    database.query(
      `insert into idempotency_record (namespace, key, method, path, body_hash, state, attempt)
       values ('test', $1, 'POST', '/', '', 'running', $2)`,
      [key, attempt],
    );
  await record(other, 7);
  lost.add({ namespace: 'test', key: late, attempt: 5 });
  lost.add({ namespace: 'test', key: other, attempt: 6 });
  await record(late, 5);
  const stateOf = async (key: string) =>
    (await database.query('select state from idempotency_record where key = $1', [key])).rows[0].state;
  await eventually(async () => (await stateOf(late)) === 'released');
  t.is(await stateOf(other), 'running');
});

test.serial('a record that runs for less than 10 minutes is not taken over', async (t) => {
  const name = unique('patient');
  const unlock = await lockClusters();
  t.teardown(unlock);
  const first = create(name, name);
  const found = () => database.query('select attempt from idempotency_record where key = $1', [name]);
  const { attempt } = await eventually(async () => (await found()).rows[0]);
  await database.query(`update idempotency_record set started_at = now() - interval '9 minutes' where key = $1`, [
    name,
  ]);
  t.is((await create(name, name)).body.code, 'IDEMPOTENCY_IN_PROGRESS');
  t.is((await found()).rows[0].attempt, attempt);
  await unlock();
  await first;
});

test.serial('bytes beyond printable ASCII in the header make it malformed, at its ends as well', async (t) => {
  const before = await clusterCount();
  for (const key of ['\u00a0key', 'key\u00a0', 'k\u00e9y', '"k\u00e9y"', 'a\tb']) {
    const body = '{"name":"never"}';
    const head = [
      'POST /api/v1/clusters HTTP/1.1',
      'Host: localhost',
      `X-Api-Key: ${running.client.accessKey}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      `Idempotency-Key: ${key}`,
    ];
    const answer = await rawRequest(running.url, Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
    t.is(answer.status, 400, JSON.stringify(key));
    t.is(JSON.parse(answer.body).code, 'IDEMPOTENCY_KEY_INVALID');
  }
  t.is(await clusterCount(), before);
});
