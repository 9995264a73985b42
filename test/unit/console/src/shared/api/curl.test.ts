// "As API call" does what it says: the command is run in bash and must send exactly the form's input.
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import test from 'ava';
import { apiCall, shellWord } from '../../../../../../console/src/shared/api/curl.ts';
import { sites } from '../../../../../../contract/resources/sites.ts';

interface Received {
  method: string;
  url: string;
  key: string | undefined;
  type: string | undefined;
  body: string;
}

/** Runs the command and answers the request it made. */
async function run(make: (origin: string) => string): Promise<Received> {
  const received = Promise.withResolvers<Received>();
  const server = createServer(async (request: IncomingMessage, response) => {
    const { method = '', url = '', headers } = request;
    const key = headers['x-api-key'] as string | undefined;
    received.resolve({ method, url, key, type: headers['content-type'], body: await readText(request) });
    response.end('{}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const command = make(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const child = spawn('bash', ['-c', command], {
    env: { ...process.env, SVC_KEY: 'ewk_secret' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const complaint = readText(child.stderr);
  const code = await new Promise<number | null>((done) => child.on('close', done));
  server.close();
  if (code !== 0) throw new Error(`bash ended with ${code}: ${await complaint}`);
  return received.promise;
}

const TEXTS = {
  plain: 'Shop',
  quotes: `it's "so" \`called\` $HOME \\ !! $(reboot)`,
  emoji: '🎉 网站 العربية',
  newlines: 'one\ntwo\r\n\tthree\n',
  markup: '<script>alert(1)</script> & %20 #',
  empty: '',
};

for (const [kind, name] of Object.entries(TEXTS)) {
  test(`a body with ${kind} arrives as it is`, async (t) => {
    const input = { id: 'a/b c', name, domains: [`${kind}.example.com`] };
    const { method, url, key, type, body } = await run((origin) => apiCall(sites.update, input, origin).curl);
    t.is(method, 'PATCH');
    t.is(url, '/api/v1/sites/a%2Fb%20c');
    t.is(key, 'ewk_secret');
    t.is(type, 'application/json');
    t.deepEqual(JSON.parse(body), { name, domains: [`${kind}.example.com`] });
  });
  test(`a query with ${kind} arrives as it is`, async (t) => {
    const { method, url, body } = await run((origin) => apiCall(sites.list, { search: name, page: 2 }, origin).curl);
    t.is(method, 'GET');
    const query = new URL(url, 'http://localhost').searchParams;
    t.deepEqual([query.get('search'), query.get('page')], [name, '2']);
    t.is(body, '');
  });
}

test('what was left out is not sent', (t) => {
  const { body, path } = apiCall(sites.update, { id: '1', name: undefined, expectedUpdatedAt: 'now' }, 'https://a');
  t.is(path, '/api/v1/sites/1');
  t.deepEqual(JSON.parse(body!), { expectedUpdatedAt: 'now' });
});

test('words that need no quotes have none', (t) => {
  t.is(shellWord('https://console.example/api/v1/sites'), 'https://console.example/api/v1/sites');
  t.is(shellWord(`it's`), `'it'\\''s'`);
  t.is(shellWord(''), `''`);
});
