// Servers that take TXT records of a zone. Writing one that is there, or removing one that is not, is no failure: both are
// repeated after whatever ended them.

import type { TxtRecord } from '../../../dns/adapters/adapter.ts';

export interface DnsProvider {
  /** Throws {@link DnsFailed}. */
  add(record: TxtRecord, signal: AbortSignal): Promise<void>;
  /** Throws {@link DnsFailed}. */
  remove(record: TxtRecord, signal: AbortSignal): Promise<void>;
}

export const DNS_FAILURES = [
  'dns_unauthorized',
  'dns_refused',
  'dns_zone_not_found',
  'dns_address_refused',
  'dns_unreachable',
  'dns_failed',
  'dns_unresolved',
] as const;
export type DnsFailure = (typeof DNS_FAILURES)[number];

/** Those after which asking again may help. */
const PASSING: ReadonlySet<DnsFailure> = new Set(['dns_unreachable', 'dns_failed', 'dns_unresolved']);

/** A server did not do what it was asked to; `code` becomes the certificate's lastError. */
export class DnsFailed extends Error {
  readonly code: DnsFailure;

  constructor(code: DnsFailure, cause?: unknown) {
    super(code, { cause });
    this.name = 'DnsFailed';
    this.code = code;
  }

  get passing(): boolean {
    return PASSING.has(this.code);
  }
}
