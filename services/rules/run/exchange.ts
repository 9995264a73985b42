// One request on its way through the rules: what it was, what it has become, and what was decided.
import type { FieldName } from '../../../contract/expression/fields.ts';
import { formatField } from '../../../contract/expression/format.ts';
import type { ChallengeType, Level } from '../../../contract/scalars/challenge.ts';
import type { Outcome, RuleOfRun } from '../../../contract/scalars/rule-trace.ts';
import type { Bytes } from '../evaluate/bytes.ts';
import type { FieldValue } from '../evaluate/evaluate.ts';
import { decodeUnreserved } from '../evaluate/normal-path.ts';
import { encodeQuery } from '../evaluate/percent.ts';
import { canonicalPath, fieldOf, type HeaderLine, type TriedRequest } from '../evaluate/request-values.ts';
import { Headers } from './headers.ts';
import { type RunRequest, type RunResponse, unsaidFields } from './request.ts';
import type { OriginChoice } from './rule.ts';
import { UnknownValue } from './unknown.ts';

/** An answer that ends the phases of the request. */
export interface Decision {
  readonly kind: Exclude<Outcome['kind'], 'origin'>;
  readonly status: number;
  readonly error: string | null;
  readonly location?: Bytes;
  readonly rule?: RuleOfRun | null;
  readonly bulkRedirect?: string;
  readonly list?: string;
  readonly challenge?: ChallengeType;
}

interface Response {
  readonly status: number;
  readonly headers: Headers;
  readonly cacheStatus: Bytes | null;
  readonly ofEdge: boolean;
}

export class Exchange {
  readonly request: RunRequest;
  readonly requestHeaders: Headers;
  readonly overrides = new Map<string, boolean | number | string>();
  /** The rule that overrode each of them last. */
  readonly overriddenBy = new Map<string, RuleOfRun>();
  origin: OriginChoice = { originGroup: '', hostHeader: '', sni: '', port: 0 };
  /** Highest of the levels that challenge rules ask for. */
  level: Level = 'normal';
  exempt = false;
  readonly limits: Outcome['limits'] = [];
  codings: readonly string[] | null = null;
  decision: Decision | null = null;
  response: Response | null = null;
  /** Fields that were read and not said. */
  readonly unknown = new Set<string>();
  #rewritten: { path: Bytes; query: Bytes } | null = null;
  readonly #unsaid: ReadonlySet<FieldName>;

  constructor(request: RunRequest) {
    this.request = request;
    this.requestHeaders = new Headers(request.headers);
    this.#unsaid = unsaidFields(request);
  }

  /** Throws UnknownValue for what nobody said. */
  field(field: FieldName, name: string | null): FieldValue {
    if (this.#unsaid.has(field) || this.#unknownOfResponse(field, name)) {
      const written = formatField({ field, name });
      this.unknown.add(written);
      throw new UnknownValue(written);
    }
    return fieldOf(this.#view(), field, name);
  }

  get path(): Bytes {
    return fieldOf(this.#view(), 'http.request.uri.path', null) as Bytes;
  }

  get query(): Bytes {
    return fieldOf(this.#view(), 'http.request.uri.query', null) as Bytes;
  }

  /** Path and query as an origin gets them. */
  get target(): Bytes {
    if (!this.#rewritten) return this.request.uri;
    const { path, query } = this.#rewritten;
    return path + (query === '' ? '' : `?${encodeQuery(query)}`);
  }

  /** To an encoded path. */
  rewrite(encoded: Bytes, query: Bytes): void {
    const path = canonicalPath(decodeUnreserved(encoded));
    this.#rewritten = { path, query };
  }

  /** What the phases of the response look at. Nothing when no response was given and no rule made one. */
  respond(given: RunResponse | null): void {
    if (this.decision) {
      const { status } = this.decision;
      this.response = { status, headers: edgeHeaders(this.decision), cacheStatus: '', ofEdge: true };
    } else if (given) {
      const { status, cacheStatus } = given;
      this.response = { status, headers: new Headers(given.headers), cacheStatus, ofEdge: false };
    }
  }

  #unknownOfResponse(field: FieldName, name: string | null): boolean {
    if (field === 'http.response.cache_status') return this.response?.cacheStatus === null;
    if (field !== 'http.response.headers' || !this.response?.ofEdge) return false;
    return OF_EVERY_ANSWER.includes(name ?? '') && this.response.headers.values(name!).length === 0;
  }

  #view(): TriedRequest {
    const { request, response } = this;
    return {
      ...request,
      headers: this.requestHeaders.lines,
      id: request.id ?? '',
      ja4: request.ja4 ?? '',
      country: request.country ?? '',
      subdivision: request.subdivision ?? '',
      asNumber: request.asNumber ?? 0,
      asName: request.asName ?? '',
      rewritten: this.#rewritten,
      response: response && {
        status: response.status,
        headers: response.headers.lines,
        cacheStatus: response.cacheStatus ?? '',
      },
    };
  }
}

/** What a node's own answer has and a run does not know. */
const OF_EVERY_ANSWER: readonly string[] = ['content-length', 'date', 'server', 'x-request-id'];

/** Headers of an answer that the node makes. */
function edgeHeaders({ error, location, challenge }: Decision): Headers {
  if (location !== undefined) return new Headers([['location', location]]);
  const html: HeaderLine[] = [
    ['cache-control', 'no-store'],
    ['content-type', 'text/html; charset=utf-8'],
  ];
  if (challenge !== undefined) return new Headers([['x-svc-challenge', challenge], ...html]);
  return new Headers([
    ['x-svc-error', error ?? ''],
    ['x-content-type-options', 'nosniff'],
    ['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'"],
    ...html,
  ]);
}
