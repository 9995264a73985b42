// The guard: what happens to a request, in this order. Method and raw path; credentials from headers; access-key rate
// limit; access; body with a cap; idempotency; JSON; action, which validates its input. Nothing later runs when something
// earlier refuses.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AUTH_ENDPOINTS, type AuthEndpoint } from '../../contract/auth-endpoints.ts';
import { type ContractError, fail } from '../../contract/errors.ts';
import { PROCEDURES } from '../../contract/index.ts';
import type { AnyProcedure } from '../../contract/procedure.ts';
import type { Call } from '../../mixins/call.ts';
import type { CallMeta } from '../../mixins/contract-service.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { errorBody, presentable, sendJson } from './answer.ts';
import { type ClientAddress, clientAddressReader } from './client-address.ts';
import { type SessionCookie, sessionCookie } from './cookies.ts';
import { accessKeyCaller, type Caller, checkKeyAccess, NOBODY } from './credentials.ts';
import { type AnswerHeaders, answerHeaders, refuseRepeatedHeaders } from './headers.ts';
import { claimIdempotency, keepAnswer, releaseClaim, type StoredAnswer } from './idempotency.ts';
import { parseIdempotencyKey } from './idempotency-key.ts';
import { ClientGone, parseJsonObject, readBody } from './json-body.ts';
import type { KeyCache } from './key-cache.ts';
import type { LastUsed } from './last-used.ts';
import { openApiDocument } from './openapi-document.ts';
import type { RateLimit } from './rate-limit.ts';
import { createRequestMetrics, type RequestMetrics } from './request-metrics.ts';
import { aliasesPrefix, splitTarget, type Target } from './request-target.ts';
import { type ApiRoute, RouteTable } from './route-table.ts';
import type { StaticFiles } from './static-files.ts';

/** Largest body of a request; a procedure that takes more says so in the contract. */
export const BODY_LIMIT = 1024 * 1024;

/** Namespace of idempotency keys: all access keys share one. */
const ACCESS_KEYS = 'access-keys';
const CSRF_TOKEN = 'orpc';
const API = '/api/v1/';
const RPC = '/rpc/';
const AUTH = '/api/auth/';
/** Below these nothing falls back to the Web UI, however the path is spelled. */
const RESERVED = ['/api', '/rpc', '/downloads', '/install.sh', '/healthz'];

/** One request under way, and where its answer goes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  surface: 'api' | 'rpc' | 'auth';
  requestId: string;
  /** performance.now() of its arrival. */
  arrivedAt: number;
  caller: Caller;
  procedure: AnyProcedure | null;
  idempotency: Call['idempotency'];
  /** Set-Cookie of the answer. */
  cookie: string | null;
}

export interface Session {
  userId: string;
  name: string;
  /** The cookie is due to be sent again. */
  refreshed: boolean;
}

/** What the gateway needs from the broker. */
export interface Dispatch {
  /** Calls the procedure's action through its alias and answers with {@link Gateway.answer}. */
  procedure(exchange: Exchange, input: Record<string, unknown>, meta: CallMeta): Promise<unknown>;
  /** Calls an action that is no procedure. */
  call<T>(action: string, input: unknown, meta?: CallMeta): Promise<T>;
}

export interface GatewayParts {
  runtime: Runtime;
  dispatch: Dispatch;
  keys: KeyCache;
  lastUsed: LastUsed;
  rateLimit: RateLimit;
  files: StaticFiles;
}

export class Gateway {
  readonly #runtime: Runtime;
  readonly #dispatch: Dispatch;
  readonly #keys: KeyCache;
  readonly #lastUsed: LastUsed;
  readonly #rateLimit: RateLimit;
  readonly #files: StaticFiles;
  readonly #routes = new RouteTable(PROCEDURES.values());
  readonly #rpc: ReadonlyMap<string, AnyProcedure>;
  readonly #auth: ReadonlyMap<string, AuthEndpoint>;
  readonly #clientAddress: ClientAddress;
  readonly #cookie: SessionCookie;
  readonly #headers: AnswerHeaders;
  readonly #metrics: RequestMetrics;
  readonly #openApi: string;
  readonly #health: string;

