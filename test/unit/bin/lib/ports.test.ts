import { execFile, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { hasIpv6, isFree, Ports } from '../../../../bin/lib/ports.ts';
import { temporaryFolder } from '../../../helpers/temporary-folder.ts';

async function listen(t: ExecutionContext, host: string, port = 0): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen({ host, port, ipv6Only: host === '::1' }, done);
  });
  t.teardown(() => new Promise<void>((done) => server.close(() => done())));
  return (server.address() as { port: number }).port;
}

function portsFile(t: ExecutionContext): string {
  return join(temporaryFolder(t), 'ports.json');
}

for (const host of ['127.0.0.1', '0.0.0.0', '::1']) {
  test(`a port somebody listens on at ${host} is not free`, async (t) => {
    if (host === '::1' && !(await hasIpv6())) return t.pass('the machine has no IPv6');
    t.false(await isFree(await listen(t, host)));
  });
}

test('a port that somebody receives datagrams on is not free for who wants those', async (t) => {
  const socket = createSocket('udp4');
  await new Promise<void>((done, fail) => socket.once('error', fail).bind(0, '127.0.0.1', done));
  t.teardown(() => void socket.close());
  const { port } = socket.address();
  t.false(await isFree(port, true));
  t.not(await new Ports(portsFile(t)).pick('edge', port, true), port);
});

test('a picked port is stored and picked again', async (t) => {
  const file = portsFile(t);
  const first = await new Ports(file).pick('console', 33_000);
  t.is(await new Ports(file).pick('console', 34_000), first);
  t.is(JSON.parse(readFileSync(file, 'utf8')).console, first);
});

test('a stored port that is in use moves to another one', async (t) => {
  const file = portsFile(t);
  const taken = await listen(t, '::');
  writeFileSync(file, JSON.stringify({ console: taken }));
  const picked = await new Ports(file).pick('console', taken);
  t.not(picked, taken);
  t.true(await isFree(picked));
});

test('two names never share a port, not even one that is only stored', async (t) => {
  const file = portsFile(t);
  const ports = new Ports(file);
  const first = await ports.pick('console', 35_000);
  t.not(await ports.pick('edge', first), first);
  t.not(await new Ports(file).pick('origin', first), first);
});

test('a damaged file of ports is picked again', async (t) => {
  const file = portsFile(t);
  writeFileSync(file, '{"console": 30');
  t.true((await new Ports(file).pick('console', 36_000)) >= 36_000);
});

test('launchers that pick the same port in the same moment get different ones while both run', async (t) => {
  const program = `
    import { Ports } from ${JSON.stringify(new URL('../../../../bin/lib/ports.ts', import.meta.url).href)};
    process.stdin.once('data', async () => {
      const ports = new Ports(process.argv[1]);
      console.log(await ports.pick('PostgreSQL', 36_000), await ports.pick('Redis', 36_000));
    });
    console.log('ready');`;
  const launchers = Array.from({ length: 4 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, portsFile(t)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.teardown(() => void child.kill());
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { child, line: async () => (await lines.next()).value as string };
  });
  for (const { line } of launchers) t.is(await line(), 'ready');
  for (const { child } of launchers) child.stdin.write('\n');
  const picked = (await Promise.all(launchers.map(({ line }) => line()))).flatMap((line) => line.split(' '));
  t.is(new Set(picked).size, 8, picked.join(' '));
});

test('the port of a launcher that has ended is picked again', async (t) => {
  const program = `
    import { Ports } from ${JSON.stringify(new URL('../../../../bin/lib/ports.ts', import.meta.url).href)};
    console.log(await new Ports(process.argv[1]).pick('console', 37_000));`;
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, portsFile(t)]);
  const first = (await run()).stdout;
  t.regex(first, /^37\d{3}\n$/);
  t.is((await run()).stdout, first);
});
