// A console of its own with the bench's port (console.ts), set up, with a site to read and access keys to read it with.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { startTestStores } from '../../bin/lib/test-stores.ts';
import { KeyPool } from '../lib/key-pool.ts';

export interface GatewayBench {
  /** For the scripts of wrk; goes at the end. */
  folder: string;
  child: ChildProcess;
  client: ConsoleClient;
  /** Where the same is answered without the conventions. */
  barePort: number;
  /** Address of GET /sites/{id}. */
  readUrl: string;
  siteId: string;
  url: string;
  databaseUrl: string;
  keys: KeyPool;
  stop(): Promise<void>;
}

/** With `keys` access keys, of 600 requests each. */
export async function startGatewayBench(options: { keys: number }): Promise<GatewayBench> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-gateway-'));
  const stores = await startTestStores(`${process.pid}-bench`);
  const child = spawn(process.execPath, [path.join(root, 'bench/gateway-auth/console.ts')], {
    env: consoleEnv(stores.postgres.url, stores.redis.url),
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const stop = async () => {
    if (child.exitCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
    await stores.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ports = await portsOf(child);
    const url = `http://127.0.0.1:${ports.web}`;
    const client = new ConsoleClient(url, 'http://localhost:3000');
    await client.setUp(ports.setupToken);
    const { site } = await client.rpc<{ site: { id: string } }>('sites.create', {
      domains: ['bench.example'],
      origins: [{ address: 'origin.example' }],
    });
    return {
      folder,
      child,
      client,
      barePort: ports.bare,
      readUrl: `${url}/api/v1/sites/${site.id}`,
      siteId: site.id,
      url,
      databaseUrl: stores.postgres.url,
      keys: new KeyPool(await accessKeys(client, options.keys)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function consoleEnv(databaseUrl: string, redisUrl: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SVC_MASTER_KEY: randomBytes(32).toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    HOST: '127.0.0.1',
    PORT: '0',
    NODE_API_HOST: '127.0.0.1',
    NODE_API_PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'error',
  };
}

interface Ports {
  web: number;
  bare: number;
  setupToken: string;
}

async function portsOf(child: ChildProcess): Promise<Ports> {
  let text = '';
  for await (const chunk of child.stdout!) {
    text += String(chunk);
    const line = text.split('\n').find((each) => each.startsWith('{"web"') && each.endsWith('}'));
    if (line) {
      // Whoever leaves such a loop ends the stream; the console may go on writing.
      return JSON.parse(line) as Ports;
    }
  }
  throw new Error(`the console ended: ${text}`);
}

async function accessKeys(client: ConsoleClient, count: number): Promise<string[]> {
  const keys: string[] = [];
  for (let index = 0; index < count; index++) {
    keys.push((await client.rpc<{ secret: string }>('accessKeys.create', { name: `bench ${index}` })).secret);
  }
  return keys;
}
