// The made-up request of a run, and what a run has to be told beside it.
import type { FieldName } from '../../../contract/expression/fields.ts';
import type { Level } from '../../../contract/scalars/challenge.ts';
import type { Cidr } from '../../../contract/scalars/cidr.ts';
import type { Bytes } from '../evaluate/bytes.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';
import type { RunRule } from './rule.ts';

/** Null is what whoever made the request up did not say: a rule that reads it is not decided. */
export interface RunRequest {
  readonly method: Bytes;
  readonly scheme: 'http' | 'https';
  /** Lower case, without port. */
  readonly host: Bytes;
  readonly port: number;
  /** Path and query as they are sent, starting with a slash. */
  readonly uri: Bytes;
  /** Origins resolve the path in different ways, and the site refuses such paths. */
  readonly ambiguousPath?: boolean;
  readonly version: Bytes;
  readonly headers: readonly HeaderLine[];
  readonly address: string;
  readonly peer: string;
  readonly id: Bytes | null;
  readonly arrivedSeconds: number;
  readonly ja4: Bytes | null;
  readonly country: Bytes | null;
  readonly subdivision: Bytes | null;
  readonly asNumber: number | null;
  readonly asName: Bytes | null;
  /** What the visitor has passed already. */
  readonly passLevel: Level;
  /** In bytes. */
  readonly bodySize: number | null;
  readonly response: RunResponse | null;
}

/** Of the cache or an origin. */
export interface RunResponse {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly cacheStatus: Bytes | null;
}

export interface BulkRedirect {
  /** As people read it. */
  readonly source: string;
  readonly target: Bytes;
  readonly statusCode: number;
  readonly preserveQuery: boolean;
}

export interface RunSurroundings {
  /** Platform rules and those of the site, each in the order of its list. */
  readonly rules: readonly RunRule[];
  inList(list: string, address: Cidr): boolean;
  /** Lists that hold on all sites and have the address, by name. */
  readonly allowLists: readonly string[];
  readonly blockLists: readonly string[];
  /** By a decoded and canonical path, also with a host before it. */
  bulkRedirect(key: Bytes): BulkRedirect | undefined;
  /** Largest body in bytes that the site takes; 0 for any. */
  readonly bodyLimit: number;
  /** Where plain requests for a host can be sent; null where the site has no HTTPS for it, `pending` while it waits for a certificate. */
  https(host: Bytes): HttpsRedirect | 'pending' | null;
}

export interface HttpsRedirect {
  /** Whether the site sends them there where no rule says otherwise. */
  readonly forced: boolean;
  readonly status: number;
  readonly port: number;
}

/** Fields that a request does not say. */
export function unsaidFields(request: RunRequest): ReadonlySet<FieldName> {
  const fields: [FieldName, unknown][] = [
    ['http.request.id', request.id],
    ['tls.ja4', request.scheme === 'http' ? '' : request.ja4],
    ['ip.geoip.country', request.country],
    ['ip.geoip.subdivision', request.subdivision],
    ['ip.geoip.asnum', request.asNumber],
    ['ip.geoip.as_name', request.asName],
  ];
  return new Set(fields.filter(([, value]) => value === null).map(([field]) => field));
}
