// The interface between the DNS engine and the servers of a zone. One adapter is one zone at one provider with one access.
//
// - Names are absolute, in lower case, as punycode, without a dot at the end: `www.example.com`.
// - Values: A and AAAA as canonical addresses, CNAME as names are, TXT as text (character strings joined). All other types
//   are listed as the provider writes them; they are never written.
// - Every change is idempotent: repeating it after any failure leads to the same records.
import type { ResolutionLine } from '../../../contract/scalars/resolution-line.ts';

/** Types that adapters write. */
export const RECORD_TYPES = ['A', 'AAAA', 'CNAME', 'TXT'] as const;
export type RecordType = (typeof RECORD_TYPES)[number];

/** `other:<code>` is a line of the provider outside of {@link ResolutionLine}: its records may only be deleted. */
export type Line = ResolutionLine | `other:${string}`;

/** All records of a name, type and line. */
export interface RRset {
  name: string;
  type: string;
  /** Default `default`. */
  line?: Line;
  /** Seconds. */
  ttl: number;
  /** Sorted, without duplicates. */
  values: string[];
}

export type Change =
  /** The set has exactly these values afterwards. The name never empties on the way. */
  | { action: 'set'; name: string; type: RecordType; line?: ResolutionLine; ttl: number; values: string[] }
  /** The set has these values, too. Other values stay, and stay even if another client adds them meanwhile. */
  | { action: 'append'; name: string; type: RecordType; line?: ResolutionLine; ttl: number; values: string[] }
  /** The set has none of these values afterwards; without `values` the set is gone. */
  | { action: 'delete'; name: string; type: string; line?: Line; values?: string[] };

/** What became of a change; results are in the order of the changes. */
export type ChangeResult =
  | { state: 'done' }
  /** It did not take effect, not even in part, or was not attempted. */
  | { state: 'failed'; error: AdapterError }
  /** The provider was asked and nobody knows whether it took effect: read back, or repeat it. */
  | { state: 'unknown'; error: AdapterError };

export const ADAPTER_ERRORS = [
  /** The provider does not accept the credentials, or they lack a permission. */
  'denied',
  /** The zone does not exist there, or the credentials do not see it. */
  'not_found',
  /** `retryAfter` says when to ask again. */
  'rate_limited',
  /** The provider does not take the change: a wrong value, a full zone. Repeating it does not help. */
  'invalid',
  /** Other records forbid the change, such as a CNAME beside an A record. */
  'conflict',
  /** Not reachable, a 5xx, or a response that is none. Nothing took effect. */
  'unavailable',
  /** No response in time. Whether the change took effect is unknown. */
  'timeout',
  /** The address policy forbids the server's address. */
  'address_refused',
  /** The adapter cannot do this, such as listing zones. */
  'unsupported',
] as const;
export type AdapterErrorKind = (typeof ADAPTER_ERRORS)[number];

export class AdapterError extends Error {
  readonly kind: AdapterErrorKind;
  /** What the provider said, without secrets, at most 300 characters; empty if it said nothing. */
  readonly detail: string;
  /** Seconds until asking again may help; null: unknown. */
  readonly retryAfter: number | null;
  /** A part of what was asked for took effect before. */
  readonly partial: boolean;
  /** There was no answer at all. */
  readonly unreachable: boolean;
  /** A record has come or gone since it was read: reading it again and repeating the change may help. */
  readonly changed: boolean;

