// The guard: what happens to a request, in this order. Method and raw path; credentials from headers; access-key rate
// limit; access; body with a cap; credentials again when the body came in after they were judged; idempotency; JSON;
// action, which validates its input. Nothing later runs when something earlier refuses.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AUTH_ENDPOINTS, type AuthEndpoint } from '../../contract/auth-endpoints.ts';
import { type ContractError, fail } from '../../contract/errors.ts';
import { PROCEDURES, STREAMS } from '../../contract/index.ts';
import type { AnyProcedure } from '../../contract/procedure.ts';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import type { AnyStream } from '../../contract/stream.ts';
import type { CallMeta, Piece } from '../../mixins/contract-service.ts';
import type { AuthAnswer } from '../../runtime/auth-action.ts';
import type { IdempotencyClaim } from '../../runtime/call.ts';
import { isAbandoned } from '../../runtime/remote-calls.ts';
import { forClient } from '../../runtime/request-scope.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { traceparent } from '../../runtime/trace-context.ts';
import { validateInput } from '../../runtime/validate.ts';
import { sendText } from './answer.ts';
import type { Answerer } from './answerer.ts';
import { type ClientAddress, clientAddressReader } from './client-address.ts';
import { type Cookies, createCookies } from './cookies.ts';
import {
  accessRefusal,
  type Caller,
  idempotencyNamespace,
  type KeyKind,
  keyCaller,
  NOBODY,
  secretHash,
} from './credentials.ts';
import { DOWNLOADS, type Downloads } from './downloads.ts';
import type { Dispatch, Exchange } from './exchange.ts';
import { type AnswerHeaders, answerHeaders, refuseRepeatedHeaders } from './headers.ts';
import { claimIdempotency, releaseClaim } from './idempotency.ts';
import { parseJsonObject } from './json-body.ts';
import type { KnownCredentials } from './known-credentials.ts';
import type { LastUsed } from './last-used.ts';
import type { Streamers } from './live/streamers.ts';
import { openApiDocument } from './openapi-document.ts';
import { PiecedAnswers } from './pieces.ts';
import type { RateLimit } from './rate-limit.ts';
import {
  bodyWithoutPath,
  idempotencyHeader,
  receivedBody,
  refuseForeignOrigin,
  refuseQuery,
  requestBody,
  takesBody,
  takesIdempotencyKey,
} from './request-inputs.ts';
import { aliasesPrefix, splitTarget, type Target } from './request-target.ts';
import { RouteTable } from './route-table.ts';
import type { StaticFiles } from './static-files.ts';

const CSRF_TOKEN = 'orpc';
const API = '/api/v1/';
const RPC = '/rpc/';
const AUTH = '/api/auth/';
const INSTALLER = '/install.sh';
const SHELL_SCRIPT = 'text/x-shellscript';
/** An empty document that pages of the Web UI show in a frame and fill in. */
const PREVIEW = '/page-preview';
const PREVIEW_PAGE = '<!doctype html><html lang="en"><title>Preview</title></html>\n';
const HTML = 'text/html; charset=utf-8';
/** Below these nothing falls back to the Web UI, however the path is spelled. */
const RESERVED = ['/api', '/rpc', '/downloads', INSTALLER, '/healthz'];

export interface GatewayParts {
  runtime: Runtime;
  answers: Answerer;
  dispatch: Dispatch;
  credentials: KnownCredentials;
  lastUsed: Readonly<Record<KeyKind, LastUsed>>;
  rateLimit: RateLimit;
  files: StaticFiles;
  downloads: Downloads;
  /** Text of /install.sh. */
  installer: string;
  streamers: Streamers;
}

export class Gateway {
  readonly #runtime: Runtime;
  readonly #answers: Answerer;
  readonly #pieced: PiecedAnswers;
  readonly #dispatch: Dispatch;
  readonly #credentials: KnownCredentials;
  readonly #lastUsed: Readonly<Record<KeyKind, LastUsed>>;
  readonly #rateLimit: RateLimit;
  readonly #files: StaticFiles;
  readonly #streamers: Streamers;
  readonly #downloads: Downloads;
  readonly #installer: string;
  readonly #routes = new RouteTable(PROCEDURES.values());
  readonly #rpc: ReadonlyMap<string, AnyProcedure>;
  readonly #streams: ReadonlyMap<string, AnyStream>;
  readonly #auth: ReadonlyMap<string, AuthEndpoint>;
  readonly #clientAddress: ClientAddress;
  readonly #cookies: Cookies;
  readonly #headers: AnswerHeaders;
  readonly #openApi: string;
  readonly #health: string;

