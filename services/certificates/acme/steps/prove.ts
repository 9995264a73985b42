// The authority looks, signs, and hands the certificate over.
import type { Authorization } from '../../../../models/acme-order.ts';
import { OrderFailed } from '../failure.ts';
import { parallel } from '../parallel.ts';
import { DirectoryInvalid } from '../protocol/client.ts';
import { problemOf } from '../protocol/problem.ts';
import { type Next, pause, type StepContext } from '../step.ts';

/** Names that the authority looks at in a moment. */
const ASKED = 4;
const LOOK_MS = 1_000;
const VALIDATION_MS = 3 * 60_000;
const ORDER_MS = 10 * 60_000;

export async function validate({ order, now, open }: StepContext): Promise<Next> {
  const { client } = await open();
  const authorizations = order.authorizations.map((one) => ({ ...one }));
  let waitMs = LOOK_MS;
  const asked = authorizations.filter(({ state }) => state === 'asked');
  await parallel(asked, ASKED, async (one) => {
    const answer = await client.post(one.url, null);
    settle(one, answer.body);
    if (one.state === 'asked') waitMs = Math.max(waitMs, pause(answer.retryAt, now, LOOK_MS));
  });
  const refused = authorizations.find(({ state }) => state === 'invalid');
  if (refused) throw new OrderFailed(refused.error ?? 'acme_error', { names: [refused.name] });
  const under = authorizations.filter(({ state }) => state === 'asked').length;
  const waiting = authorizations.filter(({ state }) => state === 'waiting').slice(0, ASKED - under);
  await parallel(waiting, ASKED, async (one) => {
    // Answered by the challenge as it is then: one that is valid, or being looked at, stays so.
    await client.post(one.challengeUrl, {});
    one.state = 'asked';
  });
  if (authorizations.every(({ state }) => state === 'valid')) return { to: 'finalize', patch: { authorizations } };
  // Each group of names has its time.
  const stepAt = waiting.length > 0 ? now : order.stepAt;
  if (now.getTime() - stepAt.getTime() > VALIDATION_MS) {
    const names = authorizations.filter(({ state }) => state === 'asked').map(({ name }) => name);
    throw new OrderFailed('acme_validation_timeout', { names });
  }
  return { to: 'validate', patch: { authorizations, stepAt }, waitMs };
}

interface Looked {
  status?: unknown;
  challenges?: { url?: unknown; error?: unknown }[];
}

function settle(one: Authorization, { status, challenges }: Looked): void {
  if (status === 'valid') one.state = 'valid';
  if (status !== 'invalid' && status !== 'deactivated' && status !== 'expired' && status !== 'revoked') return;
  const challenge = Array.isArray(challenges) ? challenges.find(({ url }) => url === one.challengeUrl) : undefined;
  one.state = 'invalid';
  one.error = problemOf(challenge?.error, 403, null).code;
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
