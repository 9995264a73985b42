import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';

const PATIENCE_MS = 60_000;
const PAUSE_MS = 1_000;
const OLDEST_VERSION = 180_000;

// What a database answers that is starting, stopping or not there; a wrong password does not get better by waiting.
const NOT_YET = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
  'ENOENT',
  '57P01',
  '57P02',
  '57P03',
  '53300',
]);

/** Waits up to 60 s for the database, with a log line each try; throws when it stays away or is too old. */
export async function waitForDatabase(url: string, log: Logger, stopping: AbortSignal): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (let attempt = 1; ; attempt++) {
    const error = await tryDatabase(url);
    if (!error) return;
    if (!isNotYet(error) || Date.now() > deadline) throw new Error('the database cannot be used', { cause: error });
    log.warn({ attempt, reason: error.message, code: error.code }, 'console waits for the database');
    await sleep(PAUSE_MS, undefined, { signal: stopping });
  }
}

interface DatabaseError extends Error {
  code?: string;
}

function isNotYet({ code, message }: DatabaseError): boolean {
  return code === undefined ? /timeout|terminated/i.test(message) : NOT_YET.has(code);
}

async function tryDatabase(url: string): Promise<DatabaseError | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query("select current_setting('server_version_num')::int as version");
    const { version } = rows[0] as { version: number };
    if (version < OLDEST_VERSION) {
      return Object.assign(new Error(`PostgreSQL 18 or newer is needed; the server has version ${version}`), {
        code: 'VERSION',
      });
    }
    return null;
  } catch (error) {
    return error as DatabaseError;
  } finally {
    await client.end().catch(() => undefined);
  }
}
