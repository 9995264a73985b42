// PostgreSQL and Redis for tests, each run with servers of its own in .cache/test/<process>. They survive any death of a
// process but not of the machine, which is what makes them fast.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type DataFolder, openDataFolder, removeDataFolder } from './data-folder.ts';
import { isLocked } from './lock.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { startedAt } from './process-table.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { cacheDir } from './root.ts';

export interface TestStores {
  folder: DataFolder;
  postgres: PostgresServer;
  redis: RedisServer;
  /** Stops the servers and deletes their data. */
  stop(): Promise<void>;
}

const POSTGRES_PORT = 25_432;
const REDIS_PORT = 26_379;
const SPREAD = 400;

/** Removes what earlier runs left when they were killed. */
async function removeLeftovers(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    // A folder is named after the process that made it, and has no lock in its first moments.
    if (startedAt(Number.parseInt(name, 10)) !== undefined) continue;
    if (!isLocked(join(folder, name, 'launcher.lock'))) await removeDataFolder(join(folder, name));
  }
}

/** Starts both servers in a new folder. */
export async function startTestStores(name = String(process.pid)): Promise<TestStores> {
  const parent = join(cacheDir, 'test');
  await removeLeftovers(parent);
  const folder = await openDataFolder(join(parent, name));
  const { processes, ports, secrets } = folder;
  // Runs that start together look for ports from different places on.
  const offset = process.pid % SPREAD;
  const postgres = await startPostgres({
    processes,
    dataDir: folder.file('postgres'),
    logFile: folder.log('postgres'),
    port: await ports.pick('PostgreSQL', POSTGRES_PORT + offset),
    password: secrets.postgresPassword,
    database: 'svc',
    durable: false,
  });
  const redis = await startRedis({
    processes,
    dataDir: folder.file('redis'),
    logFile: folder.log('redis'),
    port: await ports.pick('Redis', REDIS_PORT + offset),
    password: secrets.redisPassword,
  });
  const stop = async () => {
    await processes.stopAll();
    folder.lock.release();
    await removeDataFolder(folder.path);
  };
  return { folder, postgres, redis, stop };
}
