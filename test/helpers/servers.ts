// PostgreSQL and Redis for a test file. `npm test` starts one pair for all files and names it in TEST_DATABASE_URL and
// TEST_REDIS_URL; a file that is run alone starts its own pair. Either way each file works in a database cloned from a
// migrated template and under a key prefix nobody else has.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { registerCompletionHandler } from 'ava';
import pg from 'pg';
import type { Child } from '../../bin/lib/processes.ts';
import { root } from '../../bin/lib/root.ts';
import { startTestStores, type TestStores } from '../../bin/lib/test-stores.ts';
import { migrate } from '../../migrations/run.ts';

export interface Servers {
  /** Connection string of a database whose user may create databases. */
  databaseUrl: string;
  redisUrl: string;
}

export interface TestDatabase {
  url: string;
  name: string;
  drop(): Promise<void>;
}

let own: Promise<TestStores> | undefined;

/** The shared servers, started when nobody has. */
export async function servers(): Promise<Servers> {
  const { TEST_DATABASE_URL, TEST_REDIS_URL } = process.env;
  if (TEST_DATABASE_URL && TEST_REDIS_URL) return { databaseUrl: TEST_DATABASE_URL, redisUrl: TEST_REDIS_URL };
  own ??= startTestStores();
  const { postgres, redis } = await own;
  return { databaseUrl: postgres.url, redisUrl: redis.url };
}

// After the hooks of the file: they stop consoles and drop databases, which need the servers.
registerCompletionHandler(() => {
  void own?.then((stores) => stores.stop());
});

/** A pair of servers of this file alone, for tests that kill or flush them. Call `stop` at the end. */
export async function privateServers(): Promise<Servers & { postgres: Child; redis: Child; stop(): Promise<void> }> {
  const stores = await startTestStores(`${process.pid}-${randomBytes(4).toString('hex')}`);
  return {
    databaseUrl: stores.postgres.url,
    redisUrl: stores.redis.url,
    postgres: stores.postgres.child,
    redis: stores.redis.child,
    stop: stores.stop,
  };
}

/** Key prefix for one console or one test file (SVC_REDIS_PREFIX). */
export function redisPrefix(): string {
  return `t${randomBytes(5).toString('hex')}:`;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function inDatabase(url: string, name: string): string {
  const address = new URL(url);
  address.pathname = `/${name}`;
  return address.href;
}

/** Name of the template for the present migrations and functions. */
function templateName(): string {
  const folder = join(root, 'migrations');
  const hash = createHash('sha256');
  for (const name of (readdirSync(folder, { recursive: true }) as string[]).sort())
    if (/\.(ts|sql)$/.test(name)) hash.update(readFileSync(join(folder, name)));
  return `template_${hash.digest('hex').slice(0, 12)}`;
}

async function ensureTemplate(adminUrl: string): Promise<string> {
  const name = templateName();
  await withClient(adminUrl, async (client) => {
    // Test files run at the same time: the first one migrates, the others wait.
    await client.query('select pg_advisory_lock(727272)');
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount !== 0) return;
    const building = `${name}_building`;
    await client.query(`drop database if exists ${building} with (force)`);
    await client.query(`create database ${building}`);
    await migrate(inDatabase(adminUrl, building));
    await client.query(`alter database ${building} rename to ${name}`);
  });
  return name;
}

/** A migrated, empty database; dropped at the end of the file. */
export async function createTestDatabase(given?: Pick<Servers, 'databaseUrl'>): Promise<TestDatabase> {
  const adminUrl = (given ?? (await servers())).databaseUrl;
  const template = await ensureTemplate(adminUrl);
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withClient(adminUrl, (client) => client.query(`create database ${name} template ${template}`));
  const drop = async () => {
    await withClient(adminUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
  };
  return { url: inDatabase(adminUrl, name), name, drop };
}
