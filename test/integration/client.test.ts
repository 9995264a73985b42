// The typed client against a console, against servers that are none, and as the package that others install.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { root } from '../../bin/lib/root.ts';
import {
  ApiError,
  type Client,
  ConnectionError,
  createClient,
  ERROR_STATUS,
  each,
  isApiError,
  type Site,
} from '../../client/src/index.ts';
import { ERRORS } from '../../contract/errors.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const run = promisify(execFile);

let running: TestConsole;
let api: Client;

test.before('start', async () => {
  running = await startTestConsole();
  api = clientOf();
});
test.after.always('stop', () => running?.stop());

const clientOf = (more: Partial<Parameters<typeof createClient>[0]> = {}) =>
  createClient({ url: running.url, accessKey: running.client.accessKey, ...more });

/** A server of one answer. */
async function server(t: ExecutionContext, answer: RequestListener): Promise<string> {
  const listening = createServer(answer);
  await new Promise<void>((done) => listening.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    listening.closeAllConnections();
    listening.close();
  });
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
}

test('inputs go where the contract has them: path, query, body', async (t) => {
  const { site, revision } = await api.sites.create({
    domains: ['typed.example.com'],
    origins: [{ address: 'origin.example.com' }],
  });
  t.truthy(revision);
  t.deepEqual((await api.sites.get({ id: site.id })).domains, ['typed.example.com']);
  t.is((await api.sites.list({ search: 'typed.example', pageSize: 1 })).total, 1);
  t.is((await api.sites.update({ id: site.id, name: 'Typed' })).site.name, 'Typed');
  t.false((await api.sites.setEnabled({ id: site.id, enabled: false })).site.enabled);
  await api.sites.delete({ id: site.id });
  const error = await t.throwsAsync(api.sites.get({ id: site.id }));
  t.true(isApiError(error, 'SITE_NOT_FOUND'));
});

test('what needs no input needs none, and what needs no key needs none', async (t) => {
  t.true((await clientOf({ accessKey: undefined }).system.status()).initialized);
  t.is((await api.account.me()).user?.email, 'operator@example.com');
  t.true((await api.settings.bans.get()).maxTotal > 0);
});

test('a change can be followed', async (t) => {
  const { body, change, replayed } = await api.ipLists.create.answer({
    name: 'followed',
    kind: 'block',
    entries: ['203.0.113.9'],
  });
  t.false(replayed);
  t.deepEqual(body.entries, ['203.0.113.9/32']);
  const followed = await api.changes.get({ id: change!.split(',')[0]! });
  t.is(followed.reason, 'rules_updated');
  t.is((await api.regions.list.answer()).change, null);
});

test('refusals are codes with their data', async (t) => {
  const key = await t.throwsAsync(clientOf({ accessKey: 'ewk_wrong' }).sites.list(), { instanceOf: ApiError });
  t.like(key, { code: 'UNAUTHORIZED', status: 401, operation: 'sites.list' });
  const field = await t.throwsAsync(api.regions.create({ name: 'x', code: 'NOT OK' }), { instanceOf: ApiError });
  t.is(field?.code, 'BAD_REQUEST');
  t.deepEqual(
    field?.issues.map(({ path }) => path),
    ['/code'],
  );
  await api.regions.create({ name: 'Taken', code: 'taken' });
  const taken = await t.throwsAsync(api.regions.create({ name: 'Again', code: 'taken' }));
  t.true(isApiError(taken, 'REGION_CODE_TAKEN'));
  t.false(isApiError(taken, 'BAD_REQUEST'));
  t.false(isApiError(new Error('other')));
  // What the path does not take is refused by the gateway before any operation is asked.
  t.true(isApiError(await t.throwsAsync(api.sites.get({ id: 'a b' })), 'NOT_FOUND', 'SITE_NOT_FOUND'));
});

test('it knows every code of the contract, with its status', (t) => {
  t.deepEqual(
    ERROR_STATUS as Record<string, number>,
    Object.fromEntries(Object.entries(ERRORS).map(([code, { status }]) => [code, status])),
  );
});

test('an id cannot lead to another operation', async (t) => {
  for (const id of ['', '.', '..']) await t.throwsAsync(api.sites.get({ id }), { instanceOf: TypeError }, id);
  for (const id of ['../bans', 'a/b', '?x=1', '#x', '%2e%2e']) {
    t.true(isApiError(await t.throwsAsync(api.sites.get({ id })), 'NOT_FOUND', 'SITE_NOT_FOUND'), id);
  }
});

