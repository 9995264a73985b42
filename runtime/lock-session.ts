// A database connection that holds session advisory locks: its own, not of a pool, and straight to the server, because
// behind a transaction pooler a session lock belongs to nobody.
import pg from 'pg';
import type { Runtime } from './runtime.ts';

/** Advisory locks with two keys: the first says what for, "SV" and a number. Feeds register their own. */
export const LOCK_CLASS = { job: 0x53560103, candidate: 0x53560106 } as const;

const CONNECT_MS = 5_000;
const CLOSE_MS = 1_000;
/** An answer that takes longer means the lock may be lost. */
export const CHECK_TIMEOUT_MS = 2_000;

/** The configured database address leads through a connection pooler. */
export class PoolerError extends Error {}

/**
 * Connects to DATABASE_DIRECT_URL under the application name, with keepalives that free the locks of a dead link within
 * about 5 s, and of a process that hangs after 10 s. Throws {@link PoolerError} behind a pooler.
 */
export async function openLockSession(runtime: Runtime, applicationName: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: runtime.env.databaseDirectUrl,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CHECK_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 2_000,
  });
  // Without a listener a lost connection would end the process; the next query tells.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(
      `set tcp_keepalives_idle = 2; set tcp_keepalives_interval = 1; set tcp_keepalives_count = 3;
       set tcp_user_timeout = 5000; set idle_session_timeout = 10000`,
    );
    await refusePooler(client);
    return client;
  } catch (error) {
    await closeLockSession(client);
    throw error;
  }
}

/** Ends the session, and with it its locks; a server that does not answer is not waited for. */
export async function closeLockSession(client: pg.Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_MS);
  });
  await Promise.race([client.end().catch(() => undefined), patience]);
  clearTimeout(timer);
  (client as pg.Client & { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/** A pooler answers the connection with a process id of its own invention. */
async function refusePooler(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const { processID } = client as pg.Client & { processID: number };
  if (rows[0]!.pid === processID) return;
  throw new PoolerError(
    'DATABASE_DIRECT_URL leads through a connection pooler. Lasting locks need the address of the server itself',
  );
}
