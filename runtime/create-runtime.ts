// Makes the runtime of a process: connections, sealer, metrics. Nothing here waits for a server to be there.
import { Redis, type RedisOptions } from 'ioredis';
import knexFactory, { type Knex } from 'knex';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { ConsoleEnv } from './env.ts';
import { type Feed, Feeds } from './feeds.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { LimitedClient, PooledClient } from './limited-client.ts';
import { PacketCipher } from './packet-cipher.ts';
import { PacketSeal } from './packet-seal.ts';
import { createPgPool, poolConnection } from './pg-pool.ts';
import { FOR_ALL, type PoolSizes } from './pool-sizes.ts';
import type { Runtime } from './runtime.ts';
import { createSealer } from './sealer.ts';
import { registerStoreMetrics } from './store-metrics.ts';

const CONNECT_MS = 5_000;
/** Below the time of a request (REQUEST_MS of the broker): its client gets the response of a statement that was ended. */
const REQUEST_STATEMENT_MS = 8_000;
const STATEMENT_MS = 15_000;
/** Jobs wait for each other. */
const JOBS_WAIT_MS = 120_000;
/** A command that takes longer has met a stalled Redis; blocking readers have connections without this bound. */
const COMMAND_MS = 2_000;
/** Without a byte of Redis after a command: the link died without a word, and is replaced. */
export const DEAD_LINK_MS = 5_000;
const LONGEST_RETRY_MS = 2_000;
/** Of one cluster: more than are made in the time that one may wait. */
const MOST_WAITING_PUBLICATIONS = 1_000;

/** The runtime and what ends it. */
export interface OwnedRuntime {
  runtime: Runtime;
  /** Closes every connection; safe to call twice. */
  close(): Promise<void>;
}

export function createRuntime(
  env: ConsoleEnv,
  log: Logger,
  stopping: AbortSignal,
  feeds: readonly Feed[] = [],
  sizes: PoolSizes = FOR_ALL,
): OwnedRuntime {
  const connections = new Set<Redis>();
  const connect = (purpose: string, options: RedisOptions): Redis => {
    const redis = createRedis(env.redisUrl, options);
    connections.add(redis);
    redis.once('end', () => connections.delete(redis));
    logConnection(redis, log.child({ component: 'redis', purpose }));
    return redis;
  };
  const behindPooler = env.databaseDirectUrl !== env.databaseUrl;
  const createPool = (name: string, max: number, times = REQUEST_TIMES) =>
    createKnex(env.databaseUrl, behindPooler, name, max, log, times);
  const createPlainPool = (name: string, max: number) => {
    const pool = createPgPool({ url: env.databaseUrl, behindPooler, name, max });
    // An idle connection that breaks is replaced at its next use; without a listener it would end the process.
    pool.on('error', (err) => log.warn({ err }, 'idle database connection lost'));
    return pool;
  };
  const pools = {
    api: createPool('svc-api', sizes.api),
    jobs: createPool('svc-jobs', sizes.jobs, { statementMs: STATEMENT_MS, waitMs: JOBS_WAIT_MS }),
    bans: createPool('svc-bans', sizes.bans),
    channel: createPlainPool('svc-channel', sizes.channel),
    ingest: createPlainPool('svc-ingest', sizes.ingest),
  };
  const runtime: Runtime = {
    env,
    log,
    pools,
    // Without a queue: a command sent while Redis is away fails at once instead of waiting for it.
    redis: connect('commands', {
      enableAutoPipelining: true,
      // Gathered by whoever asks; once more would cost another turn of the loop.
      autoPipeliningIgnoredCommands: ['svcCountRequests'],
      enableOfflineQueue: false,
      commandTimeout: COMMAND_MS,
      socketTimeout: DEAD_LINK_MS,
      maxRetriesPerRequest: 0,
    }),
    newRedis: () => connect('reader', { maxRetriesPerRequest: null }),
    sealer: createSealer(env.masterKey, env.previousMasterKey),
    seals: {
      broker: new PacketSeal('broker', env.masterKey, env.previousMasterKey),
      fanout: new PacketSeal('fanout', env.masterKey, env.previousMasterKey),
    },
    cipher: new PacketCipher('broker', env.masterKey, env.previousMasterKey),
    feeds: new Feeds(feeds),
    publications: new KeyedQueue(MOST_WAITING_PUBLICATIONS),
    metrics: new Registry(),
    listeners: [],
    stopping,
  };
  registerStoreMetrics(runtime);
  let closed: Promise<void> | null = null;
  const close = async () => {
    for (const redis of connections) redis.disconnect();
    const { api, jobs, bans, channel, ingest } = pools;
    await Promise.all([api.destroy(), jobs.destroy(), bans.destroy(), channel.end(), ingest.end()]);
  };
  return {
    runtime,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** A connection with the options that every one has. */
export function createRedis(url: string, options: RedisOptions): Redis {
  const redis = new Redis(url, { ...redisOptions(), ...options });
  // The client's timer of `socketTimeout` outlives the connection and would end the next one.
  redis.on('close', () => {
    const timed = redis as unknown as { socketTimeoutTimer: NodeJS.Timeout | undefined };
    clearTimeout(timed.socketTimeoutTimer);
    timed.socketTimeoutTimer = undefined;
  });
  // After a reconnect the client subscribes again by itself and hears of no failure: a connection that ended meanwhile
  // would end the process. Whoever subscribes first still gets the failure.
  const subscribe = redis.subscribe.bind(redis) as (...channels: unknown[]) => Promise<unknown>;
  redis.subscribe = ((...channels: unknown[]) => {
    const subscribed = subscribe(...channels);
    subscribed.catch(() => undefined);
    return subscribed;
  }) as typeof redis.subscribe;
  return redis;
}

/** Options of every Redis connection: bounded connects, endless retries with a bounded pause. */
function redisOptions(): RedisOptions {
  return {
    connectTimeout: CONNECT_MS,
    keepAlive: 10_000,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), LONGEST_RETRY_MS) * (0.5 + Math.random() / 2),
  };
}

interface PoolTimes {
  /** Of one statement, and of waiting for a connection. */
  statementMs: number;
  waitMs: number;
}

const REQUEST_TIMES: PoolTimes = { statementMs: REQUEST_STATEMENT_MS, waitMs: CONNECT_MS };

function createKnex(
  databaseUrl: string,
  behindPooler: boolean,
  name: string,
  max: number,
  log: Logger,
  { statementMs, waitMs }: PoolTimes,
): Knex {
  // The pool tells of every broken connection; whoever needed it is told as well, so this is detail.
  const detail = (message: unknown) => log.debug({ pool: name, detail: String(message) }, 'database pool');
  return knexFactory({
    client: (behindPooler ? PooledClient : LimitedClient) as unknown as typeof Knex.Client,
    connection: poolConnection(databaseUrl, name, statementMs) as Knex.PgConnectionConfig,
    pool: { min: 0, max },
    acquireConnectionTimeout: waitMs,
    log: { warn: detail, error: detail, deprecate: detail, debug: detail },
  });
}

/** One line when the connection is lost, one when it is back; retries in between are silent. */
function logConnection(redis: Redis, log: Logger): void {
  let up = true;
  redis.on('ready', () => {
    if (!up) log.info('redis connection restored');
    up = true;
  });
  redis.on('error', (err) => {
    if (up) log.warn({ err }, 'redis connection lost');
    up = false;
  });
}