test('the same request with the same idempotency key happens once', async (t) => {
  const input = { name: 'Once', code: 'once' };
  const first = await api.regions.create.answer(input, { idempotencyKey: 'client-1' });
  const second = await api.regions.create.answer(input, { idempotencyKey: 'client-1' });
  t.false(first.replayed);
  t.true(second.replayed);
  t.deepEqual(second.body, first.body);
  const other = api.regions.create({ name: 'Other', code: 'other' }, { idempotencyKey: 'client-1' });
  t.true(isApiError(await t.throwsAsync(other), 'IDEMPOTENCY_KEY_MISMATCH'));
});

test('a list is gone through page by page, as far as it is used', async (t) => {
  const names = Array.from({ length: 7 }, (_, index) => `paged_${index}`);
  for (const name of names) await api.ipLists.create({ name, kind: 'collection', entries: [] });
  for (const pageSize of [1, 2, 7, 100]) {
    const met: string[] = [];
    for await (const { name } of each(api.ipLists.list, { pageSize })) met.push(name);
    t.deepEqual(
      met.filter((name) => name.startsWith('paged_')),
      names,
      String(pageSize),
    );
    t.is(met.length, (await api.ipLists.list()).total);
  }
  const pages: string[] = [];
  const counting = clientOf({
    fetch: (...given) => {
      pages.push(String(given[0]));
      return fetch(...given);
    },
  });
  for await (const _ of each(counting.ipLists.list, { pageSize: 2 })) break;
  t.is(pages.length, 1);
  const none: Site[] = [];
  for await (const site of each(api.sites.list, { search: 'no site has this name' })) none.push(site);
  t.deepEqual(none, []);
});

test('too many requests in a row: refused with the wait, which is not begun when it is too long', async (t) => {
  const { secret } = await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'busy' });
  const busy = clientOf({ accessKey: secret, retryRateLimited: { maxWaitSeconds: 0 } });
  for (let batch = 0; batch < 12; batch++) {
    await Promise.all(Array.from({ length: 50 }, () => busy.account.me()));
  }
  const error = await t.throwsAsync(busy.account.me(), { instanceOf: ApiError });
  t.is(error?.code, 'API_KEY_RATE_LIMITED');
  t.is(error?.retryAfterSeconds, error?.data.retryAfterSeconds as number);
  t.true(error!.retryAfterSeconds! > 0);
});

/** Refuses so many requests, then answers. */
function refusing(times: number, seen: string[]): RequestListener {
  return (request, response) => {
    seen.push(String(request.headers['idempotency-key']));
    const refused = seen.length <= times;
    response.writeHead(refused ? 429 : 200, { 'content-type': 'application/json', 'retry-after': '0' });
    const refusal = { defined: false, code: 'API_KEY_RATE_LIMITED', status: 429, message: 'x', data: {} };
    response.end(JSON.stringify(refused ? refusal : { items: [], total: 0 }));
  };
}

test('when asked it waits as long as it is told and sends the same request again, so many times', async (t) => {
  const input = { name: 'x', code: 'x' };
  const seen: string[] = [];
  const patient = createClient({ url: await server(t, refusing(2, seen)), retryRateLimited: { attempts: 2 } });
  await patient.regions.create(input, { idempotencyKey: 'kept' });
  t.deepEqual(seen, ['kept', 'kept', 'kept']);
  const most: string[] = [];
  const given = createClient({ url: await server(t, refusing(9, most)), retryRateLimited: { attempts: 2 } });
  t.true(isApiError(await t.throwsAsync(given.regions.list()), 'API_KEY_RATE_LIMITED'));
  t.is(most.length, 3);
  const once: string[] = [];
  const plain = createClient({ url: await server(t, refusing(9, once)) });
  t.true(isApiError(await t.throwsAsync(plain.regions.list()), 'API_KEY_RATE_LIMITED'));
  t.is(once.length, 1);
});

test('no whole answer in time is a timeout, with and without its head', async (t) => {
  const url = await server(t, (request, response) => {
    if (request.url?.includes('pageSize=1')) response.writeHead(200).write('{"items":');
  });
  const client = createClient({ url, timeoutMs: 60_000 });
  for (const pageSize of [1, 2]) {
    const error = await t.throwsAsync(client.regions.list({ pageSize }, { timeoutMs: 50 }), {
      instanceOf: ConnectionError,
    });
    t.is(error?.problem, 'timeout');
  }
});