  constructor(parts: GatewayParts) {
    this.#runtime = parts.runtime;
    this.#dispatch = parts.dispatch;
    this.#keys = parts.keys;
    this.#lastUsed = parts.lastUsed;
    this.#rateLimit = parts.rateLimit;
    this.#files = parts.files;
    const { env } = parts.runtime;
    this.#rpc = new Map([...PROCEDURES.values()].map((procedure) => [rpcPath(procedure), procedure]));
    this.#auth = new Map(Object.values(AUTH_ENDPOINTS).map((endpoint) => [endpoint.path, endpoint]));
    this.#clientAddress = clientAddressReader(env.trustedProxies);
    this.#cookie = sessionCookie(env);
    this.#headers = answerHeaders(env.publicUrl);
    this.#metrics = createRequestMetrics(parts.runtime);
    this.#openApi = JSON.stringify(openApiDocument(env.publicUrl, env.version));
    this.#health = JSON.stringify({ status: 'ok', version: env.version });
  }

  /** Answers a request; never throws. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = splitTarget(request.url ?? '');
    const path = target?.path ?? '';
    const surface = path.startsWith(RPC) ? 'rpc' : path.startsWith(AUTH) ? 'auth' : 'api';
    const exchange: Exchange = {
      request,
      response,
      surface,
      requestId: randomUUID(),
      arrivedAt: performance.now(),
      caller: NOBODY,
      procedure: null,
      idempotency: null,
      cookie: null,
    };
    try {
      if (target === null) this.#notFound(exchange);
      else if (request.method === 'OPTIONS') fail('METHOD_NOT_ALLOWED');
      else if (path.startsWith(API)) await this.#api(exchange, target);
      else if (surface === 'rpc') await this.#rpcCall(exchange, target);
      else if (surface === 'auth') await this.#authCall(exchange, target);
      else await this.#other(exchange, target);
    } catch (error) {
      await this.#fail(exchange, error);
    }
  }

  async #api(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const path = target.path.slice(API.length - 1);
    if (path === '/openapi.json' && request.method === 'GET') return this.#send(exchange, 200, this.#openApi);
    const match = this.#routes.match(request.method!, path);
    if (match === null) return this.#notFound(exchange);
    const { route, params } = match;
    exchange.procedure = route.procedure;
    refuseRepeatedHeaders(request);
    if (route.procedure.access !== 'public') await this.#admitKey(exchange, route.procedure);
    const key = idempotencyHeader(exchange, route);
    const input: Record<string, unknown> = {};
    const body = takesBody(route) ? await this.#body(exchange) : null;
    if (key !== null && body !== null && (await this.#claim(exchange, key, body))) return;
    if (body !== null) Object.assign(input, bodyWithoutPath(parseJsonObject(body), route.pathInputs));
    if (target.query !== null) route.readQuery(target.query, input);
    Object.assign(input, params);
    await this.#dispatch.procedure(exchange, input, this.#meta(exchange));
  }

  async #admitKey(exchange: Exchange, procedure: AnyProcedure): Promise<void> {
    const caller = await accessKeyCaller(exchange.request.headers['x-api-key'], this.#keys);
    const key = caller.key!;
    const wait = await this.#rateLimit.secondsToWait(key.id);
    if (wait > 0) fail('API_KEY_RATE_LIMITED', { retryAfterSeconds: wait });
    exchange.caller = caller;
    this.#lastUsed.touch(key.id);
    checkKeyAccess(procedure, key);
  }

  /** Claims the key; true when a stored answer was repeated instead. */
  async #claim(exchange: Exchange, key: string, body: Buffer): Promise<boolean> {
    const { request } = exchange;
    const print = { method: request.method!, target: request.url!, body };
    const { claim, stored } = await claimIdempotency(this.#runtime, ACCESS_KEYS, key, print);
    if (stored !== null) {
      const headers = Object.entries(stored.headers).flat();
      this.#send(exchange, stored.status, stored.body, ...headers, 'idempotent-replayed', 'true');
      return true;
    }
    exchange.idempotency = claim;
    return false;
  }

