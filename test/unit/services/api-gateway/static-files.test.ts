import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import test from 'ava';
import { acceptedCodings, staticFiles } from '../../../../services/api-gateway/static-files.ts';

const HEADERS = ['x-from', 'test'];
let folder: string;
let server: Server;
let url: string;

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'static-'));
  const root = join(folder, 'dist');
  await mkdir(join(root, 'assets'), { recursive: true });
  await writeFile(join(folder, 'secret.txt'), 'secret');
  await writeFile(join(root, 'index.html'), '<!doctype html>index');
  await writeFile(join(root, 'assets', 'index-1a2b.js'), 'export {}');
  await writeFile(join(root, 'assets', 'page-3c4d.js'), 'plain');
  await writeFile(join(root, 'assets', 'page-3c4d.js.br'), 'brotli');
  await writeFile(join(root, 'assets', 'page-3c4d.js.gz'), 'gzip');
  await writeFile(join(root, '.env'), 'secret');
  await symlink(join(folder, 'secret.txt'), join(root, 'link.txt'));
  await symlink(folder, join(root, 'out'));
  const files = await staticFiles(root);
  server = createServer(async (request, response) => {
    if (!(await files.serve(request, response, request.url!, HEADERS))) response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});

test.after.always(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

test('files are served with their type; assets may be kept', async (t) => {
  const asset = await fetch(`${url}/assets/index-1a2b.js`);
  t.is(await asset.text(), 'export {}');
  t.is(asset.headers.get('content-type'), 'text/javascript; charset=utf-8');
  t.is(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.is(asset.headers.get('x-from'), 'test');
  const head = await fetch(`${url}/assets/index-1a2b.js`, { method: 'HEAD' });
  t.is(head.headers.get('content-length'), '9');
  t.is(await head.text(), '');
});

test('a page of the UI gets the index, which is not kept', async (t) => {
  for (const path of ['/', '/sites', '/sites/123', '/assets', '/addresses/203.0.113.7', '/addresses/203.0.113.0/24']) {
    const page = await fetch(url + path);
    t.is(await page.text(), '<!doctype html>index', path);
    t.is(page.headers.get('cache-control'), 'no-store');
  }
});

/** As it comes over the network: `fetch` would unpack it. */
async function raw(
  path: string,
  codings: string,
): Promise<{ coding: string | undefined; vary: string | undefined; body: string }> {
  const answer = await new Promise<IncomingMessage>((done, fail) => {
    get(url + path, { headers: { 'accept-encoding': codings } }, done).on('error', fail);
  });
  const { 'content-encoding': coding, vary } = answer.headers;
  return { coding, vary, body: await readText(answer) };
}

for (const [codings, coding, body] of [
  ['gzip, deflate, br, zstd', 'br', 'brotli'],
  ['gzip', 'gzip', 'gzip'],
  ['br;q=0, gzip;q=0.5', 'gzip', 'gzip'],
  ['identity', undefined, 'plain'],
  ['', undefined, 'plain'],
] as const) {
  test(`a browser that takes "${codings}" gets ${body}`, async (t) => {
    const answer = await raw('/assets/page-3c4d.js', codings);
    t.deepEqual([answer.coding, answer.body, answer.vary], [coding, body, 'accept-encoding']);
  });
}

test('a file without variants is sent as it is', async (t) => {
  t.is((await raw('/assets/index-1a2b.js', 'br, gzip')).body, 'export {}');
});

test('codings are read as clients write them', (t) => {
  t.deepEqual([...acceptedCodings('GZIP;q=1.0 , br;q=0.000,, deflate')], ['gzip', 'deflate']);
  t.deepEqual([...acceptedCodings(undefined)], []);
});

// Looked at again from each blank, these would take longer than a test may.
test('a header with a long run of blanks costs what it is long', (t) => {
  const blanks = ' '.repeat(1024 * 1024);
  t.deepEqual([...acceptedCodings(`br${blanks},gzip${blanks};${blanks}q=0,a${blanks}b`)], ['br', `a${blanks}b`]);
});

for (const path of [
  '/missing.js',
  '/assets/missing',
  '/assets/missing/page',
  '/assets/missing.js',
  '/link.txt',
  '/out/secret.txt',
  '/.env',
  '/203.0.113.7.js',
  '/203.0.113./x',
  '/%2e%2e/secret.txt',
  '/..%2fsecret.txt',
  '/assets/..%5c..%5csecret.txt',
  '/secret.txt',
]) {
  test(`${path} is not served`, async (t) => {
    const answer = await fetch(url + path);
    t.false((await answer.text()).includes('secret'));
    t.is(answer.status, 404);
  });
}
