// Whatever is sent, the gateway answers it as the client's mistake or as a request, never as a failure of its own.
import test from 'ava';
import fc from 'fast-check';
import pg from 'pg';
import { PROCEDURES } from '../../contract/index.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { rawRequest } from '../helpers/raw-http.ts';

let running: TestConsole;

test.before(async () => {
  running = await startTestConsole();
});

test.after.always(async () => {
  await running?.stop();
});

const PROCEDURE_LIST = [...PROCEDURES.values()].filter(({ access }) => access !== 'session');

const nastySegment = fc.oneof(
  fc.constantFrom(
    '',
    '.',
    '..',
    '%2e',
    '%2F',
    '%00',
    '%',
    '%zz',
    '\\',
    ';',
    "'",
    '"',
    '%C0%AF',
    '__proto__',
    'a'.repeat(300),
  ),
  fc.string({ maxLength: 20 }).map(encodeURIComponent),
);
const nastyText = fc.oneof(
  fc.string({ maxLength: 50 }),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom('\u0000', '\ud800', '__proto__', "'; drop table site; --", '9'.repeat(400), '-1', '1e309', ' '),
);
const nastyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    nastyText,
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.integer(),
    fc.constantFrom(Number.MAX_SAFE_INTEGER, -1, 2 ** 31, 2 ** 63),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(nastyText, tie('value'), { maxKeys: 4 }),
  ),
})).value;

/** Some fields of the procedure with any value, and some that it does not have. */
const request = fc.constantFrom(...PROCEDURE_LIST).chain((procedure) => {
  const names = [...Object.keys(procedure.input.properties), 'other'];
  return fc.record({
    procedure: fc.constant(procedure),
    fields: fc.dictionary(fc.constantFrom(...names), nastyValue, { maxKeys: 6 }),
    segment: nastySegment,
  });
});

test('any JSON for any procedure is refused or done, never a failure', async (t) => {
  const database = new pg.Pool({ connectionString: running.databaseUrl, max: 1 });
  try {
    let sent = 0;
    let { accessKey } = running.client;
    await fc.assert(
      fc.asyncProperty(request, async ({ procedure, fields, segment }) => {
        if (++sent % 500 === 0) accessKey = await running.client.createKey(`fuzz ${sent}`);
        const { method } = procedure;
        const fromQuery = method === 'GET' || method === 'DELETE';
        const path = `/api/v1${procedure.path.replace(/\{[^}]+\}/g, () => segment)}`;
        const query = Object.entries(fields).map(([name, value]) => `${name}=${safeText(value)}`);
        const url = fromQuery && query.length > 0 ? `${path}?${query.join('&')}` : path;
        const body = fromQuery ? undefined : JSON.stringify(fields);
        const answer = await running.client.request<{ code?: string }>(method, url, body, { 'x-api-key': accessKey });
        const told = `${method} ${url} ${body}: ${answer.status} ${JSON.stringify(answer.body)}`;
        if (answer.status >= 500) throw new Error(told);
        if (answer.status === 401 || answer.status === 429) throw new Error(told);
      }),
      { numRuns: 1_000 },
    );
    t.true(sent >= 1_000);
    const { rows } = await database.query('select count(*)::int as n from "user"');
    t.is(rows[0].n, 1);
  } finally {
    await database.end();
  }
});

function safeText(value: unknown): string {
  try {
    return encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value));
  } catch {
    // Half a surrogate pair has no encoding.
    return '%ED%A0%80';
  }
}

const line = fc.oneof(
  fc.constantFrom(
    'X-Api-Key: x',
    'Content-Type: application/json',
    'Content-Length: 5',
    'Content-Length: -1',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Expect: 100-continue',
    'Expect: nonsense',
    'Connection: Upgrade',
    'Upgrade: h2c',
    'Cookie: svc_session_00000000=%',
    'X-Forwarded-For: ,,,',
    'Idempotency-Key: "',
    'Origin: null',
    'Host: a b',
    ': empty',
  ),
  fc.string({ maxLength: 40 }).map((text) => `X-Any: ${text.replace(/[\r\n]/g, '')}`),
);

test('any bytes are answered with a client error or not at all, and the next request is served', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'get', ''),
      fc.array(nastySegment, { minLength: 0, maxLength: 5 }),
      fc.constantFrom('/api/v1', '/rpc', '/api/auth', '/healthz', '/downloads', '', '//'),
      fc.array(line, { maxLength: 6 }),
      fc.uint8Array({ maxLength: 40 }),
      async (method, segments, prefix, lines, body) => {
        const path = [prefix, ...segments].join('/').replace(/[\r\n ]/g, '') || '/';
        const head = [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...lines, 'Connection: close'].join('\r\n');
        // The end of the connection instead of an answer is one, too: the bytes were no request.
        const answer = await rawRequest(
          running.url,
          Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]),
          2_000,
        ).catch(() => null);
        if (answer && answer.status >= 500) throw new Error(`${head}: ${answer.status} ${answer.body}`);
      },
    ),
    { numRuns: 300 },
  );
  const { status, body } = await running.client.request('GET', '/healthz');
  t.is(status, 200);
  t.deepEqual(body, { status: 'ok', version: 'dev' });
});
