// The guard in front of every procedure, over real HTTP: what is refused, in which order, and that nothing changes then.
import test from 'ava';
import { database, running } from '../helpers/console-of-file.ts';
import { rawRequest } from '../helpers/raw-http.ts';

const key = () => ({ 'x-api-key': running.client.accessKey });
const clusters = async () => Number((await database.query('select count(*) from cluster')).rows[0].count);

interface ErrorBody {
  defined: boolean;
  code: string;
  status: number;
  message: string;
  data: { issues?: { path: string; keyword: string }[] } & Record<string, unknown>;
}

/** A create of a cluster, sent as exact bytes. */
function post(lines: readonly string[], body: string | Buffer = ''): Promise<Awaited<ReturnType<typeof rawRequest>>> {
  const head = ['POST /api/v1/clusters HTTP/1.1', 'Host: localhost', ...lines].join('\r\n');
  return rawRequest(running.url, Buffer.concat([Buffer.from(`${head}\r\n\r\n`), Buffer.from(body)]));
}

const json = (body: Buffer | string) => [
  `X-Api-Key: ${running.client.accessKey}`,
  'Content-Type: application/json',
  `Content-Length: ${Buffer.byteLength(body)}`,
];

test.serial('the health check answers without looking at the database', async (t) => {
  const { status, body, headers } = await running.client.request('GET', '/healthz');
  t.is(status, 200);
  t.deepEqual(body, { status: 'ok', version: 'dev' });
  t.is(headers.get('cache-control'), 'no-store');
});

