// "/downloads/*: GET and HEAD files from the downloads directory; 404 when unset, for missing files and for symlinks leaving
// the directory", and "/install.sh: GET node installer, console URL replaced by SVC_PUBLIC_URL". Over real HTTP.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { reportEdgeBuild } from '../../bin/lib/edge-build-report.ts';
import { EDGE_BUILD_FILE } from '../../runtime/edge-build.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { rawRequest } from '../helpers/raw-http.ts';

const PUBLIC_URL = 'http://console.localhost:3000';
const ARCHIVE = '/downloads/svc-edge/v1.2.3/svc-edge_1.2.3_linux_amd64.tar.gz';
const content = randomBytes(300_000);
let running: TestConsole;
let parent: string;
let folder: string;

test.before(async () => {
  parent = mkdtempSync(join(tmpdir(), 'downloads-'));
  folder = join(parent, 'downloads');
  const version = join(folder, 'svc-edge', 'v1.2.3');
  mkdirSync(version, { recursive: true });
  writeFileSync(join(folder, 'svc-edge', 'latest'), 'v1.2.3\n');
  writeFileSync(join(version, 'svc-edge_1.2.3_linux_amd64.tar.gz'), content);
  writeFileSync(join(version, 'empty'), '');
  writeFileSync(join(version, 'checksums.txt'), 'sums\n');
  mkdirSync(join(folder, 'svc-edge', 'v2.0.0-rc.1+build'));
  writeFileSync(join(folder, 'svc-edge', 'v2.0.0-rc.1+build', 'file'), 'candidate');
  writeFileSync(join(folder, 'svc-edge', 'notes.txt'), 'notes');
  mkdirSync(join(folder, '.hidden'));
  writeFileSync(join(folder, '.hidden', 'file'), 'hidden');
  writeFileSync(join(folder, 'svc-edge', '.file.tmp'), 'unfinished');
  writeFileSync(join(parent, 'secret'), 'secret');
  mkdirSync(join(parent, 'downloads-beside'));
  writeFileSync(join(parent, 'downloads-beside', 'file'), 'secret');
  const link = (to: string, name: string) => symlinkSync(to, join(folder, 'svc-edge', name));
  link('../../secret', 'relative-out');
  link(join(parent, 'secret'), 'absolute-out');
  link('/etc', 'folder-out');
  link('../../downloads-beside', 'beside');
  link('..', 'up');
  link('itself', 'itself');
  link('nowhere', 'nowhere');
  link('v1.2.3', 'inside');
  execFileSync('mkfifo', [join(folder, 'svc-edge', 'pipe')]);
  running = await startTestConsole({ setUp: false, env: { SVC_DOWNLOADS_DIR: folder, SVC_PUBLIC_URL: PUBLIC_URL } });
});

