// Asks authorities when certificates are to be renewed (RFC 9773): earlier than by rule when they want to revoke one.
import { setRenewal } from '../../../models/certificates/acme-certificate.ts';
import { type RenewalCheck, saveRenewalCheck, takeRenewalChecks } from '../../../models/certificates/acme-order.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { directoryAt, recentDirectory } from './authority.ts';
import { moment } from './failure.ts';
import { parallel } from './parallel.ts';
import { getUnsigned } from './protocol/client.ts';
import { renewalId } from './renewal-id.ts';

/** Each 5 s: 100,000 certificates are asked for in 6 h at a quarter of it. */
const CHECKS = 100;
const AT_A_TIME = 8;
const HOUR_MS = 3_600_000;
/** Asked again after this time, and within these bounds when the authority says when. */
const USUAL_MS = 6 * HOUR_MS;
const LEAST_MS = HOUR_MS;
const MOST_MS = 24 * HOUR_MS;

export interface RenewalWindow {
  start: Date;
  end: Date;
}

/** Asks for those that are due, at most {@link CHECKS}; `chance` answers a number of [0, 1). */
export async function checkRenewals(
  runtime: Runtime,
  signal: AbortSignal,
  chance: () => number = Math.random,
): Promise<void> {
  const due = await takeRenewalChecks(runtime.pools.api, CHECKS, USUAL_MS);
  await parallel(due, AT_A_TIME, async (one) => {
    if (signal.aborted) return;
    try {
      await checkOne(runtime, one, signal, chance);
    } catch (err) {
      // An authority that does not say leaves the rule as it is, and is asked again.
      runtime.log.debug({ err, certificate: one.certificateId }, 'certificate authority returned no renewal time');
    }
  });
}

async function checkOne(runtime: Runtime, one: RenewalCheck, signal: AbortSignal, chance: () => number): Promise<void> {
  const { certificateId } = one;
  const at = await directoryAt(runtime, one.ca);
  const id = renewalId(one.leaf);
  const { renewalInfo } = at ? await recentDirectory(at) : { renewalInfo: null };
  if (at === null || id === null || renewalInfo === null) return;
  const { body, retryAt } = await getUnsigned(at, `${renewalInfo.replace(/\/$/, '')}/${id}`, signal);
  const now = new Date();
  const checkAt = nextCheck(retryAt, now);
  const window = windowOf(body.suggestedWindow);
  const sql = runtime.pools.api;
  if (window === null) return saveRenewalCheck(sql, certificateId, { checkAt, start: null, end: null });
  // A moment that was drawn stays while the window does: drawing each time would make all of them early.
  const same = one.start?.getTime() === window.start.getTime() && one.end?.getTime() === window.end.getTime();
  if (!same) await setRenewal(sql, certificateId, one.fingerprint, moment(window, one.notAfter, chance()));
  await saveRenewalCheck(sql, certificateId, { checkAt, ...window });
}

/**
 * Within bounds whatever the authority says: one that wants every certificate renewed at once gets one an hour, and not
 * one after the other.
 */
export function nextCheck(retryAt: Date | null, now: Date): Date {
  const asked = retryAt === null ? USUAL_MS : retryAt.getTime() - now.getTime();
  return new Date(now.getTime() + Math.min(Math.max(asked, LEAST_MS), MOST_MS));
}

/** Null for what is no window. */
export function windowOf(given: unknown): RenewalWindow | null {
  const { start, end } = (given ?? {}) as { start?: unknown; end?: unknown };
  const [from, to] = [start, end].map((text) => (typeof text === 'string' ? Date.parse(text) : Number.NaN));
  if (!(to! > from!)) return null;
  return { start: new Date(from!), end: new Date(to!) };
}
