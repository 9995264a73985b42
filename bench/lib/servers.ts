// The programs a data plane benchmark compares, each pinned to its core and in a folder of its own.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { threadId } from 'node:worker_threads';
import { isFree } from '../../bin/lib/ports.ts';

export interface Server {
  name: string;
  pid: number;
  port: number;
  stop(): Promise<void>;
}

/** Below those that the system gives to connections: until somebody listens on it, none takes it by chance. */
const FIRST_PORT = 12_000;
const PORTS = 12_000;
/** Processes and threads that start together look in different places. */
const PORTS_EACH = 37;
let nextPort = (process.pid * PORTS_EACH + threadId * 1_000) % PORTS;

/** A port nobody listens on at the moment, and that this process did not answer lately. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries++) {
    const port = FIRST_PORT + (nextPort++ % PORTS);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${FIRST_PORT} to ${FIRST_PORT + PORTS - 1} is free`);
}

/** Starts a program on the given cores; `ready` is asked until it is true. */
export async function startServer(
  name: string,
  cpus: string,
  command: readonly string[],
  port: number,
  ready: () => Promise<boolean>,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Server> {
  const child = spawn('taskset', ['-c', cpus, ...command], { stdio: ['ignore', 'ignore', 'pipe'], env });
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-5000);
  });
  const deadline = Date.now() + 30_000;
  while (!(await ready().catch(() => false))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}: ${errors}`);
    if (Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`${name} does not answer: ${errors}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return { name, pid: child.pid!, port, stop: () => stopChild(child) };
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await ended;
  clearTimeout(timer);
}

/**
 * nginx in the foreground: one worker, no logs; `http` is the inside of its http block. With `reloads` it has a master, which
 * reads the configuration again when it is told to. `modules` are files of modules that it loads.
 */
export function nginxCommand(
  folder: string,
  http: string,
  { reloads = false, modules = [] as readonly string[] } = {},
): string[] {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `${modules.map((module) => `load_module ${module};\n`).join('')}daemon off; master_process ${reloads ? 'on' : 'off'}; pid ${folder}/nginx.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 10000000; keepalive_timeout 75s;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${http}
}
`,
  );
  return ['nginx', '-c', file, '-p', folder];
}

/** True when a GET with the host is answered with `status`. */
export async function answers(port: number, host: string, status = 200): Promise<boolean> {
  const response = await rawGet(port, host);
  return response.startsWith(`HTTP/1.1 ${status} `);
}

/** The same over TLS, with the host's name and whatever certificate is shown. */
export function answersTls(port: number, host: string, status = 200): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const request = https.get(
      {
        host: '127.0.0.1',
        port,
        servername: host,
        headers: { host },
        agent: false,
        rejectUnauthorized: false,
        timeout: 2000,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode === status);
      },
    );
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', reject);
  });
}

function rawGet(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let text = '';
    socket.setTimeout(2000, () => socket.destroy(new Error('no answer')));
    socket.on('connect', () => socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}

/** Builds a Go program once per content of its module; answers the binary. */
export function buildGo(moduleFolder: string, output: string): string {
  execFileSync('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', output, '.'], {
    cwd: moduleFolder,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 900_000,
  });
  return output;
}
