// Walks orders step by step. What each step found is written before the next begins, so that a process may end anywhere;
// a few orders at a time, those that somebody waits for first.
import { setTimeout as sleep } from 'node:timers/promises';
import { setAccountUrl } from '../../../models/certificates/acme-account.ts';
import { lockOrdered, orderedCertificate, setFailed } from '../../../models/certificates/acme-certificate.ts';
import {
  type AcmeOrder,
  beginDueOrders,
  blockedUntil,
  blockUntil,
  holdLease,
  LeaseLost,
  type OrderStep,
  saveOrder,
  takeDueOrder,
} from '../../../models/certificates/acme-order.ts';
import { systemCall } from '../../../runtime/call.ts';
import { OutboundFailed } from '../../../runtime/outbound.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { write } from '../../../runtime/write.ts';
import { endAnswers } from './answers.ts';
import { directoryAt, openAccount } from './authority.ts';
import { DnsFailed } from './dns/provider.ts';
import { nextTry, OrderFailed } from './failure.ts';
import { DirectoryInvalid } from './protocol/client.ts';
import { AcmeProblem } from './protocol/problem.ts';
import { type Asking, bucketsOf, LONGEST_WAIT_MS, restAfter } from './rest.ts';
import type { Next, Opened, Step, StepContext } from './step.ts';
import { check } from './steps/check.ts';
import { download } from './steps/download.ts';
import { account, challenges, order as placeOrder } from './steps/order.ts';
import { finalize, validate } from './steps/prove.ts';
import { presentHttp, propagateHttp } from './steps/show.ts';
import { presentDns, propagateDns } from './steps/show-dns.ts';
import { TOOLS, type Tools } from './tools.ts';

/** Orders that begin, and that are worked on, at a time. */
const BEGUN = 10;
const AT_A_TIME = 3;
/** A run takes up no more then: a process that nobody lets do this any more comes to know it. */
const RUN_MS = 5 * 60_000;
const LOOK_MS = 250;
/** A step that meets faults on the way is tried so often, each time after twice the pause. */
const TRIES = 8;
const SHORTEST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/** A step that cannot be written is tried again after so long at most, however often. */
const LONGEST_POSTPONED_MS = 10 * 60_000;
const MOST_TRIES = 100;
/** Whatever an order waits for, it ends after this time. */
const ORDER_MS = 24 * 3_600_000;

/** The step of the challenge that the certificate is asked for with. */
const byChallenge =
  (http01: Step, dns01: Step): Step =>
  (context) =>
    context.certificate.request.challenge === 'dns01' ? dns01(context) : http01(context);

const STEPS: Readonly<Record<OrderStep, Step>> = {
  check,
  account,
  order: placeOrder,
  challenges,
  present: byChallenge(presentHttp, presentDns),
  propagate: byChallenge(propagateHttp, propagateDns),
  validate,
  finalize,
  download,
};

/** Begins what is due and walks orders until none is; one that takes its time keeps no other from going on. */
export async function workOrders(runtime: Runtime, signal: AbortSignal, tools: Tools = TOOLS): Promise<void> {
  const sql = runtime.pools.api;
  const deadline = Date.now() + RUN_MS;
  const walks = new Map<string, Promise<void>>();
  while (!signal.aborted && Date.now() < deadline) {
    if (walks.size < AT_A_TIME) {
      await beginDueOrders(sql, BEGUN);
      const order = await takeDueOrder(sql, [...walks.keys()]);
      if (order) {
        const walk = walkOrder(runtime, order, signal, tools).finally(() => walks.delete(order.certificateId));
        walks.set(order.certificateId, walk);
        continue;
      }
      if (walks.size === 0) break;
    }
    await Promise.race([...walks.values(), sleep(LOOK_MS)]);
  }
  await Promise.all(walks.values());
}

