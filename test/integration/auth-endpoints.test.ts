// What is under /api/auth and who may call it, as the specification lists it; and the change of the password.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import pg from 'pg';
import { type Answer, type ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { AUTH_ENDPOINTS } from '../../contract/auth-endpoints.ts';
import { totpCode } from '../helpers/authenticator.ts';
import { badValues, type Schema } from '../helpers/bad-values.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { database, running } from '../helpers/console-of-file.ts';
import { eventually } from '../helpers/eventually.ts';
import { rawRequest } from '../helpers/raw-http.ts';
import { redisPrefix, servers } from '../helpers/servers.ts';

const ORIGIN = 'http://localhost:3000';
const { email, password, name } = TEST_OPERATOR;
const NEW_PASSWORD = 'another long password';

interface Body {
  code: string;
  error?: string;
  data: { issues: { path: string }[]; retryAfterSeconds?: number };
  user: { email: string };
}

const rows = async (sql: string, values: unknown[] = []) => (await database.query(sql, values)).rows;
const audit = async (action: string) => rows('select * from audit_entry where action = $1 order by id desc', [action]);
const browser = () => new BrowserClient(running.url, ORIGIN);
const isSignedIn = async (client: ConsoleClient) => (await client.auth('GET', '/get-session')).body !== null;

async function signedIn(secret = password): Promise<ConsoleClient> {
  const client = browser();
  await client.signIn({ email, password: secret });
  return client;
}

// Sign-in endpoints of the specification, with who may call them and what limits them in production.
const ENDPOINTS = [
  ['GET', '/api/auth/get-session', 'public', null],
  ['POST', '/api/auth/sign-in/email', 'public', 'sign-in'],
  ['POST', '/api/auth/sign-out', 'public', null],
  ['POST', '/api/auth/change-password', 'session', 'password'],
  ['POST', '/api/auth/two-factor/enable', 'session', 'two-factor'],
  ['POST', '/api/auth/two-factor/disable', 'session', 'two-factor'],
  ['POST', '/api/auth/two-factor/verify-totp', 'public', 'two-factor'],
  ['POST', '/api/auth/two-factor/verify-backup-code', 'public', 'two-factor'],
  ['GET', '/api/auth/passkey/generate-register-options', 'session', null],
  ['POST', '/api/auth/passkey/verify-registration', 'session', 'passkey'],
  ['GET', '/api/auth/passkey/generate-authenticate-options', 'public', null],
  ['POST', '/api/auth/passkey/verify-authentication', 'public', 'passkey'],
  ['GET', '/api/auth/passkey/list-user-passkeys', 'session', null],
  ['POST', '/api/auth/passkey/delete-passkey', 'session', null],
] as const;

test.serial('the contract declares exactly these', (t) => {
  const declared = Object.values(AUTH_ENDPOINTS).map(({ method, path, access, limit }) => [
    method,
    `/api/auth${path}`,
    access,
    limit,
  ]);
  t.deepEqual(declared.sort(), ENDPOINTS.map((each) => [...each]).sort() as never);
});

const isNotFound = (t: { is(a: unknown, b: unknown, m?: string): void }, answer: Answer<Body>, what: string) => {
  t.is(answer.status, 404, what);
  t.is(answer.body.error, 'not_found', what);
};

test.serial('every other method of their paths answers 404', async (t) => {
  for (const [method, path] of ENDPOINTS) {
    for (const other of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      if (other === method) continue;
      const body = other === 'GET' ? undefined : {};
      isNotFound(t, await running.client.request<Body>(other, path, body, { origin: ORIGIN }), `${other} ${path}`);
    }
    t.is((await running.client.request('HEAD', path)).status, 404, `HEAD ${path}`);
  }
});

const VARIANTS: readonly ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => `${path}//`,
  (path) => `${path}%2F`,
  (path) => `${path}%00`,
  (path) => `${path};x=1`,
  (path) => `${path}.json`,
  (path) => path.replace('/api/auth', '/api//auth'),
  (path) => path.replace('/api/auth/', '/api/auth//'),
  (path) => path.replace('/api/auth/', '/api/auth/./'),
  (path) => path.replace('/api/auth/', '/api/auth/x/../'),
  (path) => path.replace('/api/auth/', '/api/auth%2f'),
  (path) => path.replace('/api/auth', '/api/%61uth'),
  (path) => path.replace('/api/auth', '/API/auth'),
  (path) => path.replace('/api/auth', '//api/auth'),
  (path) => path.replace('/api/auth', '/api/v1/auth'),
  (path) => path.replace('/api/auth', '/rpc/auth'),
  (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  (path) => path.replace(/[a-z](?=[^/]*$)/, (letter) => letter.toUpperCase()),
];

test.serial('every other spelling of their paths answers 404', async (t) => {
  for (const [method, path] of ENDPOINTS) {
    for (const variant of VARIANTS) {
      // As bytes: clients put such paths right.
      const target = variant(path);
      const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${ORIGIN}\r\nContent-Length: 0\r\n\r\n`;
      const { status, body } = await rawRequest(running.url, head);
      t.is(status, 404, `${method} ${target}`);
      t.is((JSON.parse(body) as Body).error, 'not_found', `${method} ${target}`);
    }
  }
});

for (const path of [
  '/api/auth',
  '/api/auth/',
  '/api/auth/sign-up/email',
  '/api/auth/api-key/create',
  '/api/auth/api-key/list',
  '/api/auth/api-key/verify',
  '/api/auth/api-key/delete',
  '/api/auth/sign-in/social',
  '/api/auth/forget-password',
  '/api/auth/reset-password',
  '/api/auth/list-sessions',
  '/api/auth/update-user',
  '/api/auth/delete-user',
  '/api/auth/change-email',
  '/api/auth/two-factor/generate-backup-codes',
  '/api/auth/two-factor/send-otp',
  '/api/auth/passkey/update-passkey',
  '/api/auth/session',
  '/api/auth/__proto__',
  '/api/auth/constructor',
]) {
  test.serial(`${path} does not exist`, async (t) => {
    const client = await signedIn();
    const headers = { origin: ORIGIN, cookie: client.cookie, 'x-api-key': running.client.accessKey };
    isNotFound(t, await running.client.request<Body>('GET', path, undefined, headers), 'GET');
    isNotFound(t, await running.client.request<Body>('POST', path, {}, headers), 'POST');
  });
}

test.serial(
  'who needs a session is refused without one, an access key does not help, and nothing is read of the body',
  async (t) => {
    for (const [method, path, access] of ENDPOINTS) {
      if (access !== 'session') continue;
      const body = method === 'POST' ? { unknownField: 1 } : undefined;
      const headers = { origin: ORIGIN, 'x-api-key': running.client.accessKey };
      const { status, body: answer } = await running.client.request<Body>(method, path, body, headers);
      t.like({ status, code: answer.code }, { status: 401, code: 'UNAUTHORIZED' }, path);
    }
    const me = await running.client.request('GET', '/api/auth/get-session', undefined, {
      'x-api-key': running.client.accessKey,
    });
    t.is(me.body, null);
  },
);

test.serial('a session cookie opens nothing under /api/v1, and an access key nothing under /rpc', async (t) => {
  const { cookie } = await signedIn();
  t.is((await running.client.request('GET', '/api/v1/me', undefined, { cookie })).status, 401);
  const key = { 'x-api-key': running.client.accessKey, 'x-csrf-token': 'orpc' };
  t.is((await running.client.request('POST', '/rpc/account/me', {}, key)).status, 401);
  const both = { cookie, 'x-api-key': 'ewk_wrong', 'x-csrf-token': 'orpc' };
  t.is((await running.client.request('POST', '/rpc/account/me', {}, both)).status, 200, 'the key is ignored');
});

test.serial('what comes from another site is refused before anything else, reading or writing', async (t) => {
  const { cookie } = await signedIn();
  for (const [method, path] of ENDPOINTS) {
    const kinds: Record<string, string>[] =
      method === 'POST'
        ? [{ origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }]
        : [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }];
    for (const headers of kinds) {
      const body = method === 'POST' ? {} : undefined;
      const answer = await running.client.request<Body>(method, path, body, { ...headers, cookie });
      t.like({ status: answer.status, code: answer.body.code }, { status: 403, code: 'CROSS_SITE_REQUEST' }, path);
    }
  }
});

test.serial('a form of another site cannot be sent as JSON', async (t) => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    const text = JSON.stringify({ email, password });
    const answer = await running.client.request('POST', '/api/auth/sign-in/email', text, { 'content-type': type });
    t.is(answer.status, 415, type);
  }
});

test.serial('every field refuses every wrong value of its schema, by name, and nothing is written', async (t) => {
  const client = await signedIn();
  const written = async () => (await rows('select count(*) from audit_entry'))[0].count;
  const before = await written();
  for (const endpoint of Object.values(AUTH_ENDPOINTS)) {
    if (endpoint.method === 'GET') {
      const { status } = await client.auth<Body>('GET', `${endpoint.path}?unknownField=1`);
      t.is(status, 400, endpoint.path);
      continue;
    }
    const unknown = { pointer: '/unknownField', why: 'an unknown field', input: { unknownField: 1 } };
    for (const { pointer, why, input } of [unknown, ...badValues(endpoint.input as unknown as Schema, [])]) {
      // Browsers may add members to what an authenticator answers.
      if (pointer.startsWith('/response/') && why === 'an unknown field') continue;
      const { status, body } = await client.auth<Body>('POST', endpoint.path, input);
      t.is(status, 400, `${endpoint.path} ${pointer}: ${why}`);
      const named = body.data.issues.some(({ path }) => path.startsWith(pointer) || pointer.startsWith(`${path}/`));
      t.true(named, `${endpoint.path} ${pointer}: ${why}: ${JSON.stringify(body.data.issues)}`);
    }
  }
  t.is(await written(), before);
});

test.serial('no answer under /api/auth may be kept by a cache', async (t) => {
  const client = await signedIn();
  for (const [method, path] of ENDPOINTS) {
    const { headers } = await client.auth(method, path.slice('/api/auth'.length), method === 'POST' ? {} : undefined);
    t.is(headers.get('cache-control'), 'no-store', path);
  }
});

// Known and unknown users ---------------------------------------------------------------------------------------------

async function hashes(): Promise<number> {
  const metric = await running.running.runtime.metrics.getSingleMetric('svc_password_hashes_total')!.get();
  return metric.values[0]!.value;
}

test.serial('an unknown user costs as many hashes as a known one, and leaves as many audit entries', async (t) => {
  const client = browser();
  for (const [what, credentials] of [
    ['known', { email, password: 'wrong' }],
    ['unknown', { email: 'nobody@example.com', password: 'wrong' }],
    ['not even an address', { email: 'x', password }],
  ] as const) {
    const [before, entries] = [await hashes(), (await audit('auth.sign_in_failed')).length];
    const answer = await client.auth<Body>('POST', '/sign-in/email', credentials);
    t.like({ status: answer.status, code: answer.body.code }, { status: 401, code: 'INVALID_CREDENTIALS' }, what);
    t.is((await hashes()) - before, 1, what);
    t.is((await audit('auth.sign_in_failed')).length - entries, 1, what);
  }
});

// Change of the password ----------------------------------------------------------------------------------------------

/** The password of the other tests again. */
const restore = async (client: ConsoleClient) =>
  client.auth('POST', '/change-password', { currentPassword: NEW_PASSWORD, newPassword: password });

const change = (client: ConsoleClient, body: object = {}) =>
  client.auth<Body>('POST', '/change-password', { currentPassword: password, newPassword: NEW_PASSWORD, ...body });

test.serial('changing the password ends every other session; this one gets a new cookie', async (t) => {
  const [client, other] = [await signedIn(), await signedIn()];
  const old = client.cookie;
  const answer = await change(client, { revokeOtherSessions: true });
  t.is(answer.status, 200);
  t.is(answer.body.user.email, email);
  t.not(client.cookie, old);
  t.true(await isSignedIn(client));
  t.false(await isSignedIn(other));
  t.is((await client.request('GET', '/api/auth/get-session', undefined, { cookie: old })).body, null);
  t.is((await browser().auth('POST', '/sign-in/email', { email, password })).status, 401);
  await signedIn(NEW_PASSWORD);
  const [entry] = await audit('account.password_change');
  t.like(entry, { actor_type: 'user', actor_name: name, target_name: name, ip: '127.0.0.1' });
  t.true(entry.metadata.sessionsEnded >= 1);
  t.false(JSON.stringify(entry).includes(NEW_PASSWORD) || JSON.stringify(entry).includes(password));
  t.is((await restore(client)).status, 200);
});

test.serial('access keys outlive a change of the password', async (t) => {
  const client = await signedIn();
  await change(client);
  t.is(
    (await running.client.request('GET', '/api/v1/me', undefined, { 'x-api-key': running.client.accessKey })).status,
    200,
  );
  await restore(client);
});

for (const [what, body, expected] of [
  ['the wrong current password', { currentPassword: 'wrong' }, 'INVALID_PASSWORD'],
  ['a new password of 11 characters', { newPassword: 'x'.repeat(11) }, 'BAD_REQUEST'],
  ['a new password of 129 characters', { newPassword: 'x'.repeat(129) }, 'BAD_REQUEST'],
  ['other sessions to be kept', { revokeOtherSessions: false }, 'BAD_REQUEST'],
] as const) {
  test.serial(`changing the password with ${what} changes nothing`, async (t) => {
    const [client, other] = [await signedIn(), await signedIn()];
    const entries = (await audit('account.password_change')).length;
    const answer = await change(client, body);
    t.like({ status: answer.status, code: answer.body.code }, { status: 400, code: expected });
    t.true((await isSignedIn(client)) && (await isSignedIn(other)));
    t.is((await audit('account.password_change')).length, entries);
    await signedIn();
  });
}

test.serial('changing the password ends trusted devices and half-way sign-ins', async (t) => {
  const client = await signedIn();
  const { totpURI } = (await client.auth<{ totpURI: string }>('POST', '/two-factor/enable', { password })).body;
  await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(totpURI), trustDevice: true });
  const halfWay = browser();
  await halfWay.auth('POST', '/sign-in/email', { email, password });
  t.deepEqual(await rows('select (select count(*) from second_step) + (select count(*) from trusted_device) as n'), [
    { n: '2' },
  ]);
  await change(client);
  t.deepEqual(await rows('select (select count(*) from second_step) + (select count(*) from trusted_device) as n'), [
    { n: '0' },
  ]);
  t.false(client.cookie.includes('trusted'));
  await database.query('update two_factor set last_step = null');
  t.is((await halfWay.auth('POST', '/two-factor/verify-totp', { code: totpCode(totpURI) })).status, 401);
  await client.auth('POST', '/two-factor/disable', { password: NEW_PASSWORD });
  await restore(client);
});

test.serial(
  'of a change of the password and sign-ins with the old one at the same time no old session stays',
  async (t) => {
    const client = await signedIn();
    const others = Array.from({ length: 6 }, () => browser());
    const attempts = others.map((other) => other.auth('POST', '/sign-in/email', { email, password }));
    const changed = await change(client);
    await Promise.all(attempts);
    t.is(changed.status, 200);
    for (const other of others) t.false(await isSignedIn(other));
    await restore(client);
  },
);

test.serial('of two changes of the password at the same time one happens', async (t) => {
  const clients = [await signedIn(), await signedIn()];
  const answers = await Promise.all(clients.map((client) => change(client)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  await restore(clients[answers.findIndex(({ status }) => status === 200)]!);
});

// Limits --------------------------------------------------------------------------------------------------------------

test.serial('in production three requests of a kind in 10 s pass, each kind and address for itself', async (t) => {
  const limited = await startTestConsole({
    env: {
      NODE_ENV: 'production',
      SVC_PUBLIC_URL: 'https://console.example.com',
      SVC_TRUSTED_PROXIES: '127.0.0.1',
    },
    setUp: false,
  });
  const own = new pg.Client({ connectionString: limited.databaseUrl });
  await own.connect();
  try {
    const origin = 'https://console.example.com';
    await limited.client.request('POST', '/api/v1/system/setup', { setupToken: limited.setupToken, ...TEST_OPERATOR });
    const signIn = await limited.client.request('POST', '/api/auth/sign-in/email', { email, password }, { origin });
    const cookie = signIn.headers.getSetCookie()[0]!.split(';')[0]!;
    t.regex(cookie, /^__Host-svc_session_/);
    const valid: Record<string, object> = {
      '/api/auth/sign-in/email': { email, password: 'wrong' },
      '/api/auth/change-password': { currentPassword: 'wrong', newPassword: NEW_PASSWORD },
      '/api/auth/two-factor/enable': { password: 'wrong' },
      '/api/auth/two-factor/disable': { password: 'wrong' },
      '/api/auth/two-factor/verify-totp': { code: '000000' },
      '/api/auth/two-factor/verify-backup-code': { code: 'aaaaa-aaaaa' },
      '/api/auth/passkey/verify-authentication': {
        response: {
          id: 'AAAA',
          rawId: 'AAAA',
          type: 'public-key',
          clientExtensionResults: {},
          response: { clientDataJSON: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA', userHandle: 'AAAA' },
        },
      },
      '/api/auth/passkey/verify-registration': {
        name: 'x',
        response: {
          id: 'AAAA',
          rawId: 'AAAA',
          type: 'public-key',
          clientExtensionResults: {},
          response: { clientDataJSON: 'AAAA', attestationObject: 'AAAA' },
        },
      },
    };
    const paths = ENDPOINTS.flatMap(([, path, , limit]) => (limit ? [path] : []));
    t.deepEqual(Object.keys(valid).sort(), [...paths].sort());
    const post = (path: string, ip: string) =>
      limited.client.request<Body>('POST', path, valid[path], { origin, cookie, 'x-forwarded-for': ip });
    for (const [index, path] of paths.entries()) {
      // The window is the database's and may end between two requests, so it is held open.
      const ip = `198.51.100.${index + 1}`;
      for (let attempt = 0; attempt < 3; attempt++) {
        t.not((await post(path, ip)).status, 429, path);
        await own.query('update attempt set window_started_at = now()');
      }
      const answer = await post(path, ip);
      t.like({ status: answer.status, code: answer.body.code }, { status: 429, code: 'SIGN_IN_RATE_LIMITED' }, path);
      t.is(answer.headers.get('retry-after'), String(answer.body.data.retryAfterSeconds));
      t.not((await post(path, `203.0.113.${index + 1}`)).status, 429, `${path} of another address`);
    }
    await own.query('update attempt set window_started_at = now()');
    // What is counted as two-factor does not keep the same address from signing in.
    t.is((await post('/api/auth/sign-in/email', '198.51.100.3')).status, 401);
    await own.query(`update attempt set window_started_at = now() - interval '11 seconds'`);
    for (const [index, path] of paths.entries()) t.not((await post(path, `198.51.100.${index + 1}`)).status, 429, path);
  } finally {
    await own.end();
    await limited.stop();
  }
});

// Several processes ---------------------------------------------------------------------------------------------------

test.serial(
  'a sign-in in two steps works with two processes for auth beside the one that has the web port',
  async (t) => {
    const shared = {
      servers: await servers(),
      masterKey: randomBytes(32).toString('base64'),
      redisPrefix: redisPrefix(),
      setUp: false,
    };
    const web = await startTestConsole({ ...shared, env: { SERVICES: 'api-gateway,system,account,access-keys' } });
    const auths: TestConsole[] = [];
    try {
      for (let index = 0; index < 2; index++) {
        auths.push(
          await startTestConsole({ ...shared, database: { url: web.databaseUrl }, env: { SERVICES: 'auth' } }),
        );
      }
      await eventually(async () => {
        const { broker } = web.running;
        return broker.registry.getNodeList({ onlyAvailable: true }).length === 3;
      });
      await web.client.setUp(web.setupToken!);
      const client = new BrowserClient(web.url, ORIGIN);
      await client.signIn({ email, password });
      const { totpURI } = (await client.auth<{ totpURI: string }>('POST', '/two-factor/enable', { password })).body;
      await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(totpURI) });
      await client.auth('POST', '/sign-out', {});
      const first = await client.auth('POST', '/sign-in/email', { email, password });
      t.deepEqual(first.body, { twoFactorRedirect: true });
      const refused = await client.auth<Body>('POST', '/two-factor/verify-totp', { code: totpCode(totpURI, 9) });
      t.is(refused.body.code, 'INVALID_CODE');
      t.is((await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(totpURI, 1) })).status, 200);
      t.true(await isSignedIn(client));
      t.like(await client.rpc('account.me'), { user: { email } });
    } finally {
      for (const each of auths) await each.stop();
      await web.stop();
    }
  },
);
