// What a request must pass before it is served, in this order: a path of the service, the method, then Enroll (without
// a certificate) or an accepted certificate. Refusals are answered in the Connect protocol and recorded for the node.
import type { ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { errorCodeOf } from '../../contract/errors.ts';
import type { CertificateAuthority } from '../../mixins/certificate-authority.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { asUnavailable } from '../../mixins/write.ts';
import { NodeService } from '../../proto/gen/svc/node/v1/node_pb.js';
import { type Authenticator, Refused } from './authenticator.ts';
import { canonicalAddress } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import type { NodeReports } from './node-reports.ts';
import { Turns } from './turns.ts';
import { type Caller, createUnaryHandlers, type Handler, type Request, type Response } from './unary.ts';
import { endFrame } from './watch/frames.ts';
import type { WatchHub } from './watch/watch-hub.ts';
import { BadWatchRequest, readWatchRequest, STREAM_TYPE } from './watch/watch-request.ts';

const CALL_MS = 60_000;
const STREAM_IDLE_MS = 120_000;
/** Of the channel pool's six connections. */
const PULLS = 3;
const MAX_WAITING_PULLS = 20_000;

const METHODS = new Map(NodeService.methods.map((method) => [`/${NodeService.typeName}/${method.name}`, method.name]));

interface Problem {
  status: number;
  code: string;
  message: string;
}

const UNAVAILABLE: Problem = { status: 503, code: 'unavailable', message: 'the console cannot answer now' };

export class Gate {
  readonly #runtime: Runtime;
  readonly #authenticator: Authenticator;
  readonly #hub: WatchHub;
  readonly #reports: NodeReports;
  readonly #callers = new WeakMap<Request, Caller>();
  readonly #remoteAddresses = new WeakMap<TLSSocket, string | null>();
  readonly #stranger: Handler;
  readonly #node: Handler;

  constructor(
    runtime: Runtime,
    authority: CertificateAuthority,
    authenticator: Authenticator,
    hub: WatchHub,
    reports: NodeReports,
    consoleAddresses: () => string[],
  ) {
    this.#runtime = runtime;
    this.#authenticator = authenticator;
    this.#hub = hub;
    this.#reports = reports;
    const pulls = new Turns(PULLS, MAX_WAITING_PULLS);
    const context = { runtime, hub, reports, pulls, consoleAddresses };
    const handlers = createUnaryHandlers(context, authority, (request) => this.#callerOf(request));
    this.#stranger = handlers.stranger;
    this.#node = handlers.node;
  }

  handle(request: Request, response: Response): void {
    this.#admit(request, response).catch((error) => {
      const known = asUnavailable(error);
      if (errorCodeOf(known) !== 'SERVICE_UNAVAILABLE') {
        this.#runtime.log.error({ err: error, path: request.url }, 'node channel request failed');
      }
      refuse(request, response, UNAVAILABLE);
    });
  }

  async #admit(request: Request, response: Response): Promise<void> {
    const method = METHODS.get(request.url ?? '');
    if (method === undefined) {
      answer(request, response, 404, 'application/json', '{"error":"not_found"}');
      return;
    }
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST');
      answer(request, response, 405, 'application/json', '{"error":"method_not_allowed"}');
      return;
    }
    const socket = socketOf(request);
    const remoteAddress = this.#remoteAddressOf(socket);
    if (method === 'Enroll') {
      this.#callers.set(request, { node: null, remoteAddress });
      this.#serve(this.#stranger, request, response);
      return;
    }
    const node = await this.#identify(request, response, socket, method === 'RenewCertificate');
    if (!node) return;
    this.#callers.set(request, { node, remoteAddress });
    if (method === 'Watch') await this.#watch(node, request, response);
    else this.#serve(this.#node, request, response);
  }

  async #identify(
    request: Request,
    response: Response,
    socket: TLSSocket,
    renewing: boolean,
  ): Promise<NodeIdentity | null> {
    try {
      return await this.#authenticator.identify(socket, { renewing });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { reason, nodeId } = error;
      this.#runtime.log.info({ nodeId, reason, remoteAddress: socket.remoteAddress }, 'node refused');
      // A disabled node is no mistake of its certificate.
      if (nodeId !== null && reason !== 'NODE_DISABLED') this.#reports.refused(nodeId, reason);
      const disabled = reason === 'NODE_DISABLED';
      refuse(request, response, {
        status: disabled ? 403 : 401,
        code: disabled ? 'permission_denied' : 'unauthenticated',
        message: reason,
      });
      return null;
    }
  }

  #serve(handler: Handler, request: Request, response: Response): void {
    // A body that never ends would hold the call for ever.
    limitIdle(response, CALL_MS);
    handler(request, response);
  }

  async #watch(node: NodeIdentity, request: Request, response: Response): Promise<void> {
    if (request.headers['content-type'] !== STREAM_TYPE) {
      answer(request, response, 415, 'application/json', '{"error":"unsupported_media_type"}');
      return;
    }
    try {
      const { config, bans } = await readWatchRequest(request);
      response.statusCode = 200;
      response.setHeader('content-type', STREAM_TYPE);
      (response as ServerResponse).flushHeaders();
      const sink = 'stream' in response ? (response as Http2ServerResponse).stream : response;
      limitIdle(response, STREAM_IDLE_MS);
      const stream = await this.#hub.open(node, sink, { config, bans });
      if (!stream) sink.end(endFrame({ code: 'not_found', message: 'the cluster is gone' }));
    } catch (error) {
      if (!(error instanceof BadWatchRequest)) throw error;
      refuse(request, response, { status: 400, code: 'invalid_argument', message: error.message });
    }
  }

  #remoteAddressOf(socket: TLSSocket): string | null {
    let address = this.#remoteAddresses.get(socket);
    if (address === undefined) {
      address = canonicalAddress(socket.remoteAddress ?? '') ?? null;
      this.#remoteAddresses.set(socket, address);
    }
    return address;
  }

  #callerOf(request: Request): Caller {
    return this.#callers.get(request) ?? { node: null, remoteAddress: null };
  }
}

/** The TLS socket under a request; HTTP/2 hands out a stand-in per session. */
function socketOf(request: Request): TLSSocket {
  const session = (request as Http2ServerRequest).stream?.session;
  return (session?.socket ?? request.socket) as TLSSocket;
}

/** Ends a request on which nothing moves. */
function limitIdle(response: Response, ms: number): void {
  const timed: Pick<ServerResponse, 'setTimeout'> = response as ServerResponse;
  timed.setTimeout(ms, () => response.destroy());
}

/** A Connect error: an end-of-stream message for streams, a JSON body for calls. */
function refuse(request: Request, response: Response, { status, code, message }: Problem): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (request.headers['content-type'] === STREAM_TYPE) {
    answer(request, response, 200, STREAM_TYPE, endFrame({ code, message }));
  } else {
    answer(request, response, status, 'application/json', JSON.stringify({ code, message }));
  }
}

/** Answers without having read the body; what is left of it is not waited for. */
function answer(request: Request, response: Response, status: number, type: string, body: string | Buffer): void {
  if (request.httpVersionMajor < 2) response.setHeader('connection', 'close');
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(body));
  response.end(body);
  request.resume();
}