// Paths of the specification that must not be found by another spelling, nor fall back to the Web UI.
for (const [method, path] of [
  ['GET', '/api'],
  ['GET', '/api/'],
  ['GET', '/api/v1'],
  ['GET', '/api/v1/'],
  ['GET', '/api/v2/sites'],
  ['GET', '/api/v1/unknown'],
  ['GET', '/api/v1/clusters/'],
  ['GET', '/api/v1//clusters'],
  ['GET', '//api/v1/clusters'],
  ['GET', '/api/v1/./clusters'],
  ['GET', '/api/v1/../v1/clusters'],
  ['GET', '/api/v1/%63lusters'],
  ['GET', '/api/v1/clusters%2F'],
  ['GET', '/%61pi/v1/clusters'],
  ['GET', '/API/v1/clusters'],
  ['GET', '/api/v1/Clusters'],
  ['GET', '/api/v1/clusters/a/b/c/d'],
  ['GET', '/api/v1/clusters/%2e%2e'],
  ['GET', '/api/v1/clusters/a%2Fb'],
  ['GET', '/api/v1/clusters/%00'],
  ['PUT', '/api/v1/clusters'],
  ['PATCH', '/api/v1/clusters'],
  ['HEAD', '/api/v1/clusters'],
  ['TRACE', '/api/v1/clusters'],
  ['GET', '/api/v1/openapi.json/'],
  ['POST', '/api/v1/openapi.json'],
  ['GET', '/rpc'],
  ['GET', '/rpc/clusters/list'],
  ['POST', '/rpc/clusters'],
  ['POST', '/rpc/clusters/list/'],
  ['POST', '/rpc/clusters.list'],
  ['POST', '/rpc/clusters/List'],
  ['POST', '/rpc/accessKeys/find'],
  ['GET', '/api/auth/'],
  ['POST', '/api/auth/get-session'],
  ['GET', '/api/auth/get-session/'],
  ['GET', '/api/auth/get%2Dsession'],
  ['GET', '/api/auth/sign-in/email'],
  ['POST', '/api/auth/sign-up/email'],
  ['POST', '/api/auth/api-key/create'],
  ['GET', '/api/auth/api-key/list'],
  ['POST', '/healthz'],
  ['GET', '/healthz/'],
  ['GET', '/Healthz'],
  ['POST', '/install.sh'],
  ['GET', '/install.sh/'],
  ['GET', '/install%2Esh'],
  ['GET', '/downloads'],
  ['GET', '/downloads/svc-edge/latest'],
  ['GET', '/downloads/'],
  ['POST', '/somewhere'],
  ['DELETE', '/'],
] as const) {
  test.serial(`${method} ${path} answers 404 with a small JSON body`, async (t) => {
    const request = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${running.client.accessKey}\r\nContent-Length: 0\r\n\r\n`;
    if (method === 'HEAD') {
      t.is((await running.client.request(method, path)).status, 404);
      return;
    }
    const { status, headers, body } = await rawRequest(running.url, request);
    t.is(status, 404);
    t.is(headers.get('content-type'), 'application/json; charset=utf-8');
    t.is(typeof JSON.parse(body).error, 'string');
  });
}

for (const target of ['http://localhost/api/v1/clusters', '*', 'api/v1/clusters']) {
  test.serial(`the request target ${target} is refused`, async (t) => {
    const { status } = await rawRequest(running.url, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    t.true(status === 404 || status === 400, String(status));
  });
}

// No path has this method: a guess at what it asks for could run the POST of the path.
for (const path of [
  '/api/v1/clusters',
  '/api/v1/openapi.json',
  '/rpc/clusters/list',
  '/api/auth/sign-in/email',
  '/api/auth/get-session',
  '/api/auth/nothing',
  '/downloads/node/latest',
  '/install.sh',
  '/healthz',
  '/',
  '/anything',
]) {
  test.serial(`OPTIONS ${path} runs nothing and answers 404`, async (t) => {
    const before = await clusters();
    const headers = { ...key(), 'access-control-request-method': 'POST', origin: 'https://evil.example' };
    const answer = await running.client.request<{ error: string }>('OPTIONS', path, { name: 'optioned' }, headers);
    t.is(answer.status, 404);
    t.is(answer.body.error, 'not_found');
    t.is(answer.headers.get('access-control-allow-origin'), null);
    t.is(await clusters(), before);
  });
}

test.serial('every answer carries the security headers, errors too', async (t) => {
  for (const path of ['/api/v1/me', '/healthz', '/api/v1/none', '/']) {
    const { headers } = await running.client.request('GET', path);
    t.is(headers.get('x-content-type-options'), 'nosniff', path);
    t.is(headers.get('referrer-policy'), 'no-referrer', path);
    t.true(headers.get('content-security-policy')?.includes("frame-ancestors 'none'"), path);
    t.false(/unsafe/.test(headers.get('content-security-policy') ?? ''), path);
    t.is(headers.get('cache-control'), 'no-store', path);
    t.is(headers.get('strict-transport-security'), null, path);
  }
});

test.serial('the frame of previews runs no script, loads nothing and is shown by this console only', async (t) => {
  const { status, headers } = await running.client.request<string>('GET', '/page-preview');
  t.is(status, 200);
  const policy = headers.get('content-security-policy') ?? '';
  for (const part of ["default-src 'none'", "frame-ancestors 'self'", 'sandbox allow-same-origin'])
    t.true(policy.includes(part), part);
  t.notRegex(policy, /script|https?:|\*/);
  t.is(headers.get('x-frame-options'), 'SAMEORIGIN');
});

test.serial('a page of the Web UI carries no script and no style inside', async (t) => {
  const { status, headers, body } = await running.client.request<string>('GET', '/setup');
  t.is(status, 200);
  t.true(headers.get('content-type')?.startsWith('text/html'));
  t.false(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\sonload=/.test(body));
});

test.serial('an error has the body of the specification', async (t) => {
  const { status, body } = await running.client.request<ErrorBody>('GET', '/api/v1/clusters/none', undefined, key());
  t.is(status, 404);
  t.is(typeof body.message, 'string');
  t.deepEqual(
    { ...body, message: '' },
    { defined: false, code: 'CLUSTER_NOT_FOUND', status: 404, message: '', data: {} },
  );
});

test.serial('the same error is `defined` on /rpc', async (t) => {
  const headers = { cookie: running.client.cookie, 'x-csrf-token': 'orpc' };
  const { body } = await running.client.request<ErrorBody>('POST', '/rpc/clusters/get', { id: 'none' }, headers);
  t.like(body, { defined: true, code: 'CLUSTER_NOT_FOUND', status: 404 });
});

// Credentials -------------------------------------------------------------------------------------------------------

for (const [what, value] of [
  ['no key', undefined],
  ['an empty key', ''],
  ['another form', 'secret'],
  ['an unknown key', `ewk_${'A'.repeat(43)}`],
  ['a longer key', `ewk_${'A'.repeat(44)}`],
  ['a service account key', `ews_${'A'.repeat(43)}`],
  ['two keys in one header', `ewk_${'A'.repeat(43)}, ewk_${'A'.repeat(43)}`],
] as const) {
  test.serial(`${what} answers 401 before the body is read`, async (t) => {
    const lines = ['Content-Type: application/json', 'Content-Length: 1000000', 'Expect: 100-continue'];
    if (value !== undefined) lines.push(`X-Api-Key: ${value}`);
    const answer = await post(lines);
    t.is(answer.status, 401);
    t.like(JSON.parse(answer.body), { defined: false, code: 'UNAUTHORIZED', status: 401 });
  });
}

test.serial('a session cookie means nothing on /api/v1', async (t) => {
  const headers = { cookie: running.client.cookie, 'x-csrf-token': 'orpc' };
  t.is((await running.client.request('GET', '/api/v1/me', undefined, headers)).status, 401);
});

test.serial('an access key means nothing on /rpc', async (t) => {
  const headers = { ...key(), 'x-csrf-token': 'orpc' };
  t.is((await running.client.request('POST', '/rpc/account/me', {}, headers)).status, 401);
});

for (const token of [undefined, '', 'orpc2', 'ORPC']) {
  test.serial(`/rpc with x-csrf-token ${token} answers 403 and changes nothing`, async (t) => {
    const before = await clusters();
    const headers: Record<string, string> = { cookie: running.client.cookie };
    if (token !== undefined) headers['x-csrf-token'] = token;
    const answer = await running.client.request<ErrorBody>('POST', '/rpc/clusters/create', { name: 'forged' }, headers);
    t.is(answer.status, 403);
    t.is(answer.body.code, 'CSRF_HEADER_REQUIRED');
    t.is(await clusters(), before);
  });
}

test.serial('/rpc takes its input from the body alone', async (t) => {
  const headers = { cookie: running.client.cookie, 'x-csrf-token': 'orpc' };
  const answer = await running.client.request<ErrorBody>('POST', '/rpc/clusters/list?page=2', {}, headers);
  t.is(answer.status, 400);
  t.is(answer.body.data.issues?.[0]?.path, '/page');
});

// Bodies --------------------------------------------------------------------------------------------------------------

for (const header of ['X-Api-Key', 'Content-Type', 'Idempotency-Key', 'Origin']) {
  test.serial(`a second ${header} is refused`, async (t) => {
    const before = await clusters();
    const body = '{"name":"twice"}';
    const values: Record<string, string> = {
      'X-Api-Key': running.client.accessKey,
      'Content-Type': 'application/json',
      'Idempotency-Key': 'one',
      Origin: 'https://evil.example',
    };
    const lines = json(body);
    if (!lines.some((line) => line.startsWith(header))) lines.push(`${header}: ${values[header]}`);
    const answer = await post([...lines, `${header.toLowerCase()}: ${values[header]}`], body);
    t.is(answer.status, 400);
    t.is(JSON.parse(answer.body).data.issues[0].path, `/headers/${header.toLowerCase()}`);
    t.is(await clusters(), before);
  });
}

for (const type of [
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/json; charset=latin1',
  'application/jsonx',
  '',
]) {
  test.serial(`content type ${JSON.stringify(type)} answers 415`, async (t) => {
    const body = '{"name":"typed"}';
    const lines = [`X-Api-Key: ${running.client.accessKey}`, `Content-Length: ${body.length}`];
    if (type) lines.push(`Content-Type: ${type}`);
    const answer = await post(lines, body);
    t.is(answer.status, 415);
    t.is(JSON.parse(answer.body).code, 'UNSUPPORTED_MEDIA_TYPE');
  });
}

test.serial('a compressed body answers 415', async (t) => {
  const body = '{"name":"packed"}';
  t.is((await post([...json(body), 'Content-Encoding: gzip'], body)).status, 415);
});

test.serial('content types with utf-8 are taken', async (t) => {
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
    const headers = { ...key(), 'content-type': type };
    const answer = await running.client.request('POST', '/api/v1/clusters', '{"name":"-"}', headers);
    t.is(answer.status, 400, type);
  }
});

for (const [what, body, keyword] of [
  ['broken JSON', '{"name":', 'json'],
  ['an array', '[]', 'type'],
  ['null', 'null', 'type'],
  ['deep JSON', `{"name":${'['.repeat(64)}${']'.repeat(64)}}`, 'depth'],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'utf8'],
  ['__proto__', '{"name":"proto","__proto__":{"x":1}}', 'forbiddenName'],
  ['an unknown field', '{"name":"field","nickname":"x"}', 'additionalProperties'],
  ['a missing field', '{}', 'required'],
  ['a wrong type', '{"name":5}', 'type'],
] as const) {
  test.serial(`${what} answers 400 with ${keyword} and changes nothing`, async (t) => {
    const before = await clusters();
    const answer = await post(json(body as string), body as string);
    t.is(answer.status, 400);
    const error = JSON.parse(answer.body) as ErrorBody;
    t.is(error.code, 'BAD_REQUEST');
    t.true(error.data.issues?.some((issue) => issue.keyword === keyword));
    t.is(await clusters(), before);
  });
}

test.serial('an unknown field is named', async (t) => {
  const answer = await running.client.request<ErrorBody>('POST', '/api/v1/clusters', { name: 'x', 'a/b': 1 }, key());
  t.is(answer.body.data.issues?.[0]?.path, '/a~1b');
});

test.serial('up to 20 issues are told', async (t) => {
  const body = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, 1]));
  const answer = await running.client.request<ErrorBody>('POST', '/api/v1/clusters', body, key());
  t.is(answer.body.data.issues?.length, 20);
});

test.serial('a body above 1 MiB answers 413 before it is read when it says so', async (t) => {
  const lines = [`X-Api-Key: ${running.client.accessKey}`, 'Content-Type: application/json', 'Content-Length: 1048577'];
  const answer = await post([...lines, 'Expect: 100-continue']);
  t.is(answer.status, 413);
  t.like(JSON.parse(answer.body), { code: 'PAYLOAD_TOO_LARGE', data: { limit: 1048576 } });
});

for (const [path, ...lines] of [
  ['/api/v1/system/setup'],
  ['/rpc/system/setup', 'X-CSRF-Token: orpc'],
  ['/api/auth/sign-in/email'],
  ['/api/auth/passkey/verify-authentication'],
] as const) {
  test.serial(`${path} takes 128 KiB: nobody has shown yet that he may ask for more work`, async (t) => {
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      'Content-Type: application/json',
      ...lines,
    ];
    const answer = await rawRequest(
      running.url,
      [...head, 'Content-Length: 131073', 'Expect: 100-continue', '', ''].join('\r\n'),
    );
    t.is(answer.status, 413);
    t.like(JSON.parse(answer.body), { code: 'PAYLOAD_TOO_LARGE', data: { limit: 131_072 } });
    const filled = await rawRequest(
      running.url,
      [...head, 'Content-Length: 131072', '', `{${' '.repeat(131_070)}}`].join('\r\n'),
    );
    t.is(filled.status, 400);
  });
}

test.serial('a body above 1 MiB answers 413 when it does not say so', async (t) => {
  const chunk = 'a'.repeat(65_536);
  const chunks = `10000\r\n${chunk}\r\n`.repeat(17);
  const lines = [
    `X-Api-Key: ${running.client.accessKey}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ];
  t.is((await post(lines, `${chunks}0\r\n\r\n`)).status, 413);
});

