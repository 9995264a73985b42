// An authority that wants to be left alone, or is not well: who asks nothing of it, and until when.
import type { AcmeOrder } from '../../../models/certificates/acme-order.ts';
import { registeredDomain } from './names.ts';
import type { AcmeProblem } from './protocol/problem.ts';

/** An order waits no longer than this: it ends, and the next one begins when the authority wants to be asked. */
export const LONGEST_WAIT_MS = 60_000;

/** What an order asks, and for whom. */
export interface Asking extends Pick<AcmeOrder, 'state' | 'accountId' | 'names'> {
  /** Null where there is none to ask. */
  directoryUrl: string | null;
}

/** What an order in this state needs to be open. */
export function bucketsOf(asking: Asking): string[] {
  if (asking.directoryUrl === null || asking.state === 'check') return [];
  const keys = [directoryBucket(asking)];
  if (asking.state === 'account' || asking.state === 'order') keys.push(accountBucket(asking));
  if (asking.state === 'order') keys.push(...domainBuckets(asking, asking.names));
  return keys;
}

export interface Rest {
  /** When the order may ask again. */
  until: Date;
  /** Who else waits for how long. */
  blocked: { keys: string[]; until: Date }[];
}

/**
 * What a refusal asks for; null: it says nothing of time. A limit of orders is a domain's, or the account's, which says for
 * less time that it is; one of accounts is the account's. Others are the order's alone, unless nobody at all is answered.
 */
export function restAfter(problem: AcmeProblem, asking: Asking, now: Date): Rest | null {
  const limited = problem.type === 'rateLimited';
  if (!limited && !(problem.passing && problem.retryAt !== null)) return null;
  const longest = new Date(now.getTime() + LONGEST_WAIT_MS);
  const until = problem.retryAt ?? longest;
  if (problem.ofEverybody) return { until, blocked: [{ keys: [directoryBucket(asking)], until }] };
  if (limited && asking.state === 'account') return { until, blocked: [{ keys: [accountBucket(asking)], until }] };
  if (!limited || asking.state !== 'order') return { until, blocked: [] };
  const domains = domainBuckets(asking, problem.names.length > 0 ? problem.names : asking.names);
  const soon = until < longest ? until : longest;
  return {
    until,
    blocked: [
      { keys: domains, until },
      { keys: [accountBucket(asking)], until: soon },
    ],
  };
}

function directoryBucket({ directoryUrl }: Asking): string {
  return `directory ${directoryUrl}`;
}

function accountBucket({ accountId }: Asking): string {
  return `account ${accountId}`;
}

function domainBuckets({ directoryUrl }: Asking, names: readonly string[]): string[] {
  return [...new Set(names.map((name) => `domain ${directoryUrl} ${registeredDomain(name)}`))];
}
