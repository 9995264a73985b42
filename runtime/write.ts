// The one way to change something: rows, audit entry, published entries or feed numbers, outbox and idempotency record
// commit in one transaction, or nothing does.
import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import { ContractError, errorCodeOf, fail } from '../contract/errors.ts';
import type { Call, IdempotencyClaim } from './call.ts';
import { setLimits, within } from './limited-client.ts';
import type { Runtime } from './runtime.ts';
import { wakeChannel } from './stream-names.ts';

/** First of the two numbers of an advisory lock; see models/db/locks.ts for the others. */
const TURN_LOCK = 1_398_162_186;
const LIMITS = { lockMs: 2_000, wholeMs: 5_000 };
/**
 * Waiting for the publications of the same cluster before this one, in this process and in all others; with a lock's 2 s
 * within a request's time.
 */
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
 * A lock that is not had within 2 s, a turn among the cluster's publications (of all processes) that is not had within 5 s, or
 * too many that wait for theirs, answers SERVICE_UNAVAILABLE with a retry hint.
 */
export async function write<T>(
  runtime: Runtime,
  call: Call,
  options: WriteOptions,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { clusterId } = options;
  if (clusterId === undefined) return transact(runtime, call, options, work);
  const queued = performance.now();
  return runtime.publications.run(clusterId, () => {
    // Behind a held lock each of a queue would wait its full time, one after the other.
    const leftMs = Math.floor(LONGEST_QUEUE_MS - (performance.now() - queued));
    if (leftMs <= 0) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    return transact(runtime, call, options, work, { clusterId, leftMs });
  });
}

/** A turn among the publications of a cluster by all processes, and the time left to wait for it. */
interface Turn {
  clusterId: string;
  leftMs: number;
}

/**
 * Statements that take the turn. Advisory locks are had in the order in which they were asked for; of the head's row, a process that
 * publishes without a pause would keep getting it before one that waits. The time limits of the work begin here.
 */
function takeTurn({ clusterId }: Turn): string {
  const key = createHash('sha256').update(clusterId).digest().readInt32BE();
  return `select pg_advisory_xact_lock(${TURN_LOCK}, ${key}); ${setLimits(LIMITS)}`;
}

async function transact<T>(
  runtime: Runtime,
  call: Call,
  options: WriteOptions,
  work: (tx: Tx) => Promise<T>,
  turn?: Turn,
): Promise<T> {
  refuseLate(call);
  const held = async ([tx]: readonly Tx[]) => {
    // Waiting for a connection and a turn took its time.
    refuseLate(call);
    const output = await work(tx!);
    const { idempotency } = call;
    if (idempotency) await completeIdempotency(tx!.sql, [{ call, idempotency, output }], options.status);
    return output;
  };
  return commit(runtime, [call], options.pool, held, turn);
}

/**
 * Throws SERVICE_UNAVAILABLE when the caller of the call may have its answer already: what begins now would surprise him.
 */
export function refuseLate(call: Call): void {
  if (isLate(call)) throw unavailable();
}

function isLate({ beginsBefore = Number.POSITIVE_INFINITY }: Call): boolean {
  return performance.now() > beginsBefore;
}

