// Setup, sign-in and sessions, over real HTTP.
import { createHash } from 'node:crypto';
import test from 'ava';
import pg from 'pg';
import { ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { database, running } from '../helpers/console-of-file.ts';
import { servers } from '../helpers/servers.ts';

interface ErrorBody {
  code: string;
  data: { issues?: { path: string; keyword: string }[] } & Record<string, unknown>;
}

const ORIGIN = 'http://localhost:3000';
const SIGN_IN = '/api/auth/sign-in/email';
const TEST_OPERATOR_CREDENTIALS = { email: TEST_OPERATOR.email, password: TEST_OPERATOR.password };

const audit = async (action: string) =>
  (await database.query('select * from audit_entry where action = $1 order by id desc', [action])).rows;

const sessions = async () => Number((await database.query('select count(*) from session')).rows[0].count);

async function signedIn(): Promise<ConsoleClient> {
  const client = new ConsoleClient(running.url, ORIGIN);
  await client.signIn(TEST_OPERATOR_CREDENTIALS);
  return client;
}

const getSession = (cookie: string) =>
  running.client.request<null | { session: { id: string; expiresAt: string }; user: { email: string } }>(
    'GET',
    '/api/auth/get-session',
    undefined,
    { cookie },
  );

// Setup ---------------------------------------------------------------------------------------------------------------

test('setup creates the operator, the cluster default with its group, revision 1, and audit entries, once', async (t) => {
  const fresh = await startTestConsole({ setUp: false });
  const base = new ConsoleClient(fresh.url, ORIGIN);
  const own = new pg.Client({ connectionString: fresh.databaseUrl });
  await own.connect();
  try {
    t.deepEqual((await base.request('GET', '/api/v1/system/status')).body, {
      initialized: false,
      version: 'dev',
      publicUrl: ORIGIN,
    });
    const setup = (body: object) => base.request<ErrorBody & { userId: string }>('POST', '/api/v1/system/setup', body);
    const valid = { setupToken: fresh.setupToken!, ...TEST_OPERATOR };

    for (const [field, value, keyword] of [
      ['setupToken', '', 'minLength'],
      ['setupToken', 'x'.repeat(201), 'maxLength'],
      ['name', '', 'minLength'],
      ['name', 'x'.repeat(101), 'maxLength'],
      ['email', 'nobody', 'format'],
      ['email', `${'x'.repeat(250)}@example.com`, 'maxLength'],
      ['password', 'x'.repeat(11), 'minLength'],
      ['password', 'x'.repeat(129), 'maxLength'],
      ['password', 12, 'type'],
      ['admin', true, 'additionalProperties'],
    ] as const) {
      const answer = await setup({ ...valid, [field]: value });
      t.is(answer.status, 400, field);
      t.true(
        answer.body.data.issues?.some((issue) => issue.path === `/${field}` && issue.keyword === keyword),
        field,
      );
    }
    const wrong = await setup({ ...valid, setupToken: `${fresh.setupToken}x` });
    t.is(wrong.status, 403);
    t.is(wrong.body.code, 'SETUP_TOKEN_INVALID');
    const rejected = await own.query(`select * from audit_entry where action = 'system.setup_rejected'`);
    t.is(rejected.rowCount, 1);
    t.like(rejected.rows[0], { actor_type: 'anonymous', actor_id: null, actor_name: null });
    t.is((await own.query('select 1 from "user"')).rowCount, 0);

    const answers = await Promise.all(Array.from({ length: 5 }, () => setup(valid)));
    const done = answers.filter(({ status }) => status === 200);
    t.is(done.length, 1);
    for (const { status, body } of answers.filter((answer) => answer !== done[0])) {
      t.true((status === 409 && body.code === 'SETUP_IN_PROGRESS') || (status === 403 && body.code === 'SETUP_DONE'));
    }
    t.deepEqual((await base.request('GET', '/api/v1/system/status')).body, {
      initialized: true,
      version: 'dev',
      publicUrl: ORIGIN,
    });
    const { rows: clusters } = await own.query(
      `select c.name, g.name as group_name, g.is_default, r.number, r.reason, r.params
         from cluster c join node_group g on g.cluster_id = c.id join config_revision r on r.cluster_id = c.id`,
    );
    t.deepEqual(clusters, [
      {
        name: 'default',
        group_name: 'default',
        is_default: true,
        number: '1',
        reason: 'cluster_created',
        params: { cluster: 'default' },
      },
    ]);
    const { rows: users } = await own.query('select id, name, email, password_hash from "user"');
    t.like(users, [{ id: done[0]!.body.userId, name: TEST_OPERATOR.name, email: TEST_OPERATOR.email }]);
    t.false(users[0].password_hash.includes(TEST_OPERATOR.password));
    t.is((await own.query(`select 1 from audit_entry where action = 'system.setup'`)).rowCount, 1);
    const { rows: states } = await own.query(
      'select setup_token, setup_token_hash, setup_completed_at from console_state',
    );
    t.is(states[0].setup_token, null);
    t.is(states[0].setup_token_hash, null);
    t.truthy(states[0].setup_completed_at);
    const again = await setup(valid);
    t.is(again.status, 403);
    t.is(again.body.code, 'SETUP_DONE');
  } finally {
    await own.end();
    await fresh.stop();
  }
});

test('setup with an idempotency key is answered again, and its refusals are kept of nobody', async (t) => {
  const fresh = await startTestConsole({ setUp: false });
  const own = new pg.Pool({ connectionString: fresh.databaseUrl, max: 1 });
  try {
    const setup = (body: object) =>
      fresh.client.request<ErrorBody>('POST', '/api/v1/system/setup', body, { 'idempotency-key': 'setup' });
    const valid = { setupToken: fresh.setupToken!, ...TEST_OPERATOR };
    const records = async () => (await own.query('select 1 from idempotency_record')).rowCount;
    t.is((await setup({ ...valid, setupToken: 'wrong' })).body.code, 'SETUP_TOKEN_INVALID');
    t.is((await setup({})).status, 400);
    t.is(await records(), 0);
    const first = await setup(valid);
    t.is(first.status, 200);
    const again = await setup(valid);
    t.is(again.status, 200);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(again.body, first.body);
    t.is((await setup({ ...valid, name: 'Other' })).body.code, 'IDEMPOTENCY_KEY_MISMATCH');
    t.is((await own.query('select 1 from "user"')).rowCount, 1);
    const other = { 'idempotency-key': 'later' };
    t.is((await fresh.client.request<ErrorBody>('POST', '/api/v1/system/setup', valid, other)).body.code, 'SETUP_DONE');
    t.is(await records(), 1);
  } finally {
    await own.end();
    await fresh.stop();
  }
});

// Sign-in -------------------------------------------------------------------------------------------------------------

test('signing in answers the user and a cookie, and is audited', async (t) => {
  const answer = await running.client.request<{ user: { email: string } }>('POST', SIGN_IN, {
    email: TEST_OPERATOR.email.toUpperCase(),
    password: TEST_OPERATOR.password,
  });
  t.is(answer.status, 200);
  t.like(answer.body.user, { email: TEST_OPERATOR.email, name: TEST_OPERATOR.name, twoFactorEnabled: false });
  const [cookie = ''] = answer.headers.getSetCookie();
  t.regex(cookie, /^svc_session_[0-9a-f]{8}=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/);
  const token = cookie.split(/[=;]/)[1]!;
  t.false(JSON.stringify(answer.body).includes(token));
  const { rows } = await database.query('select token_hash from session where token_hash = $1', [
    createHash('sha256').update(token).digest(),
  ]);
  t.is(rows.length, 1);
  t.like((await audit('auth.sign_in'))[0], { actor_type: 'user', actor_name: TEST_OPERATOR.name, ip: '127.0.0.1' });
});

test('without rememberMe the cookie ends with the browser', async (t) => {
  const { email, password } = TEST_OPERATOR;
  const answer = await running.client.request('POST', SIGN_IN, { email, password, rememberMe: false });
  t.false(answer.headers.getSetCookie()[0]!.includes('Max-Age'));
});

for (const [what, body] of [
  ['a wrong password', { email: TEST_OPERATOR.email, password: 'wrong password' }],
  ['an unknown user', { email: 'nobody@example.com', password: TEST_OPERATOR.password }],
] as const) {
  test(`${what} is refused alike, without a session, and audited`, async (t) => {
    const before = (await audit('auth.sign_in_failed')).length;
    const answer = await running.client.request<ErrorBody>('POST', SIGN_IN, body);
    t.is(answer.status, 401);
    t.deepEqual({ ...answer.body, message: '' }, {
      defined: false,
      code: 'INVALID_CREDENTIALS',
      status: 401,
      message: '',
      data: {},
    } as never);
    t.deepEqual(answer.headers.getSetCookie(), []);
    const entries = await audit('auth.sign_in_failed');
    t.true(entries.length > before);
    t.true(entries.some((entry) => entry.metadata.email === body.email));
    for (const entry of entries) t.like(entry, { actor_type: 'anonymous', actor_name: null, ip: '127.0.0.1' });
    t.false(JSON.stringify(entries).includes(body.password));
  });
}

for (const body of [
  {},
  { email: 'a@b.co' },
  { email: 1, password: 'x' },
  { email: 'a@b.co', password: 'x', extra: 1 },
]) {
  test(`sign-in with ${JSON.stringify(body)} answers 400`, async (t) => {
    t.is((await running.client.request('POST', SIGN_IN, body)).status, 400);
  });
}

for (const headers of [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: 'http://localhost:3001' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
] as Record<string, string>[]) {
  test(`a POST from ${JSON.stringify(headers)} is refused before anything else`, async (t) => {
    const { email, password } = TEST_OPERATOR;
    const before = await sessions();
    for (const [path, body] of [
      [SIGN_IN, { email, password }],
      ['/api/auth/sign-out', {}],
    ] as const) {
      const answer = await running.client.request<ErrorBody>('POST', path, body, headers);
      t.is(answer.status, 403);
      t.is(answer.body.code, 'CROSS_SITE_REQUEST');
    }
    t.true((await sessions()) >= before);
  });
}

test('a session that was brought to a sign-in ends', async (t) => {
  const client = await signedIn();
  const brought = client.cookie;
  const answer = await client.request('POST', SIGN_IN, TEST_OPERATOR_CREDENTIALS, { cookie: brought });
  t.is(answer.status, 200);
  t.false(answer.headers.getSetCookie()[0]!.startsWith(brought));
  t.is((await getSession(brought)).body, null);
});

test('a chosen session secret is not taken over', async (t) => {
  const client = await signedIn();
  const name = client.cookie.split('=')[0]!;
  const chosen = `${name}=${'A'.repeat(43)}`;
  const answer = await client.request('POST', SIGN_IN, TEST_OPERATOR_CREDENTIALS, { cookie: chosen });
  t.false(answer.headers.getSetCookie()[0]!.includes('AAAA'));
  t.is((await getSession(chosen)).body, null);
});

test('get-session answers the session and its user, or null', async (t) => {
  const client = await signedIn();
  const { status, body, headers } = await getSession(client.cookie);
  t.is(status, 200);
  t.is(body?.user.email, TEST_OPERATOR.email);
  t.true(Date.parse(body!.session.expiresAt) > Date.now() + 6 * 24 * 3600 * 1000);
  t.deepEqual(headers.getSetCookie(), []);
  const nobody = await getSession('');
  t.is(nobody.status, 200);
  t.is(nobody.body, null);
});

test('signing out ends the session at once', async (t) => {
  const client = await signedIn();
  await client.rpc('account.me');
  const answer = await client.request('POST', '/api/auth/sign-out', {}, { cookie: client.cookie });
  t.is(answer.status, 200);
  t.deepEqual(answer.body, { success: true });
  t.true(answer.headers.getSetCookie()[0]!.includes('Max-Age=0'));
  t.is((await getSession(client.cookie)).body, null);
  const error = await t.throwsAsync(client.rpc('account.me'));
  t.true(error?.message.includes('401'));
  t.is((await client.request('POST', '/api/auth/sign-out', {}, { cookie: client.cookie })).status, 200);
});

test('an expired session is none', async (t) => {
  const client = await signedIn();
  const { body } = await getSession(client.cookie);
  await database.query(`update session set expires_at = now() - interval '1 second' where id = $1`, [body!.session.id]);
  t.is((await getSession(client.cookie)).body, null);
  await t.throwsAsync(client.rpc('account.me'), { message: /401/ });
});

test('a session older than a day is prolonged once, with its cookie', async (t) => {
  const client = await signedIn();
  const { body } = await getSession(client.cookie);
  await database.query(
    `update session set refreshed_at = now() - interval '25 hours', expires_at = now() + interval '1 hour' where id = $1`,
    [body!.session.id],
  );
  const headers = { cookie: client.cookie, 'x-csrf-token': 'orpc' };
  const first = await client.request('POST', '/rpc/account/me', {}, headers);
  t.true(first.headers.getSetCookie()[0]?.startsWith(client.cookie));
  const second = await client.request('POST', '/rpc/account/me', {}, headers);
  t.deepEqual(second.headers.getSetCookie(), []);
  const after = (await getSession(client.cookie)).body!;
  t.true(Date.parse(after.session.expiresAt) > Date.now() + 6 * 24 * 3600 * 1000);
});

test('in production a fourth attempt of an address within 10 s is refused, whichever console counts', async (t) => {
  const production = {
    NODE_ENV: 'production',
    SVC_PUBLIC_URL: 'https://console.example.com',
    SVC_TRUSTED_PROXIES: '127.0.0.1',
  };
  const shared = await servers();
  const first = await startTestConsole({ env: production, servers: shared, setUp: false });
  const masterKey = first.env.SVC_MASTER_KEY!;
  const second = await startTestConsole({
    env: production,
    servers: shared,
    database: { url: first.databaseUrl },
    masterKey,
    setUp: false,
  });
  const own = new pg.Client({ connectionString: first.databaseUrl });
  await own.connect();
  const query = (sql: string) => own.query(sql);
  try {
    const attempt = (console: TestConsole, ip: string) =>
      console.client.request<ErrorBody>('POST', SIGN_IN, TEST_OPERATOR_CREDENTIALS, { 'x-forwarded-for': ip });
    // Together, so that a slow machine does not take them beyond the 10 s.
    const four = await Promise.all([first, second, first, second].map((each) => attempt(each, '198.51.100.1')));
    t.deepEqual(four.map(({ status }) => status).sort(), [401, 401, 401, 429]);
    const refused = four.find(({ status }) => status === 429)!;
    t.is(refused.body.code, 'SIGN_IN_RATE_LIMITED');
    t.is(refused.headers.get('retry-after'), String(refused.body.data.retryAfterSeconds));
    t.is((await attempt(second, '198.51.100.2')).status, 401);
    t.truthy(refused.headers.get('strict-transport-security'));
    const network = await Promise.all(['0', '1', '2', 'ffff'].map((host) => attempt(first, `2001:db8::${host}`)));
    t.is(network.filter(({ status }) => status === 429).length, 1);
    t.is((await attempt(first, '2001:db8:0:1::1')).status, 401);
    const setup = () =>
      first.client.request<ErrorBody>(
        'POST',
        '/api/v1/system/setup',
        { setupToken: 'guess', ...TEST_OPERATOR },
        { 'x-forwarded-for': '198.51.100.3' },
      );
    const setups = await Promise.all([setup(), setup(), setup(), setup()]);
    t.deepEqual(setups.map(({ status }) => status).sort(), [403, 403, 403, 429]);
    t.is((await query(`select 1 from audit_entry where action = 'system.setup_rejected'`)).rowCount, 3);
  } finally {
    await own.end();
    await second.stop();
    await first.stop();
  }
});

// Account and settings ------------------------------------------------------------------------------------------------

test('GET /me answers the operator, by key and by session', async (t) => {
  const byKey = await running.client.api<{ user: object }>('GET', '/me');
  t.like(byKey, {
    user: { email: TEST_OPERATOR.email, name: TEST_OPERATOR.name, twoFactorEnabled: false },
    serviceAccount: null,
  });
  t.deepEqual(await running.client.rpc('account.me'), byKey as never);
});

test('GET /settings tells versions and addresses', async (t) => {
  const settings = await running.client.api<Record<string, unknown>>('GET', '/settings');
  t.deepEqual(Object.keys(settings).sort(), [
    'analyticsMode',
    'consoleUrl',
    'nodeApiUrl',
    'nodeCaSha256',
    'setupCompletedAt',
    'version',
  ]);
  t.like(settings, { version: 'dev', consoleUrl: ORIGIN, nodeApiUrl: 'https://localhost:8443', analyticsMode: 'lite' });
  t.regex(String(settings.nodeCaSha256), /^[0-9a-f]{64}$/);
  t.true(Date.parse(String(settings.setupCompletedAt)) <= Date.now());
});