  constructor(
    kind: AdapterErrorKind,
    detail = '',
    more: {
      retryAfter?: number | null;
      partial?: boolean;
      unreachable?: boolean;
      changed?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(detail === '' ? kind : `${kind}: ${detail}`, { cause: more.cause });
    this.name = 'AdapterError';
    this.kind = kind;
    this.detail = detail.slice(0, 300);
    this.retryAfter = more.retryAfter ?? null;
    this.partial = more.partial ?? false;
    this.unreachable = more.unreachable ?? false;
    this.changed = more.changed ?? false;
  }
}

export interface ListOptions {
  /** Only records of these names; an adapter may return others, too. */
  names?: readonly string[];
  signal?: AbortSignal;
}

export interface DnsAdapter {
  /** All records of the zone (pages are read inside). Throws {@link AdapterError}; never returns a part. */
  list(options?: ListOptions): Promise<RRset[]>;
  /**
   * Makes the changes and returns one result for each. Changes of one name are made in their order, others in any order:
   * put what must come later into a later call. Batches, rate limits and retries are inside. Throws nothing but bugs.
   */
  apply(changes: readonly Change[], options?: { signal?: AbortSignal }): Promise<ChangeResult[]>;
  /** Changes whenever a record of the zone does; null where `capabilities.drift` is no `serial`. Throws {@link AdapterError}. */
  serial(options?: { signal?: AbortSignal }): Promise<string | null>;
  /** Zones that the credentials see. Throws {@link AdapterError}, `unsupported` without `capabilities.listZones`. */
  zones(options?: { signal?: AbortSignal }): Promise<string[]>;
  /** Reads the zone and returns the number of records. Throws {@link AdapterError}. */
  test(options?: { signal?: AbortSignal }): Promise<{ records: number }>;
  /** Given where DNS-01 has an exchange of its own; others append and delete TXT values ({@link ./txt.ts}). */
  txt?: TxtAdapter;
}

/** One value of a name, beside which others may stand. */
export interface TxtRecord {
  name: string;
  value: string;
}

/** Publishes and removes validation records. Both may be repeated. */
export interface TxtAdapter {
  /** Throws {@link AdapterError}. */
  add(record: TxtRecord, signal: AbortSignal): Promise<void>;
  /** Throws {@link AdapterError}. */
  remove(record: TxtRecord, signal: AbortSignal): Promise<void>;
}

/** How a zone is reached. */
export interface Access {
  zone: string;
  /** Values by key of {@link CredentialField}, checked; omitted optional fields are absent. */
  credentials: Readonly<Record<string, string>>;
  /** CIDRs of private networks in which servers may be. */
  allow: readonly string[];
  /** Replaces the address of the provider's API, for tests. */
  endpoint?: string | undefined;
  /** Of one request. Default 15,000. */
  timeoutMs?: number | undefined;
}

export interface CredentialField {
  key: string;
  type: 'text' | 'secret' | 'select' | 'textarea' | 'url';
  /** Stored sealed and never returned. */
  secret: boolean;
  required: boolean;
  placeholder: string;
  /** Regular expression that the whole value matches; null: any. */
  pattern: string | null;
  maxLength: number;
  /** Of a select; empty otherwise. */
  options: readonly string[];
  /** Empty: none. */
  default: string;
}

export interface AdapterCapabilities {
  recordTypes: readonly RecordType[];
  listZones: boolean;
  /** Lines it supports; [] : the default line only. */
  lines: readonly ResolutionLine[];
  /** What the provider serves at the apex in place of a CNAME. */
  apex: 'cname' | 'alias' | null;
  /** `custom`: the operator names the server. */
  endpoint: 'fixed' | 'custom';
  /** Seconds. Values outside are clamped when written. */
  minTtl: number;
  maxTtl: number;
  /** Changes that the adapter likes to get in one call. */
  batch: number;
  /** Whether all changes of a call of at most `batch` take effect together. */
  atomic: boolean;
  /** `serial`: ask {@link DnsAdapter.serial} as often as wanted; a number: list the zone at most once in so many seconds. */
  drift: 'serial' | number;
}

/** A provider, as the catalogue has it. Registered by exporting it as `…Adapter` from a file `*.adapter.ts` in this folder. */
export interface AdapterKind {
  key: string;
  /** A proper name; not translated. */
  title: string;
  fields: readonly CredentialField[];
  capabilities: AdapterCapabilities;
  /** Permissions that the credentials need, in the provider's own words. */
  permissions: readonly string[];
  /** Checks what a pattern of a field cannot; returns the key of the wrong field, or null. */
  check?(credentials: Readonly<Record<string, string>>): string | null;
  open(access: Access): DnsAdapter;
}
