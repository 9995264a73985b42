// The one way to change something: rows, audit entry, published entries or feed numbers, outbox and idempotency record
// commit in one transaction, or nothing does.
import type { Knex } from 'knex';
import { fail } from '../contract/errors.ts';
import type { Call } from './call.ts';
import type { Runtime } from './runtime.ts';

/** Redis channel on which relays are woken after a commit; they poll as well. */
export const WAKE_CHANNEL = 'svc:wake';

/** Waiting for the publications of the same cluster before this one; with a lock's 2 s within a request's time. */
const LONGEST_QUEUE_MS = 5_000;

/** A change under way. */
export interface Tx {
  readonly sql: Knex.Transaction;
  readonly call: Call;
  readonly now: Date;
  /** Set by whoever writes an outbox row. */
  wake: boolean;
}

export interface WriteOptions {
  pool?: 'api' | 'bans';
  /** Cluster whose configuration the change publishes: such changes queue per cluster. */
  clusterId?: string;
  /** Status stored with an idempotency record; the procedure's. */
  status?: number;
}

/**
 * Runs `work` in a transaction; its result must be the procedure's output, because it is stored for replays.
 * A lock that is not had within 2 s, or a turn among the cluster's publications within 5 s, answers SERVICE_UNAVAILABLE
 * with a retry hint.
 */
export async function write<T>(
  runtime: Runtime,
  call: Call,
  options: WriteOptions,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const run = () => transact(runtime, call, options, work);
  if (options.clusterId === undefined) return run();
  const queued = performance.now();
  return runtime.publications.run(options.clusterId, () => {
    // Behind a held lock each of a queue would wait its full time, one after the other.
    if (performance.now() - queued > LONGEST_QUEUE_MS) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    return run();
  });
}

async function transact<T>(
  runtime: Runtime,
  call: Call,
  options: WriteOptions,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const changesBefore = call.changes.length;
  let wake = false;
  try {
    const result = await runtime.pools[options.pool ?? 'api'].transaction(async (sql) => {
      await sql.raw("set local lock_timeout = '2s'; set local transaction_timeout = '5s'");
      const tx: Tx = { sql, call, now: new Date(), wake: false };
      const output = await work(tx);
      if (call.idempotency) await completeIdempotency(tx, output, options.status ?? 200);
      wake = tx.wake;
      return output;
    });
    // A lost wake-up costs the relay's poll interval, nothing else.
    if (wake) runtime.redis.publish(WAKE_CHANNEL, '1').catch(() => undefined);
    return result;
  } catch (error) {
    call.changes.length = changesBefore;
    throw asUnavailable(error);
  }
}

/** Fenced: an attempt that was taken over finds no row and rolls back. */
async function completeIdempotency(tx: Tx, output: unknown, status: number): Promise<void> {
  const { namespace, key, attempt } = tx.call.idempotency!;
  const headers = tx.call.changes.length > 0 ? { 'x-svc-change': tx.call.changes.join(',') } : {};
  const updated = await tx
    .sql('idempotency_record')
    .where({ namespace, key, attempt, state: 'running' })
    .update({
      state: 'done',
      status,
      body: JSON.stringify(output),
      headers: JSON.stringify(headers),
      finished_at: tx.sql.fn.now(),
    });
  if (updated !== 1) fail('IDEMPOTENCY_IN_PROGRESS');
}

// lock_not_available, deadlock_detected, serialization_failure, transaction_timeout, too_many_connections and the
// class of lost connections.
const UNAVAILABLE = new Set([
  '55P03',
  '40P01',
  '40001',
  '25P04',
  '53300',
  '57P01',
  '57P02',
  '57P03',
  '08006',
  '08001',
  '08003',
]);
const UNREACHABLE = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT']);

// Without a code, and behind the statement that met it: `ROLLBACK - Connection terminated unexpectedly`.
const LOST_CONNECTION = /(^| - )(Connection terminated|Client has encountered a connection error)/;

/** The error to answer: SERVICE_UNAVAILABLE for a database that is busy or away, else the error itself. */
export function asUnavailable(error: unknown): unknown {
  // Objection wraps what the driver threw.
  const thrown = (error as { nativeError?: unknown } | null)?.nativeError ?? error ?? {};
  const { code, name, message } = thrown as { code?: unknown; name?: unknown; message?: unknown };
  const away =
    (typeof code === 'string' && (UNAVAILABLE.has(code) || UNREACHABLE.has(code))) ||
    name === 'KnexTimeoutError' ||
    (typeof message === 'string' && LOST_CONNECTION.test(message));
  if (!away) return error;
  try {
    fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 }, error);
  } catch (unavailable) {
    return unavailable;
  }
}
