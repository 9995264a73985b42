// The whole surface at once: the tables of the specification as they stand there, and every field of every procedure
// with every wrong value its schema knows.
import test from 'ava';
import { PROCEDURES, STREAMS } from '../../contract/index.ts';
import { type AnyProcedure, pathInputs } from '../../contract/procedure.ts';
import { badValues, type Schema } from '../helpers/bad-values.ts';
import { database, running } from '../helpers/console-of-file.ts';

interface ErrorBody {
  code: string;
  data: { issues: { path: string; keyword: string }[] };
}

// Endpoints of the specification: those with a procedure ask for a key, the others are not there yet.
const SPECIFIED = [
  'GET /me',
  'GET /settings',
  'GET /access-keys',
  'POST /access-keys',
  'DELETE /access-keys/{id}',
  'POST /service-accounts/{id}/keys',
  'POST /enrollment-tokens',
  'GET /settings/node-channel',
  'PUT /settings/node-channel',
  'GET /settings/node-channel-check',
  'GET /sites',
  'POST /sites',
  'GET /sites/{id}',
  'PATCH /sites/{id}',
  'PUT /sites/{id}/enabled',
  'GET /sites/{id}/features',
  'GET /sites/{id}/launch',
  'GET /sites/{id}/protection',
  'PATCH /sites/{id}/protection',
  'GET /sites/{id}/security',
  'GET /sites/{id}/security/events',
  'GET /settings/protection',
  'PUT /settings/protection',
  'GET /settings/cc-template',
  'PUT /settings/cc-template',
  'GET /bans',
  'POST /bans',
  'DELETE /bans/{id}',
  'GET /settings/bans',
  'PUT /settings/bans',
  'GET /clusters',
  'GET /clusters/{id}',
  'GET /overview',
  'GET /clusters/{id}/client-ip',
  'PUT /clusters/{id}/client-ip',
  'GET /dns/catalog',
  'GET /sites/{id}/cname',
  'GET /sites/{id}/https/check',
  'GET /sites/{id}/origin-health',
  'GET /sites/{id}/rules/logged',
  'GET /sites/{id}/waf/rules',
  'GET /sites/{id}/waf',
  'PATCH /sites/{id}/waf',
  'GET /sites/{id}/bulk-redirects',
  'PUT /sites/{id}/bulk-redirects',
  'GET /sites/{id}/error-pages',
  'PUT /sites/{id}/error-pages',
  'GET /sites/{id}/https',
  'PUT /sites/{id}/https',
  'GET /sites/{id}/maintenance',
  'PUT /sites/{id}/maintenance',
  'GET /sites/{id}/rules',
  'PUT /sites/{id}/rules',
  'POST /sites/{id}/purge',
  'POST /rules/validate',
  'GET /platform-rules',
  'PUT /platform-rules',
  'GET /settings/error-pages',
  'PUT /settings/error-pages',
  'GET /settings/probes',
  'PUT /settings/probes',
  'GET /usage',
  'GET /usage/changes',
  'GET /cache-tasks',
  'GET /cache-tasks/{id}',
  'POST /cache-tasks',
  'GET /clusters/{id}/rollback-preview',
  'GET /clusters/{id}/rollout',
  'GET /clusters/{id}/listen-ports',
  'PUT /clusters/{id}/listen-ports',
  'GET /clusters/{id}/port-pools',
  'PUT /clusters/{id}/port-pools',
  'GET /clusters/{id}/scheduling/preview',
  'GET /l4-apps',
  'POST /l4-apps',
  'GET /l4-apps/{id}',
  'PATCH /l4-apps/{id}',
  'DELETE /l4-apps/{id}',
  'PUT /l4-apps/{id}/enabled',
  'GET /l4-apps/{id}/stats',
  'GET /probes',
  'PATCH /probes/{id}',
  'DELETE /probes/{id}',
  'POST /probe-tokens',
  'GET /probe-results',
  'GET /scheduling/rules',
  'POST /scheduling/rules',
  'PATCH /scheduling/rules/{id}',
  'DELETE /scheduling/rules/{id}',
  'PUT /nodes/{id}/addresses',
  'PUT /nodes/{id}/probe',
  'GET /node-releases/{id}',
  'GET /node-upgrades',
  'POST /node-upgrades',
  'GET /node-upgrades/latest-version',
  'POST /node-upgrades/{id}/cancel',
  'POST /node-upgrades/{id}/promote',
] as const;

