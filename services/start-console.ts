// Starts one console process and stops it: environment, database, migrations, master key, setup token, services,
// listeners, in this order; backwards to stop. Several can run in one process.
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import type { Logger } from 'pino';
import { migrate } from '../migrations/run.ts';
import { brokerOptions } from '../moleculer.config.ts';
import { positionMarks } from '../pipeline/position-marks.ts';
import { prepareConsoleState } from '../runtime/console-state.ts';
import { createRuntime } from '../runtime/create-runtime.ts';
import { Elsewhere } from '../runtime/elsewhere.ts';
import { type ConsoleEnv, isLoopbackHost, parseEnv } from '../runtime/env.ts';
import { type InternalListener, openInternalListener } from '../runtime/internal-listener.ts';
import type { Address, Listener } from '../runtime/listener.ts';
import { createLog } from '../runtime/log.ts';
import { poolSizes } from '../runtime/pool-sizes.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { waitForDatabase } from '../runtime/wait-for-database.ts';
import { discoverFeeds, discoverServices, formerNames } from './discover.ts';

/** How long a start waits for Redis before it goes on without; calls between processes need it and wait longer. */
const REDIS_PATIENCE_MS = 5_000;

export interface StartOptions {
  /** Instead of standard output. */
  log?: Logger;
}

export interface Console {
  /** Where the web port listens; null in roles without it. */
  web: Address | null;
  nodeChannel: Address | null;
  /** The internal listener: /metrics, /livez, /readyz. */
  metrics: Address;
  /** Present while nobody has set the console up. */
  setupToken: string | null;
  runtime: Runtime;
  broker: ServiceBroker;
  /** Ends requests within 3 s and jobs within 5 s; safe to call twice. */
  stop(): Promise<void>;
}

/** Starts the console described by the environment. Throws EnvError, or why it cannot start; nothing stays open then. */
export async function startConsole(
  source: Readonly<Record<string, string | undefined>>,
  options: StartOptions = {},
): Promise<Console> {
  const env = parseEnv(source);
  const found = await discoverServices(env);
  const log = options.log ?? createLog(env.logLevel);
  for (const renamed of formerNames(env.services))
    log.warn(renamed, 'SERVICES has a former name that the next release refuses');
  if (isReadable(env.redisUrl))
    log.warn(
      { host: new URL(env.redisUrl).hostname, use: 'rediss://' },
      'REDIS_URL is not encrypted and not on this machine: the network between can read live events and counts',
    );
  const stopping = new AbortController();
  const { runtime, close } = createRuntime(
    env,
    log,
    stopping.signal,
    await discoverFeeds(),
    poolSizes(found.services.map(({ pools }) => pools)),
  );
  const elsewhere = new Elsewhere(runtime, found.elsewhere);
  let broker: ServiceBroker | null = null;
  let internal: InternalListener | null = null;
  let started = false;
  const opened: Listener[] = [];
  const stopOnce = async () => {
    stopping.abort();
    await Promise.all(opened.map((listener) => listener.close()));
    await broker?.stop();
    await internal?.close();
    await close();
  };
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= stopOnce();
    return stopped;
  };
  try {
    internal = await openInternalListener(runtime, () => started, elsewhere);
    const setupToken = await prepareDatabase(env, runtime);
    await waitForRedis(runtime);
    broker = new ServiceBroker(brokerOptions(runtime));
    elsewhere.watch(broker);
    for (const service of found.services) broker.createService(service.create(runtime));
    await broker.start();
    const addresses = new Map<string, Address>();
    for (const listener of runtime.listeners) {
      opened.push(listener);
      addresses.set(listener.name, await listener.open());
    }
    started = true;
    const web = addresses.get('web') ?? null;
    const nodeChannel = addresses.get('node-channel') ?? null;
    const services = found.services.map((service) => service.name);
    const metrics = { host: internal.host, port: internal.port };
    const about = { role: env.role, services, elsewhere: found.elsewhere, version: env.version };
    log.info({ ...about, web, nodeChannel, metrics }, 'console started');
    return { web, nodeChannel, metrics, setupToken, runtime, broker, stop };
  } catch (error) {
    await stop().catch((err) => log.error({ err }, 'console not stopped cleanly after a failed start'));
    throw error;
  }
}

/** Whether the network can read what goes to Redis. */
function isReadable(redisUrl: string): boolean {
  const { protocol, hostname } = new URL(redisUrl);
  return protocol === 'redis:' && !isLoopbackHost(hostname);
}

async function prepareDatabase(env: ConsoleEnv, runtime: Runtime): Promise<string | null> {
  const { log } = runtime;
  await waitForDatabase(env.databaseDirectUrl, log, runtime.stopping);
  await migrate(env.databaseDirectUrl, ({ name, index, total }) => log.info({ name, index, total }, 'migrating'));
  const setupToken = await prepareConsoleState(runtime);
  await positionMarks(runtime);
  // The one secret that is logged on purpose: whoever can read the log may set the console up, once.
  if (setupToken) log.info({ setupToken, url: `${env.publicUrl}/setup` }, 'console waits for its setup');
  return setupToken;
}

async function waitForRedis({ redis, log, stopping }: Runtime): Promise<void> {
  const deadline = Date.now() + REDIS_PATIENCE_MS;
  while (redis.status !== 'ready' && Date.now() < deadline) await sleep(20, undefined, { signal: stopping });
  if (redis.status !== 'ready') log.warn('console starts without redis');
}
