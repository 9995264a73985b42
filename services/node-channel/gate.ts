// What a request must pass before it is served, in this order: a path of the service, the method, then Enroll (without
// a certificate) or an accepted certificate. Refusals are answered in the Connect protocol and recorded for the node.
import type { TLSSocket } from 'node:tls';
import { errorCodeOf } from '../../contract/errors.ts';
import type { CertificateAuthority } from '../../mixins/certificate-authority.ts';
import { NodeService } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { asUnavailable } from '../../runtime/write.ts';
import { type Authenticator, type RefusalReason, Refused } from './authenticator.ts';
import type { CallContext } from './calls.ts';
import type { Exchange } from './exchange.ts';
import { canonicalAddress } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import type { NodeReports } from './node-reports.ts';
import type { Propagation } from './propagation.ts';
import { StatsIngest } from './stats-ingest.ts';
import { Turns } from './turns.ts';
import { type Caller, createUnaryHandlers, type Handler } from './unary.ts';
import { VitalIngest } from './vital-ingest.ts';
import { VitalWatches } from './vital-watches.ts';
import { endFrame } from './watch/frames.ts';
import type { WatchHub } from './watch/watch-hub.ts';
import { BadWatchRequest, readWatchRequest, STREAM_TYPE } from './watch/watch-request.ts';

const CALL_MS = 60_000;
const SWEEP_MS = 5_000;
/** Of the channel pool's six connections. */
const PULLS = 3;
/** Reports stored at once: a thousand nodes under attack leave connections to everybody else. */
const WRITES = 2;
const MAX_WAITING = 20_000;
/** Of one node: the others wait for at most one of them. */
const MAX_WAITING_EACH = 16;

const METHODS = new Map(NodeService.methods.map((method) => [`/${NodeService.typeName}/${method.name}`, method.name]));

interface Problem {
  status: number;
  code: string;
  message: string;
}

const UNAVAILABLE: Problem = { status: 503, code: 'unavailable', message: 'the console is temporarily unavailable' };

export class Gate {
  readonly #runtime: Runtime;
  readonly #authenticator: Authenticator;
  readonly #hub: WatchHub;
  readonly #reports: NodeReports;
  /** Calls under way and when they began. */
  readonly #open = new Map<Exchange, number>();
  readonly #remoteAddresses = new WeakMap<TLSSocket, string | null>();
  /** Reason that a connection was last refused for. */
  readonly #refused = new WeakMap<TLSSocket, RefusalReason>();
  readonly #stranger: Handler;
  readonly #node: Handler;
  readonly #sweep: NodeJS.Timeout;
  readonly #stats: StatsIngest;
  readonly #vitals: VitalIngest;

  constructor(
    runtime: Runtime,
    authority: CertificateAuthority,
    authenticator: Authenticator,
    hub: WatchHub,
    reports: NodeReports,
    propagation: Propagation,
    consoleAddresses: () => string[],
  ) {
    this.#runtime = runtime;
    this.#authenticator = authenticator;
    this.#hub = hub;
    this.#reports = reports;
    this.#stats = new StatsIngest(runtime);
    const pulls = new Turns({ running: PULLS, waiting: MAX_WAITING, waitingEach: MAX_WAITING_EACH });
    const writes = new Turns({ running: WRITES, waiting: MAX_WAITING, waitingEach: MAX_WAITING_EACH });
    const watches = new VitalWatches(runtime.pools.channel, runtime.log);
    this.#vitals = new VitalIngest(runtime, watches);
    const context: CallContext = {
      runtime,
      hub,
      reports,
      propagation,
      stats: this.#stats,
      vitals: this.#vitals,
      watches,
      pulls,
      writes,
      consoleAddresses,
    };
    const handlers = createUnaryHandlers(context, authority);
    this.#stranger = handlers.stranger;
    this.#node = handlers.node;
    this.#sweep = setInterval(() => this.#endLong(), SWEEP_MS);
  }

