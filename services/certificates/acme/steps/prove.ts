// The authority looks, signs, and hands the certificate over.
import { type Authorization, saveOrder } from '../../../../models/certificates/acme-order.ts';
import { areAnswered } from '../../../../models/certificates/acme-token.ts';
import { OrderFailed } from '../failure.ts';
import { parallel } from '../parallel.ts';
import { type AcmeClient, DirectoryInvalid } from '../protocol/client.ts';
import { AcmeProblem, problemOf } from '../protocol/problem.ts';
import { type Next, pause, type StepContext } from '../step.ts';

/** Names that the authority looks at in a moment. */
const ASKED = 4;
const LOOK_MS = 1_000;
const VALIDATION_MS = 3 * 60_000;
/** Answers that end sooner are shown anew before the authority is asked for more. */
const LAST_MS = 3 * 60_000;
const ORDER_MS = 10 * 60_000;

/** What came of each name is kept, also where another one brings the step to its end. */
export async function validate(context: StepContext): Promise<Next> {
  const { runtime, order } = context;
  const authorizations = order.authorizations.map((one) => ({ ...one }));
  try {
    return await look(context, authorizations);
  } catch (error) {
    await saveOrder(runtime.pools.api, order, { authorizations });
    Object.assign(order, { authorizations });
    throw error;
  }
}

/** Asks how far the authority is, and for more. Changes the authorizations. */
async function look(context: StepContext, authorizations: Authorization[]): Promise<Next> {
  const { order, now, open } = context;
  const { client } = await open();
  let waitMs = LOOK_MS;
  const asked = authorizations.filter(({ state }) => state === 'asked');
  await parallel(asked, ASKED, async (one) => {
    const answer = await client.post(one.url, null);
    settle(one, answer.body);
    if (one.state === 'asked') waitMs = Math.max(waitMs, pause(answer.retryAt, now, LOOK_MS));
  });
  assertNoneRefused(authorizations);
  if (!(await stillShown(context, authorizations))) return { to: 'present', patch: { authorizations } };
  const under = authorizations.filter(({ state }) => state === 'asked').length;
  const waiting = authorizations.filter(({ state }) => state === 'waiting').slice(0, ASKED - under);
  await parallel(waiting, ASKED, (one) => ask(client, one));
  assertNoneRefused(authorizations);
  if (authorizations.every(({ state }) => state === 'valid')) return { to: 'finalize', patch: { authorizations } };
  // Each group of names has its time.
  const stepAt = waiting.length > 0 ? now : order.stepAt;
  if (now.getTime() - stepAt.getTime() > VALIDATION_MS) {
    const names = authorizations.filter(({ state }) => state === 'asked').map(({ name }) => name);
    throw new OrderFailed('acme_validation_timeout', { names });
  }
  return { to: 'validate', patch: { authorizations, stepAt }, waitMs };
}

/** Records stay until the order is over, answers of nodes end by themselves. */
async function stillShown(
  { runtime, order, certificate, now }: StepContext,
  authorizations: readonly Authorization[],
): Promise<boolean> {
  if (certificate.request.challenge !== 'http01') return true;
  const unproven = authorizations.filter(({ state }) => state !== 'valid');
  const questions = unproven.map(({ name, token }) => ({ host: name, token }));
  const until = new Date(now.getTime() + LAST_MS);
  return areAnswered(runtime.pools.api, Object.keys(order.places), questions, until);
}

/** Authorities refuse to be asked twice: then it was asked by somebody who could not write it down. */
async function ask(client: AcmeClient, one: Authorization): Promise<void> {
  try {
    await client.post(one.challengeUrl, {});
  } catch (error) {
    if (!(error instanceof AcmeProblem) || error.type !== 'malformed') throw error;
    const { body } = await client.post(one.url, null);
    if (body.status === 'pending' && challengeOf(one, body)?.status === 'pending') throw error;
    settle(one, body);
  }
  if (one.state === 'waiting') one.state = 'asked';
}

interface Looked {
  status?: unknown;
  challenges?: { url?: unknown; status?: unknown; error?: unknown }[];
}

function challengeOf({ challengeUrl }: Authorization, { challenges }: Looked) {
  return Array.isArray(challenges) ? challenges.find((one) => one?.url === challengeUrl) : undefined;
}

function settle(one: Authorization, looked: Looked): void {
  const { status } = looked;
  if (status === 'valid') one.state = 'valid';
  if (status !== 'invalid' && status !== 'deactivated' && status !== 'expired' && status !== 'revoked') return;
  one.state = 'invalid';
  one.error = problemOf(challengeOf(one, looked)?.error, 403, null).code;
}

function assertNoneRefused(authorizations: readonly Authorization[]): void {
  const refused = authorizations.find(({ state }) => state === 'invalid');
  if (refused) throw new OrderFailed(refused.error ?? 'acme_error', { names: [refused.name] });
}

/** The order says what is left to do: an answer that was lost before is found here. */
export async function finalize({ order, now, open }: StepContext): Promise<Next> {
  const { client } = await open();
  let answer = await client.post(order.orderUrl!, null);
  if (answer.body.status === 'ready') {
    answer = await client.post(order.finalizeUrl!, { csr: order.csr!.toString('base64url') });
  }
  const { status, certificate } = answer.body;
  if (status === 'valid') {
    if (typeof certificate !== 'string') throw new DirectoryInvalid();
    return { to: 'download', patch: { certificateUrl: certificate } };
  }
  if (status === 'invalid') throw new OrderFailed(problemOf(answer.body.error, 403, null).code);
  if (now.getTime() - order.stepAt.getTime() > ORDER_MS) throw new OrderFailed('acme_order_timeout');
  return { to: 'finalize', waitMs: pause(answer.retryAt, now, LOOK_MS) };
}
