import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { staticFiles } from '../../../../services/api-gateway/static-files.ts';

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
  for (const path of ['/', '/sites', '/sites/123', '/assets']) {
    const page = await fetch(url + path);
    t.is(await page.text(), '<!doctype html>index', path);
    t.is(page.headers.get('cache-control'), 'no-store');
  }
});

for (const path of [
  '/missing.js',
  '/assets/missing.js',
  '/link.txt',
  '/out/secret.txt',
  '/.env',
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
