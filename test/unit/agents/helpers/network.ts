// Two machines made of network namespaces, joined by a cable: an edge (192.0.2.1, 2001:db8:0:1::1) and a client with many
// addresses. As root they are plain namespaces; other users get them inside a user namespace.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

const run = promisify(execFile);
const ROOT = process.getuid?.() === 0;

export interface TestNetwork {
  /** An nft that works on the edge's tables. */
  nftBin: string;
  nft(...args: string[]): Promise<string>;
  /** Whether a TCP handshake from this client address to the edge succeeds. */
  canConnect(from: string): Promise<boolean>;
}

async function holder(t: ExecutionContext, command: string, args: string[]): Promise<number> {
  const child: ChildProcess = spawn(command, [...args, 'sh', '-c', 'echo ready; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`${command} ended with ${code}: network namespaces are needed for this test`)),
    );
    child.stdout!.once('data', () => resolve());
  });
  return child.pid!;
}

function enter(pid: number): string[] {
  return ['-t', String(pid), ...(ROOT ? [] : ['-U', '--preserve-credentials']), '-n'];
}

/** Answers each line "from to" with yes, silent, or the error of a connection. */
const CLIENT = `
const { connect } = require('node:net');
const { createInterface } = require('node:readline');
(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const [localAddress, host] = line.split(' ');
    const socket = connect({ host, port: 80, localAddress });
    console.log(await new Promise((resolve) => {
      socket.once('connect', () => resolve('yes')).on('error', (error) => resolve(error.code));
      setTimeout(() => resolve('silent'), 700);
    }));
    socket.destroy();
  }
})();
`;

const SERVER = `
const server = require('node:net').createServer((socket) => socket.on('error', () => socket.destroy()).end('hello'));
server.listen(80, '::', () => console.log('listening'));
`;

export async function startNetwork(
  t: ExecutionContext,
  folder: string,
  clientAddresses: readonly string[],
): Promise<TestNetwork> {
  const edge = await holder(t, 'unshare', ROOT ? ['-n'] : ['-rn']);
  const client = await holder(t, 'nsenter', [...enter(edge), 'unshare', '-n']);
  const onEdge = (...command: string[]) =>
    run('nsenter', [...enter(edge), ...command], { maxBuffer: 64 * 1024 * 1024 });
  const onClient = (...command: string[]) => run('nsenter', [...enter(client), ...command]);
  await onEdge('ip', 'link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'cable-c');
  await onEdge('ip', 'link', 'set', 'cable-c', 'netns', String(client));
  await onEdge('ip', 'addr', 'add', '192.0.2.1/24', 'dev', 'cable');
  await onEdge('ip', 'addr', 'add', '2001:db8:0:1::1/64', 'dev', 'cable', 'nodad');
  for (const device of ['lo', 'cable']) await onEdge('ip', 'link', 'set', device, 'up');
  // Answers find their way to every address of the client.
  await onEdge('ip', 'route', 'add', 'default', 'dev', 'cable');
  await onEdge('ip', '-6', 'route', 'add', 'default', 'dev', 'cable');
  for (const device of ['lo', 'cable-c']) await onClient('ip', 'link', 'set', device, 'up');
  for (const address of clientAddresses) {
    await onClient(
      'ip',
      'addr',
      'add',
      address.includes(':') ? `${address}/128` : `${address}/32`,
      'dev',
      'cable-c',
      ...(address.includes(':') ? ['nodad'] : []),
    );
  }
  await onClient('ip', 'route', 'add', '192.0.2.1', 'dev', 'cable-c');
  await onClient('ip', '-6', 'route', 'add', '2001:db8:0:1::1', 'dev', 'cable-c');
  const server = spawn('nsenter', [...enter(edge), process.execPath, '-e', SERVER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => server.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    server.once('exit', () => reject(new Error('the server in the namespace ended')));
    server.stdout.once('data', () => resolve());
  });
  const caller = spawn('nsenter', [...enter(client), process.execPath, '-e', CLIENT], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => caller.kill('SIGKILL'));
  const answers = createInterface({ input: caller.stdout })[Symbol.asyncIterator]();
  const nftBin = join(folder, 'nft-on-edge');
  writeFileSync(nftBin, `#!/bin/sh\nexec nsenter ${enter(edge).join(' ')} nft "$@"\n`);
  chmodSync(nftBin, 0o755);
  return {
    nftBin,
    nft: async (...args) => (await run(nftBin, args, { maxBuffer: 64 * 1024 * 1024 })).stdout,
    canConnect: async (from) => {
      caller.stdin.write(`${from} ${from.includes(':') ? '2001:db8:0:1::1' : '192.0.2.1'}\n`);
      const { value } = await answers.next();
      if (value !== 'yes' && value !== 'silent')
        throw new Error(`unexpected end of a connection from ${from}: ${value}`);
      return value === 'yes';
    },
  };
}
