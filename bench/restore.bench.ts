// The loss of a console: a backup of 10,000 sites, its restore into an empty database, and until 200 simulated nodes have what the
// backup says. The stores run without fsync, as in tests.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { restoreBackup } from '../bin/lib/backup/restore.ts';
import { ConsoleClient } from '../bin/lib/console-client.ts';
import { startTestStores } from '../bin/lib/test-stores.ts';
import { migrate } from '../migrations/run.ts';
import { OPTIONAL_TABLES } from '../models/backups/optional-tables.ts';
import { readConfigHead } from '../models/config/config-history.ts';
import { generateBackupKeys, parseSecretKey } from '../runtime/backup/keys.ts';
import { writeBackup } from '../runtime/backup/write-backup.ts';
import { createSealer } from '../runtime/sealer.ts';
import { type Console, startConsole } from '../services/start-console.ts';
import { type Fleet, startFleet } from './fleet/fleet.ts';
import { copySites } from './lib/copy-sites.ts';
import { freePort } from './lib/servers.ts';
import { round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'backup of 10,000 sites, restore, and 200 simulated nodes back with what it says';

const AIM_S = 60;
const WAIT_MS = 300_000;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const [sites, nodes] = quick ? [500, 20] : [10_000, 200];
  const stores = await startTestStores(`restore-${process.pid}`);
  const folder = mkdtempSync(join(tmpdir(), 'restore-bench-'));
  const masterKey = randomBytes(32);
  const env = await environment(stores.postgres.url, stores.redis.url, masterKey);
  let [running, fleet]: [Console | null, Fleet | null] = [null, null];
  const timed = async <T>(work: Promise<T>): Promise<[T, number]> => {
    const begun = performance.now();
    return [await work, round2((performance.now() - begun) / 1000)];
  };
  try {
    await migrate(stores.postgres.url);
    running = await startConsole(env);
    const client = new ConsoleClient(`http://127.0.0.1:${running.web!.port}`, env.SVC_PUBLIC_URL!);
    await client.setUp(running.setupToken!);
    const { id: clusterId } = await client.api<{ id: string }>('POST', '/clusters', { name: 'restore' });
    const origins = [{ address: 'origin.example.net', port: 80 }];
    const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
      clusterId,
      name: 'first',
      domains: ['first.example'],
      origins,
    });
    await copySites(running.runtime, clusterId, site.id, sites - 1);
    fleet = await startFleet({
      nodes,
      serverUrl: env.SVC_NODE_API_URL!,
      newToken: () => client.rpc('enrollmentTokens.create', { clusterId }),
      full: false,
      reconnectMs: 5_000,
    });
    await settled(running, fleet, clusterId);
    log(`${nodes} nodes have ${sites} sites`);
    const { publicKey, secretKey } = generateBackupKeys();
    const [backup, backupSeconds] = await timed(
      writeBackup({
        databaseUrl: stores.postgres.url,
        to: folder,
        recipients: [publicKey],
        leftOut: [],
        optionalTables: OPTIONAL_TABLES,
        version: 'bench',
      }),
    );
    log(`backup in ${backupSeconds} s`);
    // Later than the backup: nodes must give it up.
    await client.api('PUT', `/sites/${site.id}/enabled`, { enabled: false });
    await settled(running, fleet, clusterId);
    await running.stop();
    const restored = new URL(stores.postgres.url);
    restored.pathname = '/restored';
    await createDatabase(stores.postgres.url);
    const begun = performance.now();
    const [, restoreSeconds] = await timed(
      restoreBackup({
        databaseUrl: restored.href,
        file: backup.file,
        secret: parseSecretKey(secretKey),
        sealer: createSealer(masterKey),
      }),
    );
    log(`restore in ${restoreSeconds} s`);
    const before = fleet.nodes.map(({ counts }) => counts.pulls);
    running = await startConsole({ ...env, DATABASE_URL: restored.href });
    const startSeconds = round2((performance.now() - begun) / 1000 - restoreSeconds);
    await settled(running, fleet, clusterId);
    const wholeSeconds = round2((performance.now() - begun) / 1000);
    const pulls = fleet.nodes.reduce((sum, { counts }, index) => sum + counts.pulls - before[index]!, 0);
    return {
      figures: {
        sites,
        nodes,
        rows: backup.rows,
        backupMiB: round2(backup.bytes / 1024 / 1024),
        backupSeconds,
        restoreSeconds,
        startSeconds,
        wholeSeconds,
        pulls,
        memoryMiB: Math.round(process.memoryUsage.rss() / 1024 / 1024),
      },
      aims: [{ aim: `restore to the last node ≤ ${AIM_S} s`, reached: wholeSeconds <= AIM_S }],
      notes: ['Memory is that of console, nodes, backup and restore in one process.'],
    };
  } finally {
    fleet?.stop();
    await running?.stop();
    await stores.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function environment(databaseUrl: string, redisUrl: string, masterKey: Buffer): Promise<NodeJS.ProcessEnv> {
  const port = String(await freePort());
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    SVC_MASTER_KEY: masterKey.toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    HOST: '127.0.0.1',
    PORT: '0',
    NODE_API_HOST: '127.0.0.1',
    NODE_API_PORT: port,
    SVC_NODE_API_URL: `https://localhost:${port}`,
    METRICS_PORT: '0',
    LOG_LEVEL: 'fatal',
  };
}

async function createDatabase(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('create database restored');
  await client.end();
}

/** Waits until each node is where the database is. */
async function settled({ runtime }: Console, fleet: Fleet, clusterId: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const away = fleet.nodes.filter(({ config }) => config.epoch !== head.epoch || config.revision !== head.revision);
    if (away.length === 0) return;
    if (performance.now() > deadline) throw new Error(`${away.length} nodes are not at revision ${head.revision}`);
    await sleep(50);
  }
}
