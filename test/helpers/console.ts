// A whole console for a test file: in this process, or as a process of its own that can be killed.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { type Child, Processes, tail } from '../../bin/lib/processes.ts';
import { root } from '../../bin/lib/root.ts';
import { type Console, startConsole } from '../../services/start-console.ts';
import { eventually } from './eventually.ts';
import { createTestDatabase, redisPrefix, type Servers, servers, type TestDatabase } from './servers.ts';

export { type ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';

export interface TestConsoleOptions {
  /** Added to the console's environment; wins over what the helper sets. */
  env?: NodeJS.ProcessEnv;
  /** Servers to use instead of the shared ones. */
  servers?: Servers;
  /** A database to use instead of a new one; it is not dropped then. */
  database?: Pick<TestDatabase, 'url'>;
  /** Reuse for a second process on the same database. */
  masterKey?: string;
  redisPrefix?: string;
  /** false leaves the console without its operator. Default true. */
  setUp?: boolean;
  /** Folder of the sources that a process of its own runs; this repository's unless given. */
  sources?: string;
  /** Another host for a process of its own: the words that run a program there, and where it is reached from here. */
  host?: { exec: readonly string[]; address: string };
}

interface Base {
  env: NodeJS.ProcessEnv;
  /** http://127.0.0.1:port of the web listener. */
  url: string;
  /** https://localhost:port of the node channel. */
  nodeApiUrl: string;
  metricsUrl: string;
  databaseUrl: string;
  setupToken: string | null;
  /** Requests as nobody, as the operator and with an access key. */
  client: ConsoleClient;
  stop(): Promise<void>;
}

export interface TestConsole extends Base {
  running: Console;
}

export interface TestConsoleProcess extends Base {
  child: Child;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>;
  /** Everything the process has logged so far. */
  log(): string;
}

async function environment(
  options: TestConsoleOptions,
): Promise<{ env: NodeJS.ProcessEnv; drop: () => Promise<void> }> {
  const given = options.servers ?? (await servers());
  const database = options.database ?? (await createTestDatabase(given));
  const drop = async () => {
    if ('drop' in database) await (database as TestDatabase).drop();
  };
  const env: NodeJS.ProcessEnv = {
    DATABASE_URL: database.url,
    REDIS_URL: given.redisUrl,
    SVC_REDIS_PREFIX: options.redisPrefix ?? redisPrefix(),
    SVC_MASTER_KEY: options.masterKey ?? randomBytes(32).toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    HOST: '127.0.0.1',
    PORT: '0',
    NODE_API_HOST: '127.0.0.1',
    NODE_API_PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
    ...options.env,
  };
  return { env, drop };
}

function addressOf(scheme: string, host: string, address: { port: number } | null): string {
  return address ? `${scheme}://${host}:${address.port}` : '';
}

/** Starts a console inside this process. Its log goes to standard output from warnings on. */
export async function startTestConsole(options: TestConsoleOptions = {}): Promise<TestConsole> {
  const { env, drop } = await environment(options);
  const running = await startConsole(env);
  const url = addressOf('http', '127.0.0.1', running.web);
  const client = new ConsoleClient(url, env.SVC_PUBLIC_URL ?? '');
  const stop = async () => {
    await running.stop();
    await drop();
  };
  try {
    if (options.setUp !== false && running.setupToken) await client.setUp(running.setupToken);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    env,
    url,
    nodeApiUrl: addressOf('https', 'localhost', running.nodeChannel),
    metricsUrl: addressOf('http', '127.0.0.1', running.metrics),
    databaseUrl: env.DATABASE_URL ?? '',
    setupToken: running.setupToken,
    client,
    running,
    stop,
  };
}

interface LogLine {
  msg?: string;
  setupToken?: string;
  web?: { port: number } | null;
  nodeChannel?: { port: number } | null;
  metrics?: { port: number };
}

function logLines(text: string): LogLine[] {
  const complete = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return complete.map((line) => JSON.parse(line) as LogLine);
}

/** Starts a console as a process of its own. */
export async function startTestConsoleProcess(options: TestConsoleOptions = {}): Promise<TestConsoleProcess> {
  const { env, drop } = await environment({ ...options, env: { LOG_LEVEL: 'info', ...options.env } });
  const folder = mkdtempSync(join(tmpdir(), 'console-'));
  const logFile = join(folder, 'console.log');
  const processes = new Processes(join(folder, 'processes.json'));
  const [command = '', ...args] = [...(options.host?.exec ?? []), process.execPath];
  const address = options.host?.address ?? '127.0.0.1';
  const child = processes.start({
    name: 'console',
    command,
    args: [...args, join(options.sources ?? root, 'bin', 'console.ts')],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    logFile,
  });
  const log = () => readFileSync(logFile, 'utf8');
  const stop = async () => {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
    await drop();
  };
  try {
    const started = await eventually(
      () => {
        if (!child.running()) throw new Error(`the console ended:\n${tail(logFile)}`);
        return logLines(log()).find((line) => line.msg === 'console started');
      },
      { timeoutMs: 60_000, what: 'the start of the console' },
    );
    const setupToken = logLines(log()).find((line) => line.setupToken)?.setupToken ?? null;
    const url = addressOf('http', address, started.web ?? null);
    const client = new ConsoleClient(url, env.SVC_PUBLIC_URL ?? '');
    if (options.setUp !== false && setupToken && url) await client.setUp(setupToken);
    return {
      env,
      url,
      nodeApiUrl: addressOf('https', 'localhost', started.nodeChannel ?? null),
      metricsUrl: addressOf('http', address, started.metrics ?? null),
      databaseUrl: env.DATABASE_URL ?? '',
      setupToken,
      client,
      child,
      log,
      kill: async () => {
        process.kill(-child.pid, 'SIGKILL');
        await child.ended;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