test.serial('a body of exactly 1 MiB is read', async (t) => {
  const body = JSON.stringify({ name: '' });
  const padded = body.slice(0, -1) + ' '.repeat(1_048_576 - body.length) + body.slice(-1);
  const answer = await running.client.request<ErrorBody>('POST', '/api/v1/clusters', padded, key());
  t.is(answer.status, 400);
  t.is(answer.body.code, 'BAD_REQUEST');
});

test.serial('content-length and transfer-encoding together are refused', async (t) => {
  const answer = await post([...json('{}'), 'Transfer-Encoding: chunked'], '0\r\n\r\n');
  t.is(answer.status, 400);
});

test.serial('what is no HTTP gets 400 and the end of the connection', async (t) => {
  const answer = await rawRequest(running.url, 'NOT HTTP\r\n\r\n');
  t.is(answer.status, 400);
  t.is(answer.headers.get('connection'), 'close');
});

test.serial('too many header bytes answer 431', async (t) => {
  const answer = await rawRequest(running.url, `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(40_000)}\r\n\r\n`);
  t.is(answer.status, 431);
});

test.serial('a refused request leaves its connection usable', async (t) => {
  const body = 'x'.repeat(200_000);
  const refused = `POST /api/v1/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const second = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const answers = await rawConversation(running.url, refused + second);
  t.deepEqual(answers, [401, 200]);
});

// Queries ---------------------------------------------------------------------------------------------------------------

for (const [query, path, keyword] of [
  ['foo=1', '/foo', 'additionalProperties'],
  ['page=1&page=1', '/page', 'repeated'],
  ['page=x', '/page', 'type'],
  ['page=0', '/page', 'minimum'],
  ['page=-1', '/page', 'minimum'],
  ['page=1.5', '/page', 'type'],
  ['page=', '/page', 'type'],
  ['page=1000001', '/page', 'maximum'],
  ['pageSize=0', '/pageSize', 'minimum'],
  ['pageSize=101', '/pageSize', 'maximum'],
  ['page=%', '', 'queryEncoding'],
] as const) {
  test.serial(`?${query} answers 400 at ${path || 'the query'} (${keyword})`, async (t) => {
    const answer = await running.client.request<ErrorBody>('GET', `/api/v1/clusters?${query}`, undefined, key());
    t.is(answer.status, 400);
    t.like(answer.body.data.issues?.[0], { path, keyword });
  });
}

for (const query of ['page=1', 'pageSize=1', 'pageSize=100', 'page=1000000', '']) {
  test.serial(`?${query} is accepted`, async (t) => {
    t.is((await running.client.request('GET', `/api/v1/clusters?${query}`, undefined, key())).status, 200);
  });
}

test.serial('a POST takes nothing from the query', async (t) => {
  const answer = await running.client.request<ErrorBody>('POST', '/api/v1/clusters?name=q', { name: 'q' }, key());
  t.is(answer.status, 400);
  t.is(answer.body.data.issues?.[0]?.path, '/name');
});

test.serial('a body cannot name what the path says', async (t) => {
  const cluster = (await running.client.api<{ items: { id: string }[] }>('GET', '/clusters')).items[0]!;
  const path = `/api/v1/clusters/${cluster.id}`;
  const answer = await running.client.request<ErrorBody>('PATCH', path, { id: 'other', description: 'x' }, key());
  t.is(answer.status, 400);
  t.is(answer.body.data.issues?.[0]?.path, '/id');
});

// OpenAPI ---------------------------------------------------------------------------------------------------------------

test.serial('the OpenAPI document names the server and every procedure once', async (t) => {
  const { status, body } = await running.client.request<{
    openapi: string;
    servers: { url: string }[];
    paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
  }>('GET', '/api/v1/openapi.json');
  t.is(status, 200);
  t.is(body.openapi, '3.1.0');
  t.deepEqual(body.servers, [{ url: 'http://localhost:3000/api/v1' }]);
  const ids = Object.values(body.paths).flatMap((path) =>
    Object.values(path).map((operation) => operation.operationId),
  );
  t.is(new Set(ids).size, ids.length);
  for (const id of [
    'system.status',
    'system.setup',
    'account.me',
    'accessKeys.create',
    'clusters.list',
    'settings.get',
  ]) {
    t.true(ids.includes(id), id);
  }
  t.truthy(body.paths['/access-keys']?.post?.responses['403']);
});

/** Statuses of the answers on one connection. */
async function rawConversation(url: string, text: string): Promise<number[]> {
  const { connect } = await import('node:net');
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname, () => socket.write(text));
  socket.setTimeout(15_000, () => socket.destroy(new Error('no answer in time')));
  let received = '';
  for await (const chunk of socket) received += (chunk as Buffer).toString('latin1');
  return [...received.matchAll(/HTTP\/1\.1 ([0-9]{3}) /g)].map((match) => Number(match[1]));
}