function unavailable(): ContractError {
  return new ContractError('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
}

/** What became of one of several calls. */
export type Outcome<T> = { output: T } | { error: unknown };

/**
 * As {@link write} for several calls in one transaction. `work` answers an outcome for each: an error is that call's
 * alone, and what it has changed until then must be nothing. What is thrown ends all of them.
 */
export async function writeTogether<T>(
  runtime: Runtime,
  calls: readonly Call[],
  options: Pick<WriteOptions, 'pool' | 'status'>,
  work: (txs: readonly Tx[]) => Promise<Outcome<T>[]>,
): Promise<Outcome<T>[]> {
  return commit(runtime, calls, options.pool, async (txs) => {
    const going = await holdingClaims(txs.filter(({ call }) => !isLate(call)));
    const worked = going.length > 0 ? await work(going) : [];
    const outcomes = new Map(going.map((tx, index) => [tx, worked[index]!]));
    const completed = [...outcomes].flatMap(([{ call }, outcome]) =>
      call.idempotency && 'output' in outcome ? [{ call, idempotency: call.idempotency, output: outcome.output }] : [],
    );
    if (completed.length > 0) await completeIdempotency(txs[0]!.sql, completed, options.status);
    return txs.map((tx) => outcomes.get(tx) ?? { error: isLate(tx.call) ? unavailable() : inProgress() });
  });
}

/** Those whose claims nobody has taken over, which nobody can until the end of the transaction. */
async function holdingClaims(txs: readonly Tx[]): Promise<readonly Tx[]> {
  const claims = txs.flatMap(({ call }) => call.idempotency ?? []);
  if (claims.length === 0) return txs;
  const { rows } = await txs[0]!.sql.raw<{ rows: { namespace: string; key: string }[] }>(
    `select r.namespace, r.key from idempotency_record r
       join unnest(?::text[], ?::text[], ?::int[]) as c(namespace, key, attempt) using (namespace, key, attempt)
      where r.state = 'running' order by r.namespace, r.key for update of r`,
    claimArrays(claims) as never,
  );
  const held = new Set(rows.map(({ namespace, key }) => `${namespace} ${key}`));
  return txs.filter(
    ({ call: { idempotency } }) => !idempotency || held.has(`${idempotency.namespace} ${idempotency.key}`),
  );
}

async function commit<R>(
  runtime: Runtime,
  calls: readonly Call[],
  pool: WriteOptions['pool'],
  work: (txs: readonly Tx[]) => Promise<R>,
  turn?: Turn,
): Promise<R> {
  const before = calls.map(({ changes }) => changes.length);
  let wake = false;
  let worked = false;
  try {
    const begun = turn ? within({ lockMs: turn.leftMs, wholeMs: 0 }, takeTurn(turn)) : within(LIMITS);
    const result = await runtime.pools[pool ?? 'api'].transaction(async (sql) => {
      const now = new Date();
      const txs = calls.map((call): Tx => ({ sql, call, now, wake: false }));
      const answer = await work(txs);
      wake = txs.some((tx) => tx.wake);
      worked = true;
      return answer;
    }, begun);
    // A lost wake-up costs the relay's poll interval, nothing else.
    if (wake) runtime.redis.publish(wakeChannel(runtime.env.redisPrefix), '1').catch(() => undefined);
    return result;
  } catch (error) {
    for (const [index, call] of calls.entries()) call.changes.length = before[index]!;
    throw worked ? asUnknown(error) : asUnavailable(error);
  }
}

/** A commit that got no answer may have happened: `outcome` tells so. */
function asUnknown(error: unknown): unknown {
  const known = asUnavailable(error);
  return errorCodeOf(known) === 'SERVICE_UNAVAILABLE' ? outcomeUnknown(error) : known;
}

/** SERVICE_UNAVAILABLE for what had begun and may have been done; a repetition with its Idempotency-Key finds out. */
export function outcomeUnknown(cause: unknown): ContractError {
  return new ContractError('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1, outcome: 'unknown' }, cause);
}

interface Completed {
  call: Call;
  idempotency: IdempotencyClaim;
  output: unknown;
}

/**
 * Runs `work` in a transaction of a program that is no console, and so cannot wake relays: they find its outbox rows when
 * they look by themselves.
 */
export async function writeAlone<T>(sql: Knex, call: Call, work: (tx: Tx) => Promise<T>): Promise<T> {
  return sql.transaction(async (trx) => {
    await trx.raw("set local lock_timeout = '10s'");
    return work({ sql: trx, call, now: new Date(), wake: false });
  });
}

/** Fenced: an attempt that was taken over finds no row and rolls back. */
async function completeIdempotency(
  sql: Knex.Transaction,
  completed: readonly Completed[],
  status: number = 200,
): Promise<void> {
  const headers = completed.map(({ call: { changes } }) =>
    changes.length > 0 ? { 'x-svc-change': changes.join(',') } : {},
  );
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `update idempotency_record r
        set state = 'done', status = ?, body = c.body, headers = c.headers, finished_at = now()
       from unnest(?::text[], ?::text[], ?::int[], ?::text[], ?::jsonb[]) as c(namespace, key, attempt, body, headers)
      where r.namespace = c.namespace and r.key = c.key and r.attempt = c.attempt and r.state = 'running'`,
    [
      status,
      ...claimArrays(completed.map(({ idempotency }) => idempotency)),
      completed.map(({ output }) => JSON.stringify(output)),
      headers.map((each) => JSON.stringify(each)),
    ] as never,
  );
  if (rowCount !== completed.length) throw inProgress();
}

function claimArrays(claims: readonly IdempotencyClaim[]): unknown[] {
  return [claims.map(({ namespace }) => namespace), claims.map(({ key }) => key), claims.map(({ attempt }) => attempt)];
}

function inProgress(): ContractError {
  return new ContractError('IDEMPOTENCY_IN_PROGRESS');
}

// lock_not_available, deadlock_detected, serialization_failure, transaction_timeout, query_canceled (statement_timeout),
// too_many_connections and the
// class of lost connections.
const UNAVAILABLE = new Set([
  '55P03',
  '40P01',
  '40001',
  '25P04',
  '57014',
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
const LOST_CONNECTION =
  /(^| - )(Connection terminated|Client has encountered a connection error|Query read timeout|timeout exceeded when trying to connect)/;

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
