// A console with its stores and no edge: for benchmarks whose nodes are all simulated. The stores run without fsync, as
// in tests.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { startTestStores } from '../../bin/lib/test-stores.ts';
import { buildWebConsole } from '../../bin/lib/web-console.ts';
import { migrate } from '../../migrations/run.ts';
import { freePort } from './servers.ts';
import type { Installation } from './stack.ts';

const START_MS = 120_000;

interface LogLine {
  msg?: string;
  setupToken?: string;
}

export interface ConsoleStack extends Installation {
  console: ChildProcess;
  postgresPid: number;
  databaseUrl: string;
  redisPid: number;
}

/**
 * Starts a set-up console with its pages, as a process of its own; `preload` is a module that is loaded before it and may
 * talk to the channel of the child.
 */
export async function startConsoleStack(name: string, options: { preload?: URL } = {}): Promise<ConsoleStack> {
  await buildWebConsole();
  const stores = await startTestStores(`${process.pid}-${name}`);
  await migrate(stores.postgres.url);
  const [web, node] = [await freePort(), await freePort()];
  const consoleUrl = `http://localhost:${web}`;
  const nodeApiUrl = `https://localhost:${node}`;
  const preload = options.preload ? ['--import', options.preload.href] : [];
  const child = spawn(process.execPath, [...preload, path.join(root, 'bin', 'console.ts')], {
    stdio: ['ignore', 'pipe', 'inherit', ...(options.preload ? (['ipc'] as const) : [])],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: stores.postgres.url,
      REDIS_URL: stores.redis.url,
      SVC_MASTER_KEY: randomBytes(32).toString('base64'),
      SVC_PUBLIC_URL: consoleUrl,
      SVC_NODE_API_URL: nodeApiUrl,
      HOST: '127.0.0.1',
      PORT: String(web),
      NODE_API_HOST: '127.0.0.1',
      NODE_API_PORT: String(node),
      METRICS_PORT: '0',
      LOG_LEVEL: 'info',
    },
  });
  const stop = async () => {
    await end(child);
    await stores.stop();
  };
  try {
    const client = new ConsoleClient(consoleUrl, consoleUrl);
    await client.setUp(await setupToken(child));
    const { items } = await client.rpc<{ items: { id: string }[] }>('clusters.list');
    const { email, password } = TEST_OPERATOR;
    const facts = {
      consoleUrl,
      nodeApiUrl,
      operator: { email, password },
      clusterId: items[0]!.id,
      pids: { console: child.pid! },
    };
    const { postgres, redis } = stores;
    return {
      facts,
      client,
      stop,
      console: child,
      postgresPid: postgres.child.pid,
      databaseUrl: postgres.url,
      redisPid: redis.child.pid,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** From the log of a console without an operator, once it has started; the log is read on to its end. */
function setupToken(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the console did not start in time')), START_MS);
    child.once('exit', (code) => reject(new Error(`the console ended with ${code}`)));
    let token = '';
    createInterface({ input: child.stdout! }).on('line', (text) => {
      if (!text.startsWith('{')) return;
      const line = JSON.parse(text) as LogLine;
      token = line.setupToken ?? token;
      if (line.msg !== 'console started') return;
      clearTimeout(timer);
      resolve(token);
    });
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(timer);
}