const declared = new Set([...PROCEDURES.values()].map(endpointShape));
const BUILT = SPECIFIED.filter((endpoint) => declared.has(shapeOf(endpoint)));
const NOT_BUILT = SPECIFIED.filter((endpoint) => !declared.has(shapeOf(endpoint)));

const ID = '00000000-0000-7000-8000-000000000000';

function request<T = ErrorBody>(endpoint: string, body?: unknown, headers: Record<string, string> = {}) {
  const [method = '', path = ''] = endpoint.split(' ');
  const sent = method === 'GET' || method === 'DELETE' ? undefined : (body ?? {});
  return running.client.request<T>(method, `/api/v1${path.replace(/\{[^}]+\}/g, ID)}`, sent, headers);
}

test('every built endpoint of the specification asks for a key', async (t) => {
  // Only grows.
  t.true(BUILT.length >= 35);
  for (const endpoint of BUILT) {
    const { status, body } = await request(endpoint);
    t.is(status, 401, endpoint);
    t.is(body.code, 'UNAUTHORIZED', endpoint);
  }
});

test('the two public endpoints ask for none', async (t) => {
  t.is((await request('GET /system/status')).status, 200);
  t.is((await request('POST /system/setup')).status, 400);
});

test('what is not built yet answers 404', async (t) => {
  for (const endpoint of NOT_BUILT) {
    t.is((await request(endpoint, {}, { 'x-api-key': running.client.accessKey })).status, 404, endpoint);
  }
});

test('without a key nothing but status and setup answers, on neither surface', async (t) => {
  for (const procedure of PROCEDURES.values()) {
    if (procedure.name === 'system.status' || procedure.name === 'system.setup') {
      t.is(procedure.access, 'public');
      continue;
    }
    t.is((await request(endpointOf(procedure))).status, 401, procedure.name);
    const path = `/rpc/${procedure.name.replaceAll('.', '/')}`;
    t.is((await running.client.request('POST', path, {}, { 'x-csrf-token': 'orpc' })).status, 401, procedure.name);
    t.is(
      (await running.client.request('POST', path, {}, { cookie: running.client.cookie })).status,
      403,
      procedure.name,
    );
  }
});

test('without the CSRF header nothing answers on /rpc, also what is public, and with another value neither', async (t) => {
  const { cookie } = running.client;
  for (const { name } of [...PROCEDURES.values(), ...STREAMS.values()]) {
    const path = `/rpc/${name.replaceAll('.', '/')}`;
    for (const headers of [{ cookie }, { cookie, 'x-csrf-token': '' }, { cookie, 'x-csrf-token': 'ORPC' }]) {
      const { status, body } = await running.client.request<ErrorBody>('POST', path, {}, headers);
      t.is(`${status} ${body.code}`, '403 CSRF_HEADER_REQUIRED', name);
    }
  }
});

test('a read-only key may call every GET and POST /rules/validate, and nothing else', async (t) => {
  const { secret } = await running.client.rpc<{ secret: string }>('accessKeys.create', {
    name: 'reader',
    scope: 'read',
  });
  for (const procedure of PROCEDURES.values()) {
    if (procedure.access === 'public') continue;
    const { status, body } = await request(endpointOf(procedure), {}, { 'x-api-key': secret });
    const refusal = procedure.access === 'session' ? 'ACCESS_KEY_SESSION_REQUIRED' : 'ACCESS_KEY_READ_ONLY';
    if (procedure.method === 'GET' || endpointOf(procedure) === 'POST /rules/validate')
      t.true(status !== 401 && status !== 403 && status < 500, `${procedure.name} ${status}`);
    else t.like({ status, code: body.code }, { status: 403, code: refusal }, procedure.name);
  }
});

