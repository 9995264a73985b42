// A private Redis on the loopback address, from the Redis or Valkey program of the machine.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findCommand } from './commands.ts';
import { installCommand, installPackages, mayInstall } from './debian.ts';
import { type Child, type Processes, tail } from './processes.ts';
import { Refusal } from './progress.ts';
import { cacheDir } from './root.ts';

export interface RedisOptions {
  processes: Processes;
  dataDir: string;
  logFile: string;
  port: number;
  password: string;
}

export interface RedisServer {
  url: string;
  child: Child;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
// On Debian the server program lies in this package under another name and the package `redis-server` only adds a link
// and a system service; the service would take port 6379 of the machine, which nobody asked for.
const PACKAGE = 'redis-tools';
const PACKAGE_PROGRAM = '/usr/bin/redis-check-rdb';

/** The program that runs the server, or undefined when the machine has none. */
export function findRedis(): string | undefined {
  const program = findCommand('redis-server') ?? findCommand('valkey-server');
  if (program) return program;
  const link = join(cacheDir, 'redis', 'redis-server');
  return existsSync(link) ? link : undefined;
}

/** The line that tells how to get Redis, for a person. */
export function redisInstallCommand(): string {
  return process.platform === 'darwin' ? 'brew install redis' : installCommand(['redis-server']);
}

async function findOrInstall(): Promise<string> {
  const found = findRedis();
  if (found) return found;
  if (!mayInstall()) throw new Refusal(`Redis or Valkey is missing:\n  ${redisInstallCommand()}`);
  await installPackages([PACKAGE]);
  if (existsSync(PACKAGE_PROGRAM)) {
    const folder = join(cacheDir, 'redis');
    mkdirSync(folder, { recursive: true });
    rmSync(join(folder, 'redis-server'), { force: true });
    symlinkSync(PACKAGE_PROGRAM, join(folder, 'redis-server'));
    return join(folder, 'redis-server');
  }
  await installPackages(['redis-server']);
  const installed = findRedis();
  if (!installed) throw new Refusal(`Redis is still missing after its installation:\n  ${redisInstallCommand()}`);
  return installed;
}

/** Starts the server and waits until it has loaded its data and answers. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const { processes, dataDir, logFile, port, password } = options;
  const program = await findOrInstall();
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const settings = [
    `port ${port}`,
    // The dash makes an address the machine does not have no error.
    'bind 127.0.0.1 -::1',
    'protected-mode yes',
    `requirepass ${password}`,
    `dir ${JSON.stringify(dataDir)}`,
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    'daemonize no',
  ];
  // A file, not arguments: arguments are visible to every user of the machine.
  const config = join(dataDir, 'redis.conf');
  writeFileSync(config, `${settings.join('\n')}\n`, { mode: 0o600 });
  const child = processes.start({
    name: 'Redis',
    command: program,
    args: [config],
    cwd: dataDir,
    logFile,
  });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(port, password))) {
    if (!child.running()) throw new Refusal(`Redis did not start:\n${tail(logFile)}`);
    if (Date.now() > deadline) throw new Refusal(`Redis does not respond:\n${tail(logFile)}`);
    await delay(25);
  }
  child.keepRunning();
  return { url: `redis://:${password}@127.0.0.1:${port}/0`, child, stop: () => child.stop() };
}

function answers(port: number, password: string): Promise<boolean> {
  return new Promise((done) => {
    let reply = '';
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.setTimeout(2000, () => socket.destroy());
    socket.on('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket.on('data', (chunk) => {
      reply += chunk.toString();
      if (reply.includes('+PONG') || reply.includes('-')) socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => done(reply.includes('+PONG')));
  });
}