test.after.always(async () => {
  await running?.stop();
  rmSync(parent, { recursive: true, force: true });
});

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${running.url}${path}`, { method, headers });
const bytes = async (response: Response) => Buffer.from(await response.arrayBuffer());

test.serial(
  'a build of the edge on this machine is seen in the status, while it goes on or when it failed',
  async (t) => {
    const file = join(folder, EDGE_BUILD_FILE);
    const seen = async () => ((await (await get('/api/v1/system/status')).json()) as { edgeBuild?: object }).edgeBuild;
    t.is(await seen(), undefined);
    const report = reportEdgeBuild(folder);
    report.packages(12);
    await eventually(async () => ((await seen()) as { packages?: number }).packages === 12);
    const { startedAt } = JSON.parse(readFileSync(file, 'utf8')) as { startedAt: string };
    t.deepEqual(await seen(), { state: 'building', packages: 12, startedAt });
    report.end('failed');
    t.deepEqual(await seen(), { state: 'failed', packages: 12, startedAt });
    reportEdgeBuild(folder).end('built');
    t.is(await seen(), undefined);
    const killed = {
      state: 'building',
      packages: 1,
      startedAt,
      updatedAt: new Date(Date.now() - 60_000).toISOString(),
    };
    for (const text of ['', '{"state":', '[]', '{"state":"building"}', JSON.stringify(killed)]) {
      writeFileSync(file, text);
      t.is(await seen(), undefined, text);
    }
    rmSync(file);
  },
);

for (const [path, cacheControl, type, body] of [
  ['/downloads/svc-edge/latest', 'no-cache', 'text/plain; charset=utf-8', 'v1.2.3\n'],
  [
    '/downloads/svc-edge/v1.2.3/checksums.txt',
    'public, max-age=86400, immutable',
    'text/plain; charset=utf-8',
    'sums\n',
  ],
  [ARCHIVE, 'public, max-age=86400, immutable', 'application/gzip', content],
  [
    '/downloads/svc-edge/v2.0.0-rc.1+build/file',
    'public, max-age=86400, immutable',
    'application/octet-stream',
    'candidate',
  ],
  ['/downloads/svc-edge/v1.2.3/empty', 'public, max-age=86400, immutable', 'application/octet-stream', ''],
  ['/downloads/svc-edge/notes.txt', 'no-store', 'text/plain; charset=utf-8', 'notes'],
  // A link that stays inside is a file of the folder.
  ['/downloads/svc-edge/inside/checksums.txt', 'no-store', 'text/plain; charset=utf-8', 'sums\n'],
] as const) {
  test(`GET and HEAD ${path} answer the file, ${cacheControl}`, async (t) => {
    const expected = Buffer.from(body);
    const answer = await get(path);
    t.is(answer.status, 200);
    t.is(answer.headers.get('cache-control'), cacheControl);
    t.is(answer.headers.get('content-type'), type);
    t.is(answer.headers.get('content-length'), String(expected.length));
    t.is(answer.headers.get('accept-ranges'), 'bytes');
    t.is(answer.headers.get('x-content-type-options'), 'nosniff');
    t.true(answer.headers.get('content-security-policy')?.includes("default-src 'none'"));
    t.true((await bytes(answer)).equals(expected));
    const head = await get(path, {}, 'HEAD');
    t.is(head.status, 200);
    for (const name of ['cache-control', 'content-type', 'content-length', 'etag', 'last-modified'])
      t.is(head.headers.get(name), answer.headers.get(name), name);
    t.is((await bytes(head)).length, 0);
  });
}

for (const path of [
  '/downloads',
  '/downloads/',
  '/downloads/svc-edge',
  '/downloads/svc-edge/',
  '/downloads/svc-edge/v1.2.3/',
  '/downloads/svc-edge/v1.2.3',
  '/downloads/svc-edge/missing',
  '/downloads/svc-edge/latest/',
  '/downloads/svc-edge/latest/x',
  '/downloads//svc-edge/latest',
  '//downloads/svc-edge/latest',
  '/Downloads/svc-edge/latest',
  '/downloads/./svc-edge/latest',
  '/downloads/svc-edge/../svc-edge/latest',
  '/downloads/../downloads/svc-edge/latest',
  '/downloads/../secret',
  '/downloads/svc-edge/../../secret',
  '/downloads/..%2fsecret',
  '/downloads/%2e%2e/secret',
  '/downloads/%2e%2e%2fsecret',
  '/downloads/%252e%252e%252fsecret',
  '/downloads/..%c0%afsecret',
  '/downloads/%c0%ae%c0%ae/secret',
  '/downloads/..\\secret',
  '/downloads/..%5csecret',
  '/downloads/svc-edge\\latest',
  '/downloads/svc-edge%2flatest',
  '/downloads/svc-edge/latest%00',
  '/downloads/svc-edge/latest%00.txt',
  '/downloads/svc-edge/l%61test',
  '/downloads/svc-edge/latest;x=1',
  '/downloads/svc-edge/latest.',
  '/downloads/svc-edge/.file.tmp',
  '/downloads/.hidden/file',
  '/downloads/~root/file',
  '/downloads//etc/passwd',
  '/downloads/svc-edge/relative-out',
  '/downloads/svc-edge/absolute-out',
  '/downloads/svc-edge/folder-out/passwd',
  '/downloads/svc-edge/beside/file',
  '/downloads/svc-edge/up/secret',
  '/downloads/svc-edge/up/../secret',
  '/downloads/svc-edge/itself',
  '/downloads/svc-edge/nowhere',
  '/downloads/svc-edge/pipe',
  `/downloads/svc-edge/${'a'.repeat(300)}`,
  `/downloads/${'a/'.repeat(2500)}a`,
  '/install.sh/',
  '/install.sh/x',
  '/Install.sh',
  '/install%2esh',
  '/downloads/../install.sh',
]) {
  test(`GET ${path.slice(0, 60)} answers 404 with a small JSON body`, async (t) => {
    const { status, headers, body } = await rawRequest(running.url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    t.is(status, 404);
    t.is(headers.get('content-type'), 'application/json; charset=utf-8');
    t.is(headers.get('cache-control'), 'no-store');
    t.is(body, '{"error":"not_found"}');
  });
}

for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
  test(`${method} is not a way to read`, async (t) => {
    t.is((await get('/downloads/svc-edge/latest', {}, method)).status, 404);
    t.is((await get('/install.sh', {}, method)).status, 404);
  });

const SIZE = content.length;
for (const [range, start, length] of [
  ['bytes=0-0', 0, 1],
  ['bytes=0-99', 0, 100],
  ['bytes=100-', 100, SIZE - 100],
  ['bytes=-100', SIZE - 100, 100],
  ['BYTES= 5-9 ', 5, 5],
  [`bytes=-${SIZE + 5}`, 0, SIZE],
  [`bytes=${SIZE - 1}-${SIZE + 100}`, SIZE - 1, 1],
  ['bytes=1-99999999999999999999', 1, SIZE - 1],
] as const) {
  test(`range ${range} answers that part`, async (t) => {
    const answer = await get(ARCHIVE, { range });
    t.is(answer.status, 206);
    t.is(answer.headers.get('content-range'), `bytes ${start}-${start + length - 1}/${SIZE}`);
    t.is(answer.headers.get('content-length'), String(length));
    t.true((await bytes(answer)).equals(content.subarray(start, start + length)));
  });
}

for (const range of [`bytes=${SIZE}-`, `bytes=${SIZE}-${SIZE + 1}`, 'bytes=-0', 'bytes=99999999999999999999-'])
  test(`range ${range} cannot be satisfied`, async (t) => {
    const answer = await get(ARCHIVE, { range });
    t.is(answer.status, 416);
    t.is(answer.headers.get('content-range'), `bytes */${SIZE}`);
    t.deepEqual(await answer.json(), { error: 'range_not_satisfiable' });
  });

for (const range of ['bytes=0-1,5-6', 'bytes=9-5', 'bytes=-', 'bytes=a-b', 'lines=0-1', 'bytes', 'bytes=0--1'])
  test(`range ${range} means the whole file`, async (t) => {
    const answer = await get(ARCHIVE, { range });
    t.is(answer.status, 200);
    t.is((await bytes(answer)).length, SIZE);
  });

test('a range of a HEAD and of an empty file', async (t) => {
  t.is((await get(ARCHIVE, { range: 'bytes=0-1' }, 'HEAD')).headers.get('content-length'), String(SIZE));
  t.is((await get('/downloads/svc-edge/v1.2.3/empty', { range: 'bytes=0-' })).status, 416);
});

test('a client that has the file gets 304, and parts only of the version it has', async (t) => {
  const { headers } = await get(ARCHIVE, {}, 'HEAD');
  const [etag, modified] = [headers.get('etag')!, headers.get('last-modified')!];
  const known: [Record<string, string>, number][] = [
    [{ 'if-none-match': etag }, 304],
    [{ 'if-none-match': `"other", W/${etag}` }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-modified-since': modified }, 304],
    [{ 'if-none-match': '"other"' }, 200],
    [{ 'if-none-match': '"other"', 'if-modified-since': modified }, 200],
    [{ 'if-modified-since': 'Sat, 01 Jan 2000 00:00:00 GMT' }, 200],
    [{ 'if-modified-since': 'yesterday' }, 200],
    [{ range: 'bytes=0-9', 'if-range': etag }, 206],
    [{ range: 'bytes=0-9', 'if-range': modified }, 206],
    [{ range: 'bytes=0-9', 'if-range': '"other"' }, 200],
    [{ range: 'bytes=0-9', 'if-range': `W/${etag}` }, 200],
  ];
  for (const [asked, status] of known) {
    const answer = await get(ARCHIVE, asked);
    t.is(answer.status, status, JSON.stringify(asked));
    t.is((await bytes(answer)).length, status === 200 ? SIZE : status === 206 ? 10 : 0);
    if (status === 304) {
      t.is(answer.headers.get('etag'), etag);
      t.is(answer.headers.get('cache-control'), 'public, max-age=86400, immutable');
    }
  }
});

test('a file of the same size with another content has another tag', async (t) => {
  const file = join(folder, 'svc-edge', 'changing');
  writeFileSync(file, 'one');
  utimesSync(file, 1000, 1000);
  const before = (await get('/downloads/svc-edge/changing')).headers.get('etag');
  writeFileSync(file, 'two');
  t.not((await get('/downloads/svc-edge/changing')).headers.get('etag'), before);
});

test('what is put into the folder later is there, and what grows is sent as it was', async (t) => {
  const path = '/downloads/svc-edge/growing';
  t.is((await get(path)).status, 404);
  writeFileSync(join(folder, 'svc-edge', 'growing'), 'ab');
  t.is(await (await get(path)).text(), 'ab');
  appendFileSync(join(folder, 'svc-edge', 'growing'), 'cd');
  t.is(await (await get(path)).text(), 'abcd');
});

test('a slow client gets everything, and one that leaves keeps no file open', async (t) => {
  const big = randomBytes(20_000_000);
  writeFileSync(join(folder, 'svc-edge', 'big'), big);
  const open = () =>
    execFileSync('ls', ['-l', '/proc/self/fd', `/proc/${process.pid}/fd`], { encoding: 'utf8' }).split('svc-edge/big')
      .length - 1;
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve) =>
    request(`${running.url}/downloads/svc-edge/big`, { agent: false }, resolve).end(),
  );
  answer.pause();
  await eventually(() => open() === 1, { what: 'the file to be open' });
  const memory = process.memoryUsage().arrayBuffers;
  t.true(memory < big.length * 2, 'what the client does not take is not read');
  const hash = createHash('sha256');
  for await (const chunk of answer) hash.update(chunk as Buffer);
  t.is(hash.digest('hex'), createHash('sha256').update(big).digest('hex'));
  await eventually(() => open() === 0, { what: 'the file to be closed' });
  const leaving = request(`${running.url}/downloads/svc-edge/big`, { agent: false }, (response) => {
    response.once('data', () => leaving.destroy());
  });
  leaving.on('error', () => undefined).end();
  await eventually(() => open() === 0 && leaving.destroyed, { what: 'the file to be closed' });
  t.is((await get('/healthz')).status, 200);
});

test('without a folder there is nothing to download', async (t) => {
  for (const env of [{}, { SVC_DOWNLOADS_DIR: join(parent, 'not-there') }] as NodeJS.ProcessEnv[]) {
    const other = await startTestConsole({ setUp: false, env });
    try {
      const answer = await fetch(`${other.url}/downloads/svc-edge/latest`);
      t.is(answer.status, 404);
      t.deepEqual(await answer.json(), { error: 'not_found' });
    } finally {
      await other.stop();
    }
  }
});

test('the installer is served with the public address in it, whatever the request says', async (t) => {
  const answer = await get('/install.sh');
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'text/x-shellscript');
  t.is(answer.headers.get('cache-control'), 'no-store');
  const script = await answer.text();
  t.true(script.startsWith('#!/bin/sh\n'));
  t.true(script.includes(`\nCONSOLE_URL='${PUBLIC_URL}'\n`));
  t.false(script.includes('@CONSOLE_URL@'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the script is plain text for every locale
  t.regex(script, /^[\x09\x0a\x20-\x7e]*$/);
  const forged = await get('/install.sh?url=$(id)', { host: 'evil.example', 'x-forwarded-host': "';id;'" });
  t.is(await forged.text(), script);
  const head = await get('/install.sh', {}, 'HEAD');
  t.is(head.headers.get('content-length'), String(script.length));
});