test('exactly the endpoints with a one-time secret refuse an idempotency key', (t) => {
  const refusing = [...PROCEDURES.values()].filter(({ idempotency }) => idempotency === 'refused').map(endpointOf);
  t.deepEqual(refusing.sort(), ['POST /access-keys', 'POST /enrollment-tokens', 'POST /service-accounts/{id}/keys']);
});

test('every procedure has its action, and no action of another name is one', (t) => {
  const actions = new Set(
    running.running.broker.registry.getActionList({ onlyLocal: true }).map(({ name }: { name: string }) => name),
  );
  const missing = [...PROCEDURES.keys()].filter((name) => !actions.has(name));
  t.deepEqual(missing, []);
});

/** Without the names of its parameters, which the specification and a procedure may choose differently. */
function shapeOf(endpoint: string): string {
  return endpoint.replaceAll(/\{[^}]+\}/g, '{}');
}

function endpointShape(procedure: AnyProcedure): string {
  return shapeOf(endpointOf(procedure));
}

function endpointOf({ method, path }: AnyProcedure): string {
  return `${method} ${path}`;
}

test('every field refuses every wrong value of its schema, by name, and nothing is written', async (t) => {
  const written = async () =>
    // Rows of the outbox leave it again: how many there have been is their last number.
    (
      await database.query(
        `select (select count(*) from audit_entry) || '/' || (select last_value from outbox_id_seq) as n`,
      )
    ).rows[0].n;
  const keys: string[] = [];
  const cases = [...PROCEDURES.values()].flatMap((procedure) => {
    const inPath = pathInputs(procedure.path);
    const schema = procedure.input as unknown as Schema;
    const unknown = { pointer: '/unknownField', why: 'an unknown field', input: { unknownField: 1 } };
    return [unknown, ...badValues(schema, inPath)].map((bad) => ({ procedure, ...bad }));
  });
  // A key takes 600 requests in a row.
  for (let index = 0; index < cases.length; index += 500) {
    keys.push((await running.client.rpc<{ secret: string }>('accessKeys.create', { name: `k${index}` })).secret);
  }
  t.true(cases.length > 500);
  const before = await written();
  for (const [index, { procedure, pointer, why, input }] of cases.entries()) {
    // One access key cannot call what only sessions may.
    if (procedure.access === 'session') continue;
    const fromQuery = procedure.method === 'GET' || procedure.method === 'DELETE';
    const query = fromQuery ? queryOf(input, procedure.input as unknown as Schema) : '';
    if (query === null) continue;
    const what = `${endpointOf(procedure)} ${pointer}: ${why}`;
    const { status, body } = await request(`${endpointOf(procedure)}${query}`, input, {
      'x-api-key': keys[Math.floor(index / 500)]!,
    });
    t.is(status, 400, what);
    // A field that the schema takes as text is judged by its procedure, which has codes of its own.
    if (body.code !== 'BAD_REQUEST') continue;
    const named = body.data.issues.some(
      ({ path }) => path === pointer || path.startsWith(`${pointer}/`) || pointer.startsWith(`${path}/`),
    );
    t.true(named || body.data.issues.length === 20, `${what}: ${JSON.stringify(body.data.issues.slice(0, 3))}`);
  }
  t.is(await written(), before);
});

/** The input as a query; null when a query cannot say it, or when as text it is no wrong value. */
function queryOf(input: Record<string, unknown>, schema: Schema): string | null {
  const [[name, value] = ['', '']] = Object.entries(input);
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const property = schema.properties?.[name];
  const takesText = [property, ...(property?.anyOf ?? [])].some((member) => member?.type === 'string');
  if (typeof value === 'number' && takesText) return null;
  return `?${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`;
}
