// The proxies of `bench -- restart`, each with its own way to be started anew while clients come.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { edgePaths } from '../../agents/edge/paths.ts';
import { edgeChildren } from '../../bin/lib/edge-process.ts';
import { presentEdge } from '../lib/edge.ts';
import { siteHost, writeEdgeState } from '../lib/edge-state.ts';
import { answers, buildGo, freePort, nginxCommand } from '../lib/servers.ts';

const root = path.resolve(import.meta.dirname, '../..');
export const HOST = siteHost(0);
const READY_MS = 60_000;
/** Workers of before have this long for what they still do. */
const DRAIN_MS = 3000;

export interface StartedProxy {
  port: number;
  /** Starts it anew as its operators do; resolves when that is done. */
  planned(): Promise<void>;
  /** Kills what serves with SIGKILL, and has it started again at once, where nobody does that by itself. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export type StartProxy = (folder: string, origin: number) => Promise<StartedProxy>;
export const PROXIES: Readonly<Record<string, StartProxy>> = { edge, nginx, haproxy, caddy };

class Program {
  private readonly command: readonly string[];
  child: ChildProcess;

  constructor(command: readonly string[]) {
    this.command = command;
    this.child = this.run();
  }

  private run(): ChildProcess {
    // A group of its own, so that a kill takes its workers along.
    return spawn(this.command[0]!, this.command.slice(1), { stdio: 'ignore', detached: true });
  }

  async end(signal: NodeJS.Signals, group = false): Promise<void> {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    process.kill(group ? -child.pid! : child.pid!, signal);
    await gone;
  }

  again(): void {
    this.child = this.run();
  }
}

async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  for (const limit = performance.now() + READY_MS; !(await condition()); await delay(5))
    if (performance.now() > limit) throw new Error(`never: ${what}`);
}

function fail(problem: string): never {
  throw new Error(problem);
}

const serves = (port: number): Promise<boolean> => answers(port, HOST).catch(() => false);

/** The edge with the holder as a unit of its own. A planned restart is that of `systemctl restart`. */
async function edge(folder: string, origin: number): Promise<StartedProxy> {
  const port = await freePort();
  const state = path.join(folder, 'state');
  mkdirSync(state, { mode: 0o700, recursive: true });
  writeEdgeState({ folder: edgePaths(state).edgeDir, sites: 1, origin: { address: '127.0.0.1', port: origin } });
  const socket = path.join(folder, 'hold', 'hold.sock');
  const holder = new Program([presentEdge.binary, 'hold', '--socket', socket]);
  const words = [process.execPath, path.join(root, 'agents/edge/main.ts'), 'supervise', '--state-dir', state];
  words.push('--run-dir', path.join(folder, 'run'), '--caddy-bin', presentEdge.binary, '--hold-socket', socket);
  words.push('--http-listen', `127.0.0.1:${port}`, '--https-listen', 'none', '--kernel-bans', 'off');
  const supervisor = new Program(words);
  const caddy = () => edgeChildren(supervisor.child.pid!).caddy;
  const served = async (before?: number): Promise<void> => {
    await until('another Caddy', () => caddy() !== undefined && caddy() !== before);
    await until('the edge serves', () => serves(port));
  };
  await served();
  return {
    port,
    planned: async () => {
      const before = caddy();
      await supervisor.end('SIGTERM');
      supervisor.again();
      await served(before);
    },
    kill: async () => {
      const before = caddy()!;
      process.kill(before, 'SIGKILL');
      await served(before);
    },
    stop: async () => {
      await supervisor.end('SIGTERM');
      await holder.end('SIGTERM');
    },
  };
}

/** nginx with a master and a worker; a planned restart is the upgrade of its binary, which only a daemon does. */
async function nginx(folder: string, origin: number): Promise<StartedProxy> {
  const port = await freePort();
  const site = `  server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${origin}; } }`;
  const [name, ...words] = nginxCommand(folder, site, { reloads: true });
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(file, readFileSync(file, 'utf8').replace('daemon off', 'daemon on'));
  // nginx looks for its own binary nowhere else.
  const binary = execFileSync('which', [name!], { encoding: 'utf8' }).trim();
  const pidFile = path.join(folder, 'nginx.pid');
  /** Undefined while masters change places: a signal to process 0 would reach this program. */
  const master = (): number | undefined =>
    existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) || undefined : undefined;
  const present = (): number => master() ?? fail('nginx has no master');
  // Masters that come by an upgrade are in the group of the first.
  let group: number;
  const start = async (): Promise<void> => {
    await promisify(execFile)(binary, words);
    await until('nginx serves', () => serves(port));
    group = present();
  };
  await start();
  return {
    port,
    planned: async () => {
      const before = present();
      process.kill(before, 'SIGUSR2');
      await until('another master', () => master() !== undefined && master() !== before);
      await delay(DRAIN_MS / 10);
      process.kill(before, 'SIGQUIT');
      await delay(DRAIN_MS);
    },
    kill: async () => {
      process.kill(-group, 'SIGKILL');
      await until('nginx is gone', async () => !(await serves(port)));
      await start();
    },
    stop: async () => {
      process.kill(present(), 'SIGTERM');
      await until('nginx is gone', async () => !(await serves(port)));
    },
  };
}

/** HAProxy with a master; a planned restart is its reload, in which workers get the listeners. */
async function haproxy(folder: string, origin: number): Promise<StartedProxy> {
  const port = await freePort();
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend visitors
  bind 127.0.0.1:${port}
  default_backend origins
backend origins
  server o 127.0.0.1:${origin}
`,
  );
  const program = new Program(['haproxy', '-W', '-db', '-f', file]);
  await until('HAProxy serves', () => serves(port));
  return {
    port,
    planned: async () => {
      process.kill(program.child.pid!, 'SIGUSR2');
      await delay(DRAIN_MS);
    },
    kill: async () => {
      await program.end('SIGKILL', true);
      program.again();
      await until('HAProxy serves', () => serves(port));
    },
    stop: () => program.end('SIGTERM'),
  };
}

/** Caddy without our modules; a planned restart is the reload of its configuration. */
async function caddy(folder: string, origin: number): Promise<StartedProxy> {
  const binary = buildGo(path.join(root, 'bench/plain-caddy'), path.join(root, '.cache/plain-caddy'));
  const port = await freePort();
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'caddy.json');
  const admin = `unix/${path.join(folder, 'admin.sock')}`;
  const handler = { handler: 'reverse_proxy', upstreams: [{ dial: `127.0.0.1:${origin}` }] };
  const server = { listen: [`127.0.0.1:${port}`], automatic_https: { disable: true }, routes: [{ handle: [handler] }] };
  writeFileSync(
    file,
    JSON.stringify({
      admin: { listen: admin, config: { persist: false } },
      logging: { logs: { default: { level: 'ERROR' } } },
      apps: { http: { servers: { plain: server } } },
    }),
  );
  const program = new Program([binary, 'run', '--config', file]);
  await until('Caddy serves', () => serves(port));
  return {
    port,
    planned: async () => {
      await promisify(execFile)(binary, ['reload', '--force', '--config', file, '--address', admin]);
      await delay(DRAIN_MS);
    },
    kill: async () => {
      await program.end('SIGKILL', true);
      program.again();
      await until('Caddy serves', () => serves(port));
    },
    stop: () => program.end('SIGTERM'),
  };
}
