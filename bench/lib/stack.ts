// A whole installation for a benchmark, started the way a newcomer starts it: the demo, in a folder of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import pino from 'pino';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { createRuntime } from '../../runtime/create-runtime.ts';
import { parseEnv } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** What the demo leaves for scripts in its data folder. */
export interface DemoFacts {
  consoleUrl: string;
  nodeApiUrl: string;
  accessKey: string;
  operator: { email: string; password: string };
  clusterId: string;
  nodeId: string;
  edge: { http: string; https: string | null };
  origin: string;
  clientIpHeader: string;
  site: { id: string; host: string };
  pids: { console: number; agent: number; caddy: number };
}

/** What a simulated fleet and work on the stores need of an installation. */
export interface Installation {
  facts: Pick<DemoFacts, 'consoleUrl' | 'nodeApiUrl' | 'operator' | 'clusterId'> & { pids: { console: number } };
  /** Signed in as the operator, with an access key. Session calls (`rpc`) are not counted by the rate limit. */
  client: ConsoleClient;
  stop(): Promise<void>;
}

export interface Stack extends Installation {
  facts: DemoFacts;
  folder: string;
  /** `count` fresh access keys: a key takes 600 requests in a row. */
  accessKeys(count: number): Promise<string[]>;
}

/** Works on the installation's stores as a process of its console would. */
export async function withRuntime<T>(
  { facts }: { facts: Pick<Installation['facts'], 'pids'> },
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const lines = readFileSync(`/proc/${facts.pids.console}/environ`, 'utf8').split('\0');
  const env = parseEnv(Object.fromEntries(lines.map((line) => [line.split('=', 1)[0], line.replace(/^[^=]*=/, '')])));
  const stopping = new AbortController();
  const { runtime, close } = createRuntime(env, pino({ level: 'silent' }), stopping.signal);
  try {
    await once(runtime.redis, 'ready');
    return await work(runtime);
  } finally {
    stopping.abort();
    await close();
  }
}

const root = path.resolve(import.meta.dirname, '../..');

/** Starts a fresh installation; answers when the demo site is live. */
export async function startStack(name: string, options: { kernel?: boolean } = {}): Promise<Stack> {
  const folder = path.join(root, '.cache', 'bench', name);
  mkdirSync(path.dirname(folder), { recursive: true });
  const demo = spawn(
    process.execPath,
    ['bin/demo.ts', '--fresh', '--data', folder, ...(options.kernel ? ['--kernel'] : [])],
    { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const facts = await factsOf(demo, path.join(folder, 'demo.json'));
  const client = new ConsoleClient(facts.consoleUrl, facts.consoleUrl);
  client.accessKey = facts.accessKey;
  await client.signIn(facts.operator);
  return {
    facts,
    folder,
    client,
    accessKeys: (count) => createKeys(client, count),
    stop: () => stop(demo, folder),
  };
}

async function factsOf(demo: ChildProcess, file: string): Promise<DemoFacts> {
  let output = '';
  demo.stdout?.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-20_000);
  });
  const deadline = Date.now() + 300_000;
  while (Date.now() < deadline) {
    if (demo.exitCode !== null) throw new Error(`the demo ended with ${demo.exitCode}:\n${output}`);
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as DemoFacts;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`the demo was not ready in time:\n${output}`);
}

async function createKeys(client: ConsoleClient, count: number): Promise<string[]> {
  const keys: string[] = [];
  while (keys.length < count) {
    const batch = Math.min(8, count - keys.length);
    const created = await Promise.all(
      Array.from({ length: batch }, (_, index) =>
        client.rpc<{ secret: string }>('accessKeys.create', {
          name: `bench ${keys.length + index}`,
          scope: 'readwrite',
        }),
      ),
    );
    keys.push(...created.map((each) => each.secret));
  }
  return keys;
}

async function stop(demo: ChildProcess, folder: string): Promise<void> {
  if (demo.exitCode === null) {
    const ended = new Promise((resolve) => demo.once('exit', resolve));
    demo.kill('SIGTERM');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}
