// PgBouncer in transaction mode before a database, set as docs/production.md says.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Processes, tail } from '../../bin/lib/processes.ts';
import { giveTo, serverAccount } from '../../bin/lib/unprivileged.ts';
import { eventually } from './eventually.ts';

/** Another program may take the port before PgBouncer does. */
const ATTEMPTS = 5;

export interface Pooler {
  /** The database through the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** Starts PgBouncer with so many connections to the database, which its clients share. */
export async function startPooler(databaseUrl: string, connections: number): Promise<Pooler> {
  const { hostname, port, pathname, username, password } = new URL(databaseUrl);
  const database = pathname.slice(1);
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
  const logFile = join(folder, 'pgbouncer.log');
  const processes = new Processes(join(folder, 'processes.json'));
  // It refuses to run as root.
  const account = serverAccount();
  const stop = async () => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  for (let attempt = 1; ; attempt++) {
    const own = await unusedPort();
    const config = join(folder, 'pgbouncer.ini');
    const settings = [
      '[databases]',
      `${database} = host=${hostname} port=${port} dbname=${database} user=${username} password=${password}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${own}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'ignore_startup_parameters = statement_timeout',
      'query_timeout = 15',
      `default_pool_size = ${connections}`,
      'max_client_conn = 500',
    ];
    writeFileSync(config, `${settings.join('\n')}\n`, { mode: 0o600 });
    giveTo(account, folder);
    const child = processes.start({
      name: 'PgBouncer',
      command: 'pgbouncer',
      args: [config],
      logFile,
      ...(account ? { uid: account.uid, gid: account.gid } : {}),
    });
    const url = `postgres://${username}@127.0.0.1:${own}/${database}`;
    try {
      await eventually(
        async () => {
          if (!child.running()) return true;
          const client = new pg.Client({ connectionString: url });
          client.on('error', () => undefined);
          await client.connect();
          await client.end();
          return true;
        },
        { what: 'the start of PgBouncer' },
      );
      if (child.running()) return { url, stop };
      throw new Error(`PgBouncer ended:\n${tail(logFile)}`);
    } catch (error) {
      if (attempt < ATTEMPTS) continue;
      await stop();
      throw error;
    }
  }
}

function unusedPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