  async #rpcCall(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const procedure = this.#rpc.get(target.path.slice(RPC.length - 1));
    if (!procedure || request.method !== 'POST') return this.#notFound(exchange);
    exchange.procedure = procedure;
    refuseRepeatedHeaders(request);
    if (request.headers['x-csrf-token'] !== CSRF_TOKEN) fail('CSRF_HEADER_REQUIRED');
    if (procedure.access !== 'public') await this.#admitSession(exchange);
    const input = parseJsonObject(await this.#body(exchange));
    if (target.query !== null) refuseQuery(target.query);
    await this.#dispatch.procedure(exchange, input, this.#meta(exchange));
  }

  async #admitSession(exchange: Exchange): Promise<void> {
    const token = this.#cookie.read(exchange.request.headers.cookie);
    if (token === null) fail('UNAUTHORIZED');
    const session = await this.#dispatch.call<Session | null>('auth.session', { token });
    if (session === null) fail('UNAUTHORIZED');
    exchange.caller = { actor: { type: 'user', id: session.userId, name: session.name }, key: null };
    if (session.refreshed) exchange.cookie = this.#cookie.set(token, true);
  }

  async #authCall(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const endpoint = this.#auth.get(target.path.slice(AUTH.length - 1));
    if (!endpoint || endpoint.method !== request.method) return this.#notFound(exchange);
    refuseRepeatedHeaders(request);
    if (target.query !== null) refuseQuery(target.query);
    if (endpoint.method === 'POST') this.#checkOrigin(request);
    const input = endpoint.method === 'POST' ? parseJsonObject(await this.#body(exchange)) : {};
    const token = this.#cookie.read(request.headers.cookie);
    const answer = await this.#dispatch.call<AuthAnswer>(endpoint.name, { input, token }, this.#meta(exchange));
    if (answer.session === 'end') exchange.cookie = this.#cookie.clear();
    else if (answer.session) exchange.cookie = this.#cookie.set(answer.session.token, answer.session.lasting);
    this.#send(exchange, 200, JSON.stringify(answer.body));
  }

  /** Browsers say where a POST comes from; what comes from another site is refused. Scripts say nothing. */
  #checkOrigin(request: IncomingMessage): void {
    const { origin } = request.headers;
    const site = request.headers['sec-fetch-site'];
    const foreign =
      origin !== undefined
        ? origin !== this.#runtime.env.publicUrl
        : site !== undefined && site !== 'same-origin' && site !== 'none';
    if (foreign) fail('CROSS_SITE_REQUEST');
  }

  async #other(exchange: Exchange, { path }: Target): Promise<void> {
    const { request, response } = exchange;
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (path === '/healthz' && reads) return this.#send(exchange, 200, this.#health);
    if (!reads || aliasesPrefix(path, RESERVED)) return this.#notFound(exchange);
    if (!(await this.#files.serve(request, response, path, this.#headers.page))) this.#notFound(exchange);
  }

  /** Reads the body of a request that takes one; UNSUPPORTED_MEDIA_TYPE unless it is JSON. */
  async #body({ request, response, procedure }: Exchange): Promise<Buffer> {
    const type = request.headers['content-type'];
    if (type !== undefined && !JSON_TYPE.test(type)) fail('UNSUPPORTED_MEDIA_TYPE');
    const encoding = request.headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') fail('UNSUPPORTED_MEDIA_TYPE');
    const body = await readBody(request, response, procedure?.bodyLimit ?? BODY_LIMIT);
    if (body.length > 0 && type === undefined) fail('UNSUPPORTED_MEDIA_TYPE');
    return body;
  }

  #meta({ request, requestId, caller, idempotency }: Exchange): CallMeta {
    const ip = this.#clientAddress(request);
    const userAgent = request.headers['user-agent']?.slice(0, 512) ?? null;
    return { call: { actor: caller.actor, ip, userAgent, requestId, idempotency } };
  }

  /** Answers a procedure's output; the action's changes become a header. */
  async answer(exchange: Exchange, output: unknown, changes: readonly string[] | undefined): Promise<void> {
    const status = exchange.procedure!.status;
    const body = JSON.stringify(output);
    const headers = changes?.length ? ['x-svc-change', changes.join(',')] : [];
    const stored = { status, body, headers: Object.fromEntries(headers.length ? [headers] : []) };
    if (exchange.idempotency) await this.#keep(exchange, stored);
    this.#send(exchange, status, body, ...headers);
  }

  async #keep({ idempotency, requestId }: Exchange, answer: StoredAnswer): Promise<void> {
    try {
      await keepAnswer(this.#runtime, idempotency!, answer);
    } catch (err) {
      // The answer is true all the same. A change is stored with its own transaction; only a repetition of an answer
      // without a change runs again.
      this.#runtime.log.warn({ err, requestId }, 'keeping an idempotent answer failed');
    }
  }

  #send(exchange: Exchange, status: number, body: string, ...headers: string[]): void {
    const { request, response, requestId, cookie } = exchange;
    if (response.headersSent || response.destroyed) return;
    headers.push('x-request-id', requestId);
    if (cookie !== null) headers.push('set-cookie', cookie);
    sendJson(response, status, body, this.#headers.json, ...headers);
    this.#metrics(exchange, status);
    // What was not read of the body is dropped, or the connection could not be used again.
    if (!request.readableEnded) request.resume();
  }

  #notFound(exchange: Exchange): void {
    this.#send(exchange, 404, '{"error":"not_found"}');
  }

  async #fail(exchange: Exchange, error: unknown): Promise<void> {
    if (error instanceof ClientGone) return;
    const { log } = this.#runtime;
    const told = presentable(error, log, exchange.requestId);
    const answer = errorBody(told as ContractError, exchange.surface === 'rpc');
    const body = JSON.stringify(answer);
    if (exchange.idempotency) await this.#settle(exchange, answer.status, body);
    const headers: string[] = [];
    if (answer.status === 405) headers.push('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE');
    const wait = answer.data.retryAfterSeconds;
    if (typeof wait === 'number') headers.push('retry-after', String(wait));
    this.#send(exchange, answer.status, body, ...headers);
  }

  /** Refusals are kept and repeated; what may be different next time gives the key back. */
  async #settle(exchange: Exchange, status: number, body: string): Promise<void> {
    if (status < 500 && status !== 401 && status !== 429) return this.#keep(exchange, { status, body, headers: {} });
    try {
      await releaseClaim(this.#runtime, exchange.idempotency!);
    } catch (err) {
      this.#runtime.log.warn({ err, requestId: exchange.requestId }, 'releasing an idempotency key failed');
    }
  }
}

