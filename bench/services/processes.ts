// Console processes of one database, each with services of its own, that can be killed and started again.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../../bin/lib/root.ts';
import { freePort } from '../lib/servers.ts';

const GATEWAY = ['api-gateway', 'auth', 'access-keys', 'account', 'system'];
const WORKER = [
  'housekeeping',
  'relay',
  'revision-fanout',
  'canary-fanout',
  'ban-fanout',
  'acme-fanout',
  'purge-fanout',
];
const ALONE = ['protection', 'bans', 'waf', 'usage', 'node-channel'];

/** Services of each process by its name; `sites` gets those that are in no other. */
export const PROCESSES: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['gateway', GATEWAY],
  ['sites', others()],
  ...ALONE.map((name) => [name, [name]] as const),
  ['worker', WORKER],
]);

function others(): string[] {
  const placed = new Set([...GATEWAY, ...WORKER, ...ALONE]);
  const folders = readdirSync(path.join(root, 'services'), { withFileTypes: true });
  return folders
    .filter((each) => each.isDirectory() && each.name !== 'gen' && !placed.has(each.name))
    .map(({ name }) => name);
}

interface Started {
  child: ChildProcess;
  setupToken: string | null;
  /** From the start of the program to its log line that it runs. */
  startMs: number;
}

export class ServiceProcesses {
  readonly url: string;
  readonly nodeApiUrl: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #running = new Map<string, ChildProcess>();

  private constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
    this.url = `http://localhost:${env.PORT}`;
    this.nodeApiUrl = `https://localhost:${env.NODE_API_PORT}`;
  }

  static async of(databaseUrl: string, redisUrl: string, masterKey: string): Promise<ServiceProcesses> {
    const [web, node] = [await freePort(), await freePort()];
    return new ServiceProcesses({
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      SVC_REDIS_PREFIX: `bench${randomBytes(4).toString('hex')}:`,
      SVC_MASTER_KEY: masterKey,
      SVC_PUBLIC_URL: `http://localhost:${web}`,
      SVC_NODE_API_URL: `https://localhost:${node}`,
      HOST: '127.0.0.1',
      PORT: String(web),
      NODE_API_HOST: '127.0.0.1',
      NODE_API_PORT: String(node),
      METRICS_PORT: '0',
      LOG_LEVEL: 'info',
    });
  }

  /** Resolves once it runs. `services`: null runs all of them. */
  async start(name: string, services: readonly string[] | null = PROCESSES.get(name) ?? null): Promise<Started> {
    const begun = performance.now();
    const env = { ...this.#env, ...(services && { SERVICES: services.join(',') }) };
    const child = spawn(process.execPath, [path.join(root, 'bin', 'console.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    this.#running.set(name, child);
    const setupToken = await running(child);
    return { child, setupToken, startMs: performance.now() - begun };
  }

  /** kill −9. */
  async kill(name: string): Promise<void> {
    const child = this.#running.get(name)!;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#running.values()].map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }),
    );
    this.#running.clear();
  }
}

/** Waits for the log line that a console runs; returns its setup token. The log is read on to its end. */
function running(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`a process of the console ended with ${code}`)));
    let token: string | null = null;
    createInterface({ input: child.stdout! }).on('line', (text) => {
      if (!text.startsWith('{')) return;
      const line = JSON.parse(text) as { msg?: string; setupToken?: string };
      token = line.setupToken ?? token;
      if (line.msg === 'console started') resolve(token);
    });
  });
}
