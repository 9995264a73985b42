// `npm start`: the console on this machine with one command. Stores named in the environment are used; otherwise
// PostgreSQL and Redis of our own run under the data folder.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseEnv } from '../runtime/env.ts';
import { buildCaddy } from './lib/caddy.ts';
import { migrateWithProgress, startConsoleProcess } from './lib/console-process.ts';
import { openDataFolder } from './lib/data-folder.ts';
import { geoipVariables } from './lib/geoip/databases.ts';
import { preflight } from './lib/preflight.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { downloadsDir, root } from './lib/root.ts';
import { installShutdown } from './lib/shutdown.ts';
import { startStores } from './lib/stores.ts';
import { buildWebConsole } from './lib/web-console.ts';

const HELP = `Usage: npm start [-- --data DIR] [--no-edge-build]

Starts the console. DATABASE_URL and REDIS_URL are used if set; otherwise the command runs its own PostgreSQL and Redis on
the loopback address, with their data under DIR (default data/console). Secrets are generated once and stored there.
With NODE_ENV=production nothing is generated: each variable that the console requires must be set.

  --data DIR        folder of all stored data
  --no-edge-build   skips building the Caddy binary of the edge`;

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: 'data/console' },
    'no-edge-build': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

async function startProduction(): Promise<void> {
  parseEnv(process.env);
  await buildWebConsole();
  await migrateWithProgress(process.env.DATABASE_DIRECT_URL || process.env.DATABASE_URL || '');
  await import('./console.ts');
}

async function startHere(): Promise<void> {
  const given = { databaseUrl: process.env.DATABASE_URL ?? '', redisUrl: process.env.REDIS_URL ?? '' };
  const path = resolve(root, values.data);
  await preflight({ dataDir: path, redis: given.redisUrl === '', caddy: false });
  const folder = await openDataFolder(path);
  const shutdown = installShutdown(async () => {
    folder.lock.stopping();
    await folder.processes.stopAll();
    folder.lock.release();
  });
  try {
    const stores = await startStores(folder, given);
    const env = await consoleEnv(folder.ports, stores, folder.secrets.masterKey);
    parseEnv(env);
    await buildWebConsole();
    await migrateWithProgress(env.DATABASE_DIRECT_URL || stores.databaseUrl);
    const host = env.HOST === '0.0.0.0' || env.HOST === '::' ? 'localhost' : env.HOST;
    const local = `http://${host?.includes(':') ? `[${host}]` : host}:${env.PORT}`;
    const child = await startConsoleProcess(folder.processes, env, local, {});
    void child.ended.then(() => shutdown.begin('the console has ended', 1));
    await tell(env.SVC_PUBLIC_URL ?? '', local);
    if (!values['no-edge-build']) await buildEdge();
  } catch (error) {
    if (shutdown.signal.aborted) return;
    report(error);
    shutdown.begin('the start failed', 1);
  }
}

async function consoleEnv(
  ports: { pick(name: string, preferred: number): Promise<number> },
  stores: { databaseUrl: string; redisUrl: string },
  masterKey: string,
): Promise<NodeJS.ProcessEnv> {
  const env: NodeJS.ProcessEnv = {
    ...(await geoipVariables()),
    ...process.env,
    DATABASE_URL: stores.databaseUrl,
    REDIS_URL: stores.redisUrl,
  };
  env.PORT ||= String(await ports.pick('console', 3000));
  env.NODE_API_PORT ||= String(await ports.pick('node channel', 8443));
  env.METRICS_PORT ||= String(await ports.pick('metrics listener', 9464));
  env.SVC_MASTER_KEY ||= masterKey;
  if (!env.SVC_PUBLIC_URL) {
    // An address of this machine only: nothing is offered to the network before somebody names the address to offer.
    env.SVC_PUBLIC_URL = `http://localhost:${env.PORT}`;
    env.HOST ||= '127.0.0.1';
    env.NODE_API_HOST ||= '127.0.0.1';
    env.SVC_NODE_API_URL ||= `https://localhost:${env.NODE_API_PORT}`;
  }
  env.SVC_DOWNLOADS_DIR ||= downloadsDir;
  env.HOST ||= '0.0.0.0';
  return env;
}

async function tell(publicUrl: string, local: string): Promise<void> {
  const response = await fetch(`${local}/api/v1/system/status`, { signal: AbortSignal.timeout(10_000) });
  const status = (await response.json()) as { initialized?: boolean };
  say(`\nThe console runs at ${publicUrl}`);
  if (status.initialized === false) say(`Create its operator at ${publicUrl}/setup with the setup token logged above.`);
  say('Ctrl-C stops it.\n');
}

/** The edge is built while the console already runs; a machine without Go can still be a console. */
async function buildEdge(): Promise<void> {
  try {
    await buildCaddy();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(`The edge binary was not built, so this machine cannot be an edge node yet. ${error.message}`);
  }
}

try {
  if (values.help) say(HELP);
  else if (process.env.NODE_ENV === 'production') await startProduction();
  else await startHere();
} catch (error) {
  report(error instanceof Error && error.name === 'EnvError' ? new Refusal(error.message) : error);
}
