// PostgreSQL and Redis of an installation: the ones named in the environment, else servers of our own in its data folder.
import type { DataFolder } from './data-folder.ts';
import { startPostgres } from './postgres.ts';
import { during } from './progress.ts';
import { startRedis } from './redis.ts';

export interface Stores {
  databaseUrl: string;
  redisUrl: string;
}

/** Preferred ports of the servers; the next free one is taken. */
const POSTGRES_PORT = 15432;
const REDIS_PORT = 16379;

export async function startStores(folder: DataFolder, given: Partial<Stores>): Promise<Stores> {
  const databaseUrl =
    given.databaseUrl ||
    (await during('PostgreSQL', async () => {
      const port = await folder.ports.pick('PostgreSQL', POSTGRES_PORT);
      const { processes, secrets } = folder;
      const place = { dataDir: folder.file('postgres'), logFile: folder.log('postgres') };
      return (await startPostgres({ processes, port, password: secrets.postgresPassword, database: 'svc', ...place }))
        .url;
    }));
  const redisUrl =
    given.redisUrl ||
    (await during('Redis', async () => {
      const port = await folder.ports.pick('Redis', REDIS_PORT);
      const { processes, secrets } = folder;
      const place = { dataDir: folder.file('redis'), logFile: folder.log('redis') };
      return (await startRedis({ processes, port, password: secrets.redisPassword, ...place })).url;
    }));
  return { databaseUrl, redisUrl };
}