test('a call can be given up', async (t) => {
  const ended = new AbortController();
  const url = await server(t, () => ended.abort(new Error('enough')));
  await t.throwsAsync(createClient({ url }).regions.list({}, { signal: ended.signal }), { message: 'enough' });
});

test('what is no console is told apart from a refusal', async (t) => {
  const closed = await t.throwsAsync(createClient({ url: 'http://127.0.0.1:9' }).regions.list());
  t.like(closed, { name: 'ConnectionError', problem: 'unreachable', status: null });
  const html = await server(t, (_, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'));
  t.like(await t.throwsAsync(createClient({ url: html }).regions.list()), {
    name: 'ConnectionError',
    problem: 'unexpected_answer',
    status: 502,
  });
  const other = await server(t, (_, response) => response.writeHead(400).end('{"message":"no"}'));
  t.like(await t.throwsAsync(createClient({ url: other }).regions.list()), { problem: 'unexpected_answer' });
  for (const url of ['ftp://console.example', 'console.example', ''])
    t.throws(() => createClient({ url }), undefined, url);
});

test('a redirection does not take the key elsewhere', async (t) => {
  const elsewhere: string[] = [];
  const target = await server(t, (request, response) => {
    elsewhere.push(String(request.headers['x-api-key']));
    response.end('{}');
  });
  const url = await server(t, (_, response) => response.writeHead(307, { location: target }).end());
  const error = await t.throwsAsync(createClient({ url, accessKey: 'ewk_secret' }).regions.list());
  t.like(error, { problem: 'unreachable' });
  t.deepEqual(elsewhere, []);
});

const CONSUMER = `
import { type Ban, createClient, each, isApiError } from '@edge-delivery-console/client';
const api = createClient({ url: 'https://console.example', accessKey: 'ewk_x' });
export async function ban(cidr: string): Promise<Ban | null> {
  try {
    return await api.bans.create({ scope: 'platform', cidr, reason: 'attack', durationSeconds: 600 }, { idempotencyKey: cidr });
  } catch (error) {
    if (isApiError(error, 'BAN_PROTECTED_ADDRESS')) return null;
    throw error;
  }
}
export async function names(): Promise<string[]> {
  const names: string[] = [];
  for await (const site of each(api.sites.list, { search: 'x' })) names.push(site.name);
  return names;
}
export const wrong = () => [
  // @ts-expect-error no such reason
  api.bans.create({ scope: 'platform', cidr: 'x', reason: 'none', durationSeconds: 600 }),
  // @ts-expect-error a field is missing
  api.bans.delete({}),
  // @ts-expect-error a read takes no idempotency key
  api.bans.list({}, { idempotencyKey: 'x' }),
  // @ts-expect-error this answer is given once and takes none
  api.enrollmentTokens.create({ clusterId: 'x' }, { idempotencyKey: 'x' }),
  // @ts-expect-error no such code
  isApiError(null, 'NO_SUCH_CODE'),
  // @ts-expect-error no list
  each(api.account.me),
];
`;

test('built, it is a package that JavaScript runs and TypeScript checks', async (t) => {
  const folder = temporaryFolder(t);
  const installed = join(folder, 'node_modules', '@edge-delivery-console', 'client');
  mkdirSync(installed, { recursive: true });
  const tsc = join(root, 'node_modules', 'typescript7', 'bin', 'tsc');
  const config = join(root, 'client', 'tsconfig.json');
  await run(process.execPath, [tsc, '-p', config, '--outDir', join(installed, 'dist')]);
  cpSync(join(root, 'client', 'package.json'), join(installed, 'package.json'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'consumer.ts'), CONSUMER);
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2023,dom'];
  await run(process.execPath, [tsc, ...options, 'consumer.ts'], { cwd: folder });
  const script = `
    import { createClient } from '@edge-delivery-console/client';
    const api = createClient({ url: process.env.CONSOLE, accessKey: process.env.KEY });
    console.log((await api.clusters.list()).total);`;
  writeFileSync(join(folder, 'script.js'), script);
  const env = { CONSOLE: running.url, KEY: running.client.accessKey };
  const { stdout } = await run(process.execPath, ['script.js'], { cwd: folder, env });
  t.is(Number(stdout), (await api.clusters.list()).total);
});
