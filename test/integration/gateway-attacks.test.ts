// What attackers send to the gateway: credentials where they do not count, headers and names made to be misread, and a key
// that ends while its request runs.
import { connect } from 'node:net';
import test from 'ava';
import pg from 'pg';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { startTestConsole, TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { WAITS_FOR_THIS_SESSION } from '../helpers/lock-waits.ts';
import { rawRequest } from '../helpers/raw-http.ts';
import type { Body } from '../helpers/resources.ts';

let running: TestConsole;
let database: pg.Pool;

test.before(async () => {
  running = await startTestConsole();
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 3 });
});

test.after.always(async () => {
  await database?.end();
  await running?.stop();
});

const call = (method: string, path: string, body: unknown, headers: Record<string, string>) =>
  running.client.request<Body>(method, path, body, headers);
const clusters = async () => Number((await database.query('select count(*) from cluster')).rows[0].count);
const newKey = (name: string) =>
  running.client.rpc<{ key: { id: string }; secret: string }>('accessKeys.create', { name });
const meWith = async (secret: string) => (await call('GET', '/api/v1/me', undefined, { 'x-api-key': secret })).status;

/** A request with these header lines, exactly as they stand. */
const raw = (lines: readonly (string | Buffer)[]) => {
  const parts = ['GET /api/v1/me HTTP/1.1', 'Host: localhost', ...lines].flatMap((line) => [
    Buffer.isBuffer(line) ? line : Buffer.from(line, 'latin1'),
    Buffer.from('\r\n'),
  ]);
  return rawRequest(running.url, Buffer.concat([...parts, Buffer.from('\r\n')]));
};

// Credentials of the other surface --------------------------------------------------------------------------------------

test.serial('with a cookie and a key, the key alone counts on /api/v1 and the cookie alone on /rpc', async (t) => {
  const { cookie } = running.client;
  const { secret } = await newKey('both');
  const both = { cookie, 'x-api-key': secret, 'x-csrf-token': 'orpc' };
  t.is((await call('POST', '/api/v1/regions', { name: 'k', code: 'by-key' }, both)).status, 201);
  t.is((await call('POST', '/rpc/regions/create', { name: 's', code: 'by-session' }, both)).status, 201);
  const { rows } = await database.query(
    `select target_name, actor_type from audit_entry where action = 'region.create' order by id`,
  );
  t.deepEqual(rows, [
    { target_name: 'k', actor_type: 'api_key' },
    { target_name: 's', actor_type: 'user' },
  ]);
  const broken = { ...both, 'x-api-key': 'ewk_broken' };
  t.is((await call('GET', '/api/v1/me', undefined, broken)).status, 401);
  t.is((await call('POST', '/rpc/account/me', {}, broken)).status, 200);
  t.is((await call('POST', '/rpc/account/me', {}, { ...both, cookie: 'x=y' })).status, 401);
});

test.serial('a key anywhere but in x-api-key is none', async (t) => {
  const { accessKey } = running.client;
  for (const headers of [
    { authorization: `Bearer ${accessKey}` },
    { authorization: accessKey },
    { 'api-key': accessKey },
    { cookie: `x-api-key=${accessKey}` },
  ] as Record<string, string>[]) {
    t.is((await call('GET', '/api/v1/me', undefined, headers)).status, 401, JSON.stringify(Object.keys(headers)));
  }
  t.is((await call('GET', `/api/v1/me?x-api-key=${accessKey}`, undefined, {})).status, 401);
});

// Headers ---------------------------------------------------------------------------------------------------------------