/** Steps until one has to wait, or the order is over. */
async function walkOrder(runtime: Runtime, order: AcmeOrder, signal: AbortSignal, tools: Tools): Promise<void> {
  try {
    while (order.nextAt !== null && order.nextAt.getTime() <= Date.now() && !signal.aborted) {
      await stepOf(runtime, order, signal, tools);
    }
  } catch (err) {
    if (err instanceof LeaseLost || signal.aborted) return;
    runtime.log.error({ err, certificate: order.certificateId }, 'certificate order step not stored');
    await postpone(runtime, order, signal);
  }
}

/** The order stays as it is and is taken up again, later each time. */
async function postpone(runtime: Runtime, order: AcmeOrder, signal: AbortSignal): Promise<void> {
  const pause = Math.min(SHORTEST_PAUSE_MS * 2 ** order.tries, LONGEST_POSTPONED_MS);
  const change = { tries: Math.min(order.tries + 1, MOST_TRIES), nextAt: new Date(Date.now() + pause) };
  try {
    await saveOrder(runtime.pools.api, order, change);
  } catch (error) {
    // Not even that: while it is waited here, nobody takes it.
    if (!(error instanceof LeaseLost)) await sleep(LONGEST_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function stepOf(runtime: Runtime, order: AcmeOrder, signal: AbortSignal, tools: Tools): Promise<void> {
  const state = order.state as OrderStep;
  const certificate = await orderedCertificate(runtime.pools.api, order.certificateId);
  // Deleted meanwhile, and the order with it.
  if (!certificate) throw new LeaseLost();
  let opened: Promise<Opened> | null = null;
  const context: StepContext = {
    runtime,
    tools,
    order,
    certificate,
    now: new Date(),
    signal,
    open() {
      opened ??= openAccount(runtime, certificate.request.ca, order.accountId, signal);
      return opened;
    },
  };
  try {
    if (context.now.getTime() - order.startedAt.getTime() > ORDER_MS) throw new OrderFailed('acme_order_timeout');
    await assertAllowed(context);
    const next = await STEPS[state](context);
    await goOn(context, next);
  } catch (error) {
    if (error instanceof LeaseLost || signal.aborted) throw error;
    await afterFailure(context, error);
  }
}

async function goOn({ runtime, order }: StepContext, { to, patch = {}, waitMs = 0, saved }: Next): Promise<void> {
  const now = new Date();
  const moved = to === order.state ? {} : { stepAt: now };
  const change = {
    state: to,
    nextAt: to === 'done' ? null : new Date(now.getTime() + waitMs),
    tries: 0,
    error: null,
    errorParams: {},
    ...moved,
    ...patch,
  };
  if (!saved) await saveOrder(runtime.pools.api, order, change);
  Object.assign(order, change);
}

/** A bucket is empty until then. */
class Held extends Error {
  readonly until: Date;

  constructor(until: Date) {
    super('held back');
    this.until = until;
  }
}

/** Steps that ask the authority wait while it wants to be left alone. */
async function assertAllowed(context: StepContext): Promise<void> {
  const until = await blockedUntil(context.runtime.pools.api, bucketsOf(await askingOf(context)));
  if (until) throw new Held(until);
}

async function askingOf({ runtime, order, certificate }: StepContext): Promise<Asking> {
  const { state, accountId, names } = order;
  const at = await directoryAt(runtime, certificate.request.ca);
  return { state, accountId, names, directoryUrl: at?.url ?? null };
}

async function afterFailure(context: StepContext, error: unknown): Promise<void> {
  const { runtime, order, now } = context;
  if (error instanceof OrderFailed) return fail(context, error);
  if (error instanceof Held) return waitUntil(context, error.until);
  if (error instanceof AcmeProblem && error.type === 'accountDoesNotExist' && !order.reopened) return openAnew(context);
  const rest = error instanceof AcmeProblem ? restAfter(error, await askingOf(context), now) : null;
  for (const { keys, until } of rest?.blocked ?? []) await blockUntil(runtime.pools.api, keys, until);
  const code = codeOf(error);
  if (rest && isLong(rest.until, now)) {
    return fail(context, new OrderFailed(code, { ...namesIn(error), ...paramsOf(rest) }, rest.until));
  }
  if (!rest && !isPassing(error)) return fail(context, new OrderFailed(code, namesIn(error)));
  if (code === 'certificate_operation_failed') {
    runtime.log.error(
      { err: error, certificate: order.certificateId, step: order.state },
      'certificate order step failed',
    );
  }
  if (order.tries + 1 >= TRIES) return fail(context, new OrderFailed(code));
  const pause = Math.min(SHORTEST_PAUSE_MS * 2 ** order.tries, LONGEST_PAUSE_MS);
  const nextAt = new Date(Math.max(Date.now() + pause, rest?.until.getTime() ?? 0));
  const change = { tries: order.tries + 1, nextAt, error: code, errorParams: rest ? paramsOf(rest) : {} };
  await saveOrder(runtime.pools.api, order, change);
  Object.assign(order, change);
}

/** Whether asking again may help. */
function isPassing(error: unknown): boolean {
  if (error instanceof AcmeProblem || error instanceof DnsFailed) return error.passing;
  return !(error instanceof OutboundFailed && error.reason === 'refused');
}

function isLong(until: Date, now: Date): boolean {
  return until.getTime() - now.getTime() > LONGEST_WAIT_MS;
}

function paramsOf({ until }: { until: Date }) {
  return { until: until.toISOString() };
}

function namesIn(error: unknown): Record<string, string[]> {
  const names = error instanceof AcmeProblem ? error.names.slice(0, 20) : [];
  return names.length > 0 ? { names } : {};
}

const UNREACHED: Partial<Record<OutboundFailed['reason'], string>> = {
  tls: 'acme_tls',
  refused: 'acme_address_refused',
};

function codeOf(error: unknown): string {
  if (error instanceof OutboundFailed) return UNREACHED[error.reason] ?? 'acme_unreachable';
  if (error instanceof DirectoryInvalid) return 'acme_directory_invalid';
  if (error instanceof AcmeProblem || error instanceof DnsFailed) return error.code;
  return 'certificate_operation_failed';
}

/** An order that would have to wait for long ends; the next one begins then. */
async function waitUntil(context: StepContext, until: Date): Promise<void> {
  const code = 'acme_rate_limited';
  if (isLong(until, context.now)) return fail(context, new OrderFailed(code, paramsOf({ until }), until));
  const change = { nextAt: until, error: code, errorParams: paramsOf({ until }) };
  await saveOrder(context.runtime.pools.api, context.order, change);
  Object.assign(context.order, change);
}

/** The authority has forgotten the account, with all that was ordered. */
async function openAnew({ runtime, order }: StepContext): Promise<void> {
  await setAccountUrl(runtime.pools.api, order.accountId!, null);
  const now = new Date();
  const begun = { state: 'account' as const, reopened: true, nextAt: now, stepAt: now, tries: 0 };
  const change = { ...begun, authorizations: [], places: {} };
  await write(runtime, systemCall('acme'), {}, async (tx) => {
    await saveOrder(tx.sql, order, change);
    await endAnswers(tx, order);
  });
  Object.assign(order, change);
}

async function fail({ runtime, order }: StepContext, failed: OrderFailed): Promise<void> {
  await write(runtime, systemCall('acme'), {}, async (tx) => {
    await holdLease(tx.sql, order);
    const certificate = await lockOrdered(tx.sql, order.certificateId);
    if (!certificate) throw new LeaseLost();
    const again = !certificate.rehearsal && (certificate.autoRenew || certificate.leaf === null);
    const renewAt = again ? (failed.retryAt ?? nextTry(tx.now, certificate.notAfter)) : null;
    await setFailed(tx.sql, order.certificateId, { lastError: failed.code, renewAt });
    await saveOrder(tx.sql, order, {
      state: 'failed',
      failedStep: order.state as OrderStep,
      nextAt: null,
      finishedAt: tx.now,
      privateKey: null,
      error: failed.code,
      errorParams: failed.params,
    });
    await endAnswers(tx, order);
  });
  Object.assign(order, { nextAt: null, state: 'failed' });
}