  /** Resolves once the batches that were taken are stored. */
  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([this.#stats.stop(), this.#vitals.stop()]);
  }

  handle(exchange: Exchange): void {
    this.#admit(exchange).catch((error) => {
      const known = asUnavailable(error);
      if (errorCodeOf(known) !== 'SERVICE_UNAVAILABLE') {
        this.#runtime.log.error({ err: error, path: exchange.path }, 'node channel request failed');
      }
      refuse(exchange, UNAVAILABLE);
    });
  }

  async #admit(exchange: Exchange): Promise<void> {
    const method = METHODS.get(exchange.path);
    if (method === undefined) {
      answer(exchange, 404, { error: 'not_found' });
      return;
    }
    if (exchange.method !== 'POST') {
      answer(exchange, 405, { error: 'method_not_allowed' }, { allow: 'POST' });
      return;
    }
    const remoteAddress = this.#remoteAddressOf(exchange.socket);
    if (method === 'Enroll') {
      this.#serve(this.#stranger, exchange, { node: null, remoteAddress });
      return;
    }
    const node = await this.#identify(exchange, method === 'RenewCertificate');
    if (!node) return;
    if (method === 'Watch') await this.#watch(node, exchange);
    else this.#serve(this.#node, exchange, { node, remoteAddress });
  }

  async #identify(exchange: Exchange, renewing: boolean): Promise<NodeIdentity | null> {
    try {
      return await this.#authenticator.identify(exchange.socket, { renewing });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { reason, nodeId } = error;
      this.#logRefusal(exchange.socket, reason, nodeId);
      // A disabled node is no mistake of its certificate.
      if (nodeId !== null && reason !== 'NODE_DISABLED') this.#reports.refused(nodeId, reason);
      const disabled = reason === 'NODE_DISABLED';
      refuse(exchange, {
        status: disabled ? 403 : 401,
        code: disabled ? 'permission_denied' : 'unauthenticated',
        message: reason,
      });
      return null;
    }
  }

  /** Once for each connection and reason: anybody can ask again as fast as he likes. */
  #logRefusal(socket: TLSSocket, reason: RefusalReason, nodeId: string | null): void {
    if (this.#refused.get(socket) === reason) return;
    this.#refused.set(socket, reason);
    this.#runtime.log.info({ nodeId, reason, remoteAddress: socket.remoteAddress }, 'node refused');
  }

  #serve(handler: Handler, exchange: Exchange, caller: Caller): void {
    this.#open.set(exchange, Date.now());
    exchange.onClose(() => this.#open.delete(exchange));
    handler(exchange, caller);
  }

  /** A body that never ends, or an answer nobody reads, would hold a call for ever. */
  #endLong(): void {
    const before = Date.now() - CALL_MS;
    for (const [exchange, since] of this.#open) {
      // In the order of their beginnings.
      if (since > before) return;
      this.#open.delete(exchange);
      exchange.destroy();
    }
  }

  async #watch(node: NodeIdentity, exchange: Exchange): Promise<void> {
    if (exchange.headers['content-type'] !== STREAM_TYPE) {
      answer(exchange, 415, { error: 'unsupported_media_type' });
      return;
    }
    try {
      const { config, bans, acme } = await readWatchRequest(exchange.body);
      const sink = exchange.open(200, { 'content-type': STREAM_TYPE });
      const stream = await this.#hub.open(node, sink, { config, bans, acme });
      if (!stream) sink.end(endFrame({ code: 'not_found', message: 'the cluster was deleted' }));
    } catch (error) {
      if (!(error instanceof BadWatchRequest)) throw error;
      refuse(exchange, { status: 400, code: 'invalid_argument', message: error.message });
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
}

/** A Connect error: an end-of-stream message for streams, a JSON body for calls. */
function refuse(exchange: Exchange, { status, code, message }: Problem): void {
  if (exchange.over) exchange.destroy();
  else if (exchange.headers['content-type'] === STREAM_TYPE) {
    exchange.reply(200, { 'content-type': STREAM_TYPE }, endFrame({ code, message }));
  } else answer(exchange, status, { code, message });
}

function answer(exchange: Exchange, status: number, body: object, headers: Record<string, string> = {}): void {
  const bytes = Buffer.from(JSON.stringify(body));
  exchange.reply(status, { 'content-type': 'application/json', ...headers }, bytes);
}