  constructor(parts: GatewayParts) {
    this.#runtime = parts.runtime;
    this.#answers = parts.answers;
    this.#pieced = new PiecedAnswers(parts.answers, parts.runtime.log);
    this.#dispatch = parts.dispatch;
    this.#credentials = parts.credentials;
    this.#lastUsed = parts.lastUsed;
    this.#rateLimit = parts.rateLimit;
    this.#files = parts.files;
    this.#streamers = parts.streamers;
    this.#downloads = parts.downloads;
    this.#installer = parts.installer;
    const { env } = parts.runtime;
    this.#rpc = new Map([...PROCEDURES.values()].map((procedure) => [rpcPath(procedure), procedure]));
    this.#streams = new Map([...STREAMS.values()].map((stream) => [rpcPath(stream), stream]));
    this.#auth = new Map(Object.values(AUTH_ENDPOINTS).map((endpoint) => [endpoint.path, endpoint]));
    this.#clientAddress = clientAddressReader(env.trustedProxies, (peer) =>
      parts.runtime.log.warn(
        { peer, add: peer, variable: 'SVC_TRUSTED_PROXIES' },
        'x-forwarded-for ignored, its sender is not a trusted proxy; if it is yours, add its address to the variable',
      ),
    );
    this.#cookies = createCookies(env);
    this.#headers = answerHeaders(env.publicUrl);
    this.#openApi = JSON.stringify(openApiDocument(env.publicUrl, env.version));
    this.#health = JSON.stringify({ status: 'ok', version: env.version });
  }

  /** Answers a request; never throws. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return forClient(response, () => this.#handle(request, response));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = splitTarget(request.url ?? '');
    const path = target?.path ?? '';
    const surface = path.startsWith(RPC) ? 'rpc' : path.startsWith(AUTH) ? 'auth' : 'api';
    const exchange: Exchange = {
      request,
      response,
      surface,
      requestId: randomUUID(),
      traceparent: traceparent(request.headers.traceparent as string | undefined),
      arrivedAt: performance.now(),
      caller: NOBODY,
      procedure: null,
      idempotency: null,
      cookies: [],
    };
    try {
      if (target === null) this.#answers.notFound(exchange);
      else if (path.startsWith(API)) await this.#api(exchange, target);
      else if (surface === 'rpc') await this.#rpcCall(exchange, target);
      else if (surface === 'auth') await this.#authCall(exchange, target);
      else await this.#other(exchange, target);
    } catch (error) {
      await this.#answers.fail(exchange, error);
    }
  }

  async #api(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const path = target.path.slice(API.length - 1);
    if (path === '/openapi.json' && request.method === 'GET') return this.#answers.send(exchange, 200, this.#openApi);
    const match = this.#routes.match(request.method!, path);
    if (match === null) return this.#answers.notFound(exchange);
    const { route, params } = match;
    exchange.procedure = route.procedure;
    refuseRepeatedHeaders(request);
    const refusal = route.procedure.access === 'public' ? null : await this.#admitKey(exchange, route.procedure);
    const withKey = request.headers['idempotency-key'] !== undefined && takesIdempotencyKey(route);
    if (refusal !== null && !withKey) throw refusal;
    const key = idempotencyHeader(exchange, route);
    const input: Record<string, unknown> = {};
    const late = !request.complete;
    let body: Buffer | null = null;
    if (key !== null) {
      body = await this.#claimedBody(exchange, key, refusal);
      if (body === null) return;
    } else if (takesBody(route)) {
      body = await requestBody(exchange);
      if (late && exchange.caller.key !== null) await this.#checkKey(exchange);
    }
    if (body !== null) Object.assign(input, bodyWithoutPath(parseJsonObject(body), route.pathInputs));
    if (target.query !== null) route.readQuery(target.query, input);
    Object.assign(input, params);
    const run = () => this.#run(exchange, input, () => this.#checkKey(exchange));
    if (exchange.idempotency === null) await run();
    else await run().catch((error) => this.#runAgain(exchange, body!, error, run));
  }

  /** Who calls, counted; answers why the caller may not do this. */
  async #admitKey(exchange: Exchange, procedure: AnyProcedure): Promise<ContractError | null> {
    const caller = await this.#keyCaller(exchange);
    const key = caller.key!;
    // Service accounts are not counted.
    const wait = key.kind === 'access_key' ? await this.#rateLimit.secondsToWait(key.id) : 0;
    if (wait > 0) fail('API_KEY_RATE_LIMITED', { retryAfterSeconds: wait });
    exchange.caller = caller;
    this.#lastUsed[key.kind].touch(key.keyId);
    return accessRefusal(procedure, key);
  }

  #keyCaller({ request }: Exchange): Promise<Caller> {
    return keyCaller(request.headers['x-api-key'], this.#countedAddress(request), this.#credentials.keys);
  }

  /** What counts what a client gets wrong. */
  #countedAddress(request: IncomingMessage): string {
    return countedAddress(this.#clientAddress(request));
  }

  /** A key that was revoked, or may do less, while its body came in starts nothing. */
  async #checkKey(exchange: Exchange): Promise<void> {
    exchange.caller = await this.#keyCaller(exchange);
    const refusal = accessRefusal(exchange.procedure!, exchange.caller.key!);
    if (refusal !== null) throw refusal;
  }

  /**
   * The body of a request with an idempotency key, which is claimed by then: refusals of the caller and of the body are
   * kept as the request's answer. null when a stored answer was repeated instead.
   */
  async #claimedBody(exchange: Exchange, key: string, refused: ContractError | null): Promise<Buffer | null> {
    const late = !exchange.request.complete;
    const received = await receivedBody(exchange);
    if (late && refused === null && exchange.caller.key !== null) await this.#checkKey(exchange);
    const refusal = refused ?? received.refusal;
    const { request, caller } = exchange;
    const print = { method: request.method!, target: request.url!, body: received.body };
    const wanted = { namespace: idempotencyNamespace(caller.key), key };
    const { lostClaims } = this.#answers;
    const { claim, stored } = await claimIdempotency(this.#runtime, wanted, print, (lost) => lostClaims.add(lost));
    if (stored === null) {
      exchange.idempotency = claim;
      if (refusal !== null) throw refusal;
      return received.body;
    }
    // All access keys share a namespace: what one may not do, it does not read either.
    if (refused !== null && stored.status < 400) throw refused;
    const headers = Object.entries(stored.headers).flat();
    this.#answers.send(exchange, stored.status, stored.body, ...headers, 'idempotent-replayed', 'true');
    return null;
  }

  /**
   * A call with an idempotency key whose process died or went silent runs once more, unless it had ended: its record tells.
   * Its claim is given back first, so that a process that is cut off and goes on can no longer commit.
   */
  async #runAgain(exchange: Exchange, body: Buffer, error: unknown, run: () => Promise<void>): Promise<void> {
    if (!isAbandoned(error)) throw error;
    const { request } = exchange;
    const { namespace, key } = exchange.idempotency!;
    await releaseClaim(this.#runtime, exchange.idempotency!);
    const print = { method: request.method!, target: request.url!, body };
    const { lostClaims } = this.#answers;
    const lost = (claim: IdempotencyClaim) => lostClaims.add(claim);
    const { claim, stored } = await claimIdempotency(this.#runtime, { namespace, key }, print, lost);
    exchange.idempotency = claim;
    if (stored === null) await run();
    else this.#answers.send(exchange, stored.status, stored.body, ...Object.entries(stored.headers).flat());
  }

  async #rpcCall(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const path = target.path.slice(RPC.length - 1);
    const stream = this.#streams.get(path);
    const procedure = this.#rpc.get(path);
    if ((!procedure && !stream) || request.method !== 'POST') return this.#answers.notFound(exchange);
    refuseRepeatedHeaders(request);
    if (request.headers['x-csrf-token'] !== CSRF_TOKEN) fail('CSRF_HEADER_REQUIRED');
    if (!procedure) return this.#watch(exchange, target, stream!);
    exchange.procedure = procedure;
    if (procedure.access !== 'public') await this.#admitSession(exchange);
    const late = !request.complete;
    const input = parseJsonObject(await requestBody(exchange));
    if (late && procedure.access !== 'public') await this.#admitSession(exchange);
    if (target.query !== null) refuseQuery(target.query);
    await this.#run(exchange, input, () => this.#checkSession(exchange));
  }

  /** Calls the action; `check` throws once the caller may not go on, where the answer takes long. */
  async #run(exchange: Exchange, input: Record<string, unknown>, check: () => Promise<void>): Promise<void> {
    const meta = this.#meta(exchange);
    const { name, media } = exchange.procedure!;
    if (media === undefined) await this.#dispatch.procedure(exchange, input, meta);
    else {
      const piece = (after: string | null) => this.#dispatch.call<Piece>(name, input, { ...meta, after });
      await this.#pieced.answer(exchange, { piece, check });
    }
  }

  async #admitSession(exchange: Exchange): Promise<void> {
    const token = this.#cookies.read(exchange.request.headers.cookie, 'session');
    if (token === null) fail('UNAUTHORIZED');
    const session = await this.#credentials.sessions.get(secretHash(token), this.#countedAddress(exchange.request));
    if (session === null) fail('UNAUTHORIZED');
    exchange.caller = { actor: { type: 'user', id: session.userId, name: session.name }, key: null };
    const { refreshed, lasting } = session;
    if (refreshed) exchange.cookies.push(this.#cookies.change('session', { token, lasting }));
  }

  /** Without prolonging it. */
  async #isLive(token: string): Promise<boolean> {
    const [live] = await this.#dispatch.call<boolean[]>('auth.liveSessions', { tokens: [token] });
    return live === true;
  }

  /** An answer under way ends with its session, and never prolongs it. */
  async #checkSession({ request }: Exchange): Promise<void> {
    const token = this.#cookies.read(request.headers.cookie, 'session');
    if (token === null || !(await this.#isLive(token))) fail('UNAUTHORIZED');
  }

  /** An answer that goes on, and ends with its session. */
  async #watch(exchange: Exchange, target: Target, stream: AnyStream): Promise<void> {
    const token = this.#cookies.read(exchange.request.headers.cookie, 'session');
    if (token === null) fail('UNAUTHORIZED');
    const address = this.#countedAddress(exchange.request);
    const ask = async () => ((await this.#isLive(token)) ? true : null);
    const isLive = async () => {
      if (!(await this.#credentials.failed.ask(address, 'SIGN_IN_RATE_LIMITED', ask))) fail('UNAUTHORIZED');
    };
    await isLive();
    const late = !exchange.request.complete;
    const body = parseJsonObject(await requestBody(exchange));
    if (late) await isLive();
    if (target.query !== null) refuseQuery(target.query);
    const begin = await this.#streamers[stream.name]!(token, validateInput(stream, body));
    const sink = this.#answers.stream(exchange);
    if (sink) await begin(sink);
  }

  async #authCall(exchange: Exchange, target: Target): Promise<void> {
    const { request } = exchange;
    const endpoint = this.#auth.get(target.path.slice(AUTH.length - 1));
    if (!endpoint || endpoint.method !== request.method) return this.#answers.notFound(exchange);
    refuseRepeatedHeaders(request);
    if (target.query !== null) refuseQuery(target.query);
    refuseForeignOrigin(request, this.#runtime.env.publicUrl);
    const input = endpoint.method === 'POST' ? parseJsonObject(await requestBody(exchange)) : {};
    const { cookie } = request.headers;
    const cookies = this.#cookies.readAll(cookie);
    const answer = await this.#dispatch.call<AuthAnswer>(endpoint.name, { input, cookies }, this.#meta(exchange));
    exchange.cookies.push(...this.#cookies.changes(cookie, answer.cookies));
    // Nothing but what a browser with a session sends can end one.
    if (endpoint.method === 'POST' && cookies.session !== null) await this.#credentials.notices.heardEverywhere();
    this.#answers.send(exchange, 200, JSON.stringify(answer.body));
  }

  async #other(exchange: Exchange, { path }: Target): Promise<void> {
    const { request, response } = exchange;
    const reads = request.method === 'GET' || request.method === 'HEAD';
    if (path === '/healthz' && reads) return this.#answers.send(exchange, 200, this.#health);
    if (path === INSTALLER && reads) return sendText(response, 200, this.#installer, SHELL_SCRIPT, this.#headers.json);
    if (path === PREVIEW && reads) return sendText(response, 200, PREVIEW_PAGE, HTML, this.#headers.preview);
    if (path.startsWith(DOWNLOADS) && reads) {
      if (!(await this.#downloads.serve(request, response, path, this.#headers.json))) this.#answers.notFound(exchange);
      return;
    }
    if (!reads || aliasesPrefix(path, RESERVED)) return this.#answers.notFound(exchange);
    if (!(await this.#files.serve(request, response, path, this.#headers.page))) this.#answers.notFound(exchange);
  }

  #meta({ request, requestId, traceparent, caller, idempotency }: Exchange): CallMeta {
    const ip = this.#clientAddress(request);
    const userAgent = request.headers['user-agent']?.slice(0, 512) ?? null;
    return { call: { actor: caller.actor, ip, userAgent, requestId, idempotency }, traceparent };
  }
}

/** `/sites/setEnabled` for sites.setEnabled. */
export function rpcPath(procedure: Pick<AnyProcedure, 'name'>): string {
  return `/${procedure.name.replaceAll('.', '/')}`;
}
