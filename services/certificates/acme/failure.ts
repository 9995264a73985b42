// Why an order ends without a certificate, and when another one begins.
import type { OrderErrorParams } from '../../../models/certificates/acme-order.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A first certificate is asked for again after this time. */
const FIRST_MS = HOUR_MS;
const LEAST_MS = 10 * MINUTE_MS;
const MOST_MS = 12 * HOUR_MS;

/** The order ends here; `code` becomes the certificate's lastError. */
export class OrderFailed extends Error {
  readonly code: string;
  readonly params: OrderErrorParams;
  /** The next try, where this is known better than by the rule. */
  readonly retryAt: Date | null;

  constructor(code: string, params: OrderErrorParams = {}, retryAt: Date | null = null) {
    super(code);
    this.name = 'OrderFailed';
    this.code = code;
    this.params = params;
    this.retryAt = retryAt;
  }
}

/** When the next order begins: a tenth of what is left of the certificate, within bounds; after an hour without one. */
export function nextTry(now: Date, notAfter: Date | null): Date {
  if (notAfter === null) return new Date(now.getTime() + FIRST_MS);
  const tenth = (notAfter.getTime() - now.getTime()) / 10;
  return new Date(now.getTime() + Math.min(Math.max(tenth, LEAST_MS), MOST_MS));
}

const LAST_MS = MINUTE_MS;

/** When a certificate is renewed of which its authority says nothing: after two thirds of its life. */
export function renewalTime(notBefore: Date, notAfter: Date): Date {
  const life = notAfter.getTime() - notBefore.getTime();
  return latest(new Date(notBefore.getTime() + (life * 2) / 3), notAfter);
}

/** A moment of the window that the authority suggests, by chance so that not all come at once. */
export function moment(window: { start: Date; end: Date }, notAfter: Date, chance: number): Date {
  const length = window.end.getTime() - window.start.getTime();
  return latest(new Date(window.start.getTime() + length * chance), notAfter);
}

/** At the latest a minute before the end. */
function latest(at: Date, notAfter: Date): Date {
  return new Date(Math.min(at.getTime(), notAfter.getTime() - LAST_MS));
}