test.serial('keys of 10 kB, beyond ASCII or almost right are 401, and never looked up as another key', async (t) => {
  const { accessKey } = running.client;
  for (const value of [
    `ewk_${'A'.repeat(10_240)}`,
    `${accessKey}${'A'.repeat(10_240)}`,
    `${accessKey}\u00e9`,
    `\u00e9${accessKey}`,
    accessKey.replace('ewk_', 'EWK_'),
    accessKey.replace('ewk_', 'ewp_'),
    accessKey.slice(0, -1),
    `${accessKey},${accessKey}`,
    `${accessKey};`,
    `"${accessKey}"`,
    accessKey.toUpperCase(),
  ]) {
    t.is((await raw([`X-Api-Key: ${value}`])).status, 401, `${value.slice(0, 12)}… (${value.length})`);
  }
  t.is((await raw([Buffer.concat([Buffer.from('X-Api-Key: '), Buffer.from([0xff, 0xfe, 0x80])])])).status, 401);
  t.is((await raw([`X-Api-Key: ${'A'.repeat(40_000)}`])).status, 431);
  // White space around a header's value is no part of it.
  t.is((await raw([`X-Api-Key: \t ${accessKey}  `])).status, 200);
});

test.serial('headers made to be split or folded are refused', async (t) => {
  const { accessKey } = running.client;
  for (const line of [
    `X-Api-Key: ewk_\r ${accessKey}`,
    `X-Other: a\r\n X-Api-Key: ${accessKey}`,
    `X-Other: a\rX-Api-Key: ${accessKey}`,
    `X-Other: a\nX-Api-Key: ewk_\0`,
    `X-Api-Key : ${accessKey}`,
    ` X-Api-Key: ${accessKey}`,
    `X-Api-Key: ${accessKey}\0`,
  ]) {
    const { status } = await raw([line]);
    t.true(status === 400 || status === 401, `${JSON.stringify(line).slice(0, 40)} ${status}`);
  }
  // A percent-encoded line end stays text, in the answer's headers as well.
  const { headers } = await call('GET', '/api/v1/sites/%0d%0aset-cookie:x', undefined, { 'x-api-key': accessKey });
  t.is(headers.get('set-cookie'), null);
});

test.serial('x-api-key twice is refused, in any case and with equal values', async (t) => {
  const { accessKey } = running.client;
  for (const [first, second] of [
    ['X-Api-Key', 'x-api-key'],
    ['x-api-key', 'X-API-KEY'],
  ]) {
    const answer = await raw([`${first}: ${accessKey}`, `${second}: ${accessKey}`]);
    t.is(answer.status, 400);
    t.is(JSON.parse(answer.body).data.issues[0].path, '/headers/x-api-key');
  }
});

// Names -----------------------------------------------------------------------------------------------------------------

test.serial(
  'names that mean something to JavaScript are refused like any unknown field, and change nothing',
  async (t) => {
    const before = await clusters();
    const headers = { 'x-api-key': running.client.accessKey, 'content-type': 'application/json' };
    for (const body of [
      '{"name":"a","__proto__":{"polluted":1}}',
      '{"name":"a","\\u005f\\u005fproto__":{"polluted":1}}',
      '{"name":"a","constructor":{"prototype":{"polluted":1}}}',
      '{"name":"a","prototype":{"polluted":1}}',
      '{"name":"a","toString":"x"}',
      '{"name":{"__proto__":null}}',
      '{"__proto__":{"name":"inherited"}}',
      '{"constructor":{"name":"inherited"}}',
    ]) {
      const { status, body: answer } = await call('POST', '/api/v1/clusters', body, headers);
      t.is(`${status} ${answer.code}`, '400 BAD_REQUEST', body);
      t.true(answer.data.issues.length > 0);
    }
    for (const query of ['__proto__=1', 'constructor=1', 'toString=1', '__proto__[x]=1', 'hasOwnProperty=1']) {
      t.is((await call('GET', `/api/v1/clusters?${query}`, undefined, headers)).status, 400, query);
    }
    for (const id of ['__proto__', 'constructor', 'toString']) {
      t.is((await call('GET', `/api/v1/clusters/${id}`, undefined, headers)).body.code, 'CLUSTER_NOT_FOUND');
      t.is((await call('GET', `/api/v1/${id}`, undefined, headers)).status, 404);
      t.is((await call('POST', `/rpc/${id}/create`, {}, { ...headers, 'x-csrf-token': 'orpc' })).status, 404);
    }
    t.is(({} as Record<string, unknown>).polluted, undefined);
    t.is(await clusters(), before);
  },
);