/** What an action under /api/auth answers. */
export interface AuthAnswer {
  body: unknown;
  /** A session to hand to the browser, `end` to take it away, null to leave it. */
  session: { token: string; lasting: boolean } | 'end' | null;
}

const JSON_TYPE = /^application\/json(?:\s*;\s*charset=(?:utf-8|"utf-8"))?\s*$/i;

/** `/sites/setEnabled` for sites.setEnabled. */
export function rpcPath(procedure: AnyProcedure): string {
  return `/${procedure.name.replaceAll('.', '/')}`;
}

function takesBody({ procedure }: ApiRoute): boolean {
  return procedure.method !== 'GET' && procedure.method !== 'DELETE';
}

/** The key of a request that takes one; throws for a malformed key and where none is taken. */
function idempotencyHeader({ request }: Exchange, route: ApiRoute): string | null {
  const header = request.headers['idempotency-key'];
  if (header === undefined || !takesBody(route)) return null;
  if (route.procedure.idempotency === 'refused') fail('IDEMPOTENCY_KEY_UNSUPPORTED');
  return parseIdempotencyKey(String(header));
}

/** A body may not name what the path already says. */
function bodyWithoutPath(body: Record<string, unknown>, pathInputs: readonly string[]): Record<string, unknown> {
  const named = pathInputs.find((name) => Object.hasOwn(body, name));
  if (named === undefined) return body;
  return fail('BAD_REQUEST', {
    issues: [{ path: `/${named}`, keyword: 'additionalProperties', params: { additionalProperty: named } }],
  });
}

function refuseQuery(query: string): void {
  if (query === '') return;
  const name = query.split(/[=&]/, 1)[0]!.slice(0, 100);
  fail('BAD_REQUEST', {
    issues: [{ path: `/${name}`, keyword: 'additionalProperties', params: { additionalProperty: name } }],
  });
}
