// A whole installation for a benchmark, started the way a newcomer starts it: the demo, in a folder of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

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

export interface Stack {
  facts: DemoFacts;
  folder: string;
  api<T>(method: string, apiPath: string, body?: unknown): Promise<T>;
  /** Calls a session procedure as the operator. */
  rpc<T>(name: string, input: unknown): Promise<T>;
  /** `count` fresh access keys: a key takes 600 requests in a row. */
  accessKeys(count: number): Promise<string[]>;
  stop(): Promise<void>;
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
  const cookie = await signIn(facts);
  const api = <T>(method: string, apiPath: string, body?: unknown) => request<T>(facts, method, apiPath, body);
  const rpc = <T>(procedure: string, input: unknown) => call<T>(facts, cookie, procedure, input);
  return {
    facts,
    folder,
    api,
    rpc,
    accessKeys: (count) => createKeys(rpc, count),
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

async function request<T>(facts: DemoFacts, method: string, apiPath: string, body?: unknown): Promise<T> {
  const response = await fetch(`${facts.consoleUrl}/api/v1${apiPath}`, {
    method,
    headers: { 'x-api-key': facts.accessKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(15_000),
  });
  return answer<T>(response);
}

async function signIn(facts: DemoFacts): Promise<string> {
  const response = await fetch(`${facts.consoleUrl}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: facts.consoleUrl },
    body: JSON.stringify({ email: facts.operator.email, password: facts.operator.password }),
  });
  await answer(response);
  return response.headers
    .getSetCookie()
    .map((header) => header.split(';')[0])
    .join('; ');
}

async function call<T>(facts: DemoFacts, cookie: string, procedure: string, input: unknown): Promise<T> {
  const response = await fetch(`${facts.consoleUrl}/rpc/${procedure.replaceAll('.', '/')}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-csrf-token': 'orpc', origin: facts.consoleUrl, cookie },
    body: JSON.stringify(input),
  });
  return answer<T>(response);
}

async function answer<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as T;
}

async function createKeys(rpc: Stack['rpc'], count: number): Promise<string[]> {
  const keys: string[] = [];
  while (keys.length < count) {
    const batch = Math.min(8, count - keys.length);
    const created = await Promise.all(
      Array.from({ length: batch }, (_, index) =>
        rpc<{ secret: string }>('accessKeys.create', { name: `bench ${keys.length + index}`, scope: 'readwrite' }),
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