test.serial('names that mean something to JavaScript are values like any other', async (t) => {
  const headers = { 'x-api-key': running.client.accessKey };
  for (const name of ['__proto__', 'constructor']) {
    const { status, body } = await call('POST', '/api/v1/regions', { name, code: name.replaceAll('_', 'p') }, headers);
    t.is(`${status} ${body.name}`, `201 ${name}`);
  }
});

// A key that ends while its request runs --------------------------------------------------------------------------------

/** Sends the head of a request and, once the server asks for it, what `meanwhile` lets go on to the body; its status. */
async function slowly(
  path: string,
  credentials: readonly string[],
  body: string,
  meanwhile: () => Promise<unknown>,
): Promise<number> {
  const { hostname, port } = new URL(running.url);
  const socket = connect(Number(port), hostname);
  try {
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      ...credentials,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    // The server asks for the body: the credentials were good.
    await eventually(() => received.startsWith('HTTP/1.1 100'), { what: '100 Continue' });
    await meanwhile();
    socket.write(body);
    const status = await eventually(() => /HTTP\/1\.1 ([2-5][0-9][0-9]) /.exec(received)?.[1], { what: 'the answer' });
    return Number(status);
  } finally {
    socket.destroy();
  }
}

test.serial('a key revoked while the body comes in starts nothing', async (t) => {
  const { key, secret } = await newKey('slow');
  const before = await clusters();
  const status = await slowly('/api/v1/clusters', [`X-Api-Key: ${secret}`], '{"name":"too-late"}', async () => {
    await running.client.api('DELETE', `/access-keys/${key.id}`);
    await eventually(async () => (await meWith(secret)) === 401, { what: 'the refusal' });
  });
  t.is(status, 401);
  t.is(await clusters(), before);
});

test.serial('a session that ends while the body comes in starts nothing', async (t) => {
  const other = new ConsoleClient(running.url, running.env.SVC_PUBLIC_URL!);
  await other.signIn({ email: TEST_OPERATOR.email, password: TEST_OPERATOR.password });
  const { cookie } = other;
  const before = await clusters();
  const credentials = [`Cookie: ${cookie}`, 'X-Csrf-Token: orpc'];
  const status = await slowly('/rpc/clusters/create', credentials, '{"name":"too-late"}', async () => {
    await call('POST', '/api/auth/sign-out', {}, { cookie });
  });
  t.is(status, 401);
  t.is(await clusters(), before);
  t.is(
    await slowly(
      '/rpc/clusters/create',
      [`Cookie: ${running.client.cookie}`, 'X-Csrf-Token: orpc'],
      '{"name":"slow-but-good"}',
      async () => undefined,
    ),
    201,
  );
});

test.serial(
  'a key revoked while its action runs ends with that action: done, and the next request is refused',
  async (t) => {
    const { key, secret } = await newKey('running');
    const lock = await database.connect();
    try {
      await lock.query('begin');
      await lock.query('lock table region in share mode');
      const answer = call('POST', '/api/v1/regions', { name: 'r', code: 'in-time' }, { 'x-api-key': secret });
      await eventually(async () => (await lock.query(WAITS_FOR_THIS_SESSION)).rowCount! > 0, {
        what: 'the action at the lock',
      });
      await running.client.api('DELETE', `/access-keys/${key.id}`);
      await eventually(async () => (await meWith(secret)) === 401, { what: 'the refusal' });
      await lock.query('rollback');
      // 503 on a machine that is so busy that the lock was not had in time.
      t.true([201, 503].includes((await answer).status));
      t.is((await call('POST', '/api/v1/regions', { name: 'r', code: 'after' }, { 'x-api-key': secret })).status, 401);
    } finally {
      lock.release();
    }
  },
);
