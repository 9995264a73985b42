// Connections of backups and restores.
import pg, { type Client } from 'pg';
import { BackupError } from './backup-error.ts';

const CONNECT_MS = 10_000;

/** Times, numbers and bytes are written the same way everywhere, and rows come in the order in which they are stored. */
const SETTINGS = `set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set transaction_timeout = 0;
  set lock_timeout = '10s'; set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres';
  set extra_float_digits = 1; set bytea_output = 'hex'; set xmloption = 'content'; set synchronize_seqscans = off;
  set max_parallel_workers_per_gather = 0; set client_encoding = 'UTF8'`;

/** Opens a connection for `work`, and closes it whatever happens. Aborting the signal breaks it. */
export async function withSession<T>(
  databaseUrl: string,
  signal: AbortSignal | undefined,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    application_name: 'edge-console-backup',
  });
  // Of a broken connection the statement under way says enough.
  client.on('error', () => undefined);
  const stop = () => (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  try {
    signal?.throwIfAborted();
    try {
      await client.connect();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new BackupError('database', `The database cannot be reached: ${why}`, { cause: error });
    }
    signal?.addEventListener('abort', stop);
    await client.query(SETTINGS);
    return await work(client);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    await client.end().catch(() => undefined);
  }
}
