// What a request must pass before it is served, in this order: a path of the service, the method, then Enroll (without
// a certificate) or an accepted certificate. Refusals are answered in the Connect protocol and recorded for the node.
import type { TLSSocket } from 'node:tls';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorCodeOf } from '../../contract/errors.ts';
import type { CertificateAuthority } from '../../mixins/certificate-authority.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { asUnavailable } from '../../runtime/write.ts';
import { type Authenticator, type RefusalReason, Refused } from './authenticator.ts';
import { Budgets, UNCOUNTED } from './budgets.ts';
import type { CallContext } from './calls.ts';
import type { Exchange } from './exchange.ts';
import { canonicalAddress } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import { LogIngest } from './log-ingest.ts';
import { LogTails } from './log-tails.ts';
import { declaredMethods, type Method, mayCall } from './methods.ts';
import type { NodeReports } from './node-reports.ts';
import type { Propagation } from './propagation.ts';
import { StatsIngest } from './stats-ingest.ts';
import type { Strangers } from './strangers.ts';
import { Turns } from './turns.ts';
import { type Caller, createUnaryHandlers, type Handler, NO_CONNECTION } from './unary.ts';
import { VitalIngest } from './vital-ingest.ts';
import { VitalWatches } from './vital-watches.ts';
import { endFrame } from './watch/frames.ts';
import type { WatchHub } from './watch/watch-hub.ts';
import { BadWatchRequest, readWatchRequest, STREAM_TYPE } from './watch/watch-request.ts';

const CALL_MS = 60_000;
const SWEEP_MS = 5_000;
/** Of the channel pool's six connections. */
const PULLS = 3;
/** Of the same, for feeds by name. */
const REPAIRS = 1;
/** Reports stored at once: a thousand nodes under attack leave connections to everybody else. */
const WRITES = 2;
const MAX_WAITING = 20_000;
/** Of one node: the others wait for at most one of them. */
const MAX_WAITING_EACH = 16;

interface Problem {
  status: number;
  code: string;
  message: string;
}

const UNAVAILABLE: Problem = { status: 503, code: 'unavailable', message: 'the console is temporarily unavailable' };

export class Gate {
  readonly #methods = declaredMethods();
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
  readonly #strangers: Strangers;
  readonly #budgets: Budgets;
  readonly #stats: StatsIngest;
  readonly #logs: LogIngest;
  readonly #vitals: VitalIngest;

  constructor(
    runtime: Runtime,
    authority: CertificateAuthority,
    authenticator: Authenticator,
    hub: WatchHub,
    reports: NodeReports,
    propagation: Propagation,
    strangers: Strangers,
    consoleAddresses: () => string[],
  ) {
    this.#strangers = strangers;
    this.#runtime = runtime;
    this.#authenticator = authenticator;
    this.#hub = hub;
    this.#reports = reports;
    this.#budgets = new Budgets(runtime, (nodeId, lane) => reports.overBudget(nodeId, lane));
    this.#stats = new StatsIngest(runtime);
    this.#logs = new LogIngest(runtime);
    const pulls = new Turns({ running: PULLS, waiting: MAX_WAITING, waitingEach: MAX_WAITING_EACH });
    const repairs = new Turns({ running: REPAIRS, waiting: MAX_WAITING, waitingEach: MAX_WAITING_EACH });
    const writes = new Turns({ running: WRITES, waiting: MAX_WAITING, waitingEach: MAX_WAITING_EACH });
    // Each takes the same lock.
    const losses = new Turns({ running: 1, waiting: MAX_WAITING, waitingEach: 1 });
    const watches = new VitalWatches(runtime.pools.channel, runtime.log);
    this.#vitals = new VitalIngest(runtime, watches);
    const context: CallContext = {
      runtime,
      hub,
      reports,
      propagation,
      stats: this.#stats,
      logs: this.#logs,
      tails: new LogTails(runtime, hub),
      vitals: this.#vitals,
      watches,
      pulls,
      repairs,
      writes,
      losses,
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
    await Promise.all([this.#stats.stop(), this.#logs.stop(), this.#vitals.stop()]);
  }

  handle(exchange: Exchange): void {
    this.#admit(exchange).catch((error) => {
      if (error instanceof ConnectError && error.code === Code.ResourceExhausted) {
        refuse(exchange, { status: 429, code: 'resource_exhausted', message: error.rawMessage });
        return;
      }
      const known = asUnavailable(error);
      if (errorCodeOf(known) !== 'SERVICE_UNAVAILABLE') {
        this.#runtime.log.error({ err: error, path: exchange.path }, 'node channel request failed');
      }
      refuse(exchange, UNAVAILABLE);
    });
  }

  /** A connection that has a valid certificate is no stranger's, also before its first call. */
  greet(socket: TLSSocket): void {
    this.#authenticator.identify(socket, { renewing: true }).then(
      ({ nodeId }) => this.#strangers.known(socket, nodeId),
      // Its calls are told why.
      () => undefined,
    );
  }

  async #admit(exchange: Exchange): Promise<void> {
    const method = this.#methods.get(exchange.path);
    if (method === undefined) {
      answer(exchange, 404, { error: 'not_found' });
      return;
    }
    if (exchange.method !== 'POST') {
      answer(exchange, 405, { error: 'method_not_allowed' }, { allow: 'POST' });
      return;
    }
    const remoteAddress = this.#remoteAddressOf(exchange.socket);
    if (mayCall(method, ['stranger'])) {
      this.#serve(this.#stranger, exchange, {
        node: null,
        remoteAddress,
        allowance: UNCOUNTED,
        connection: {
          hold: () => this.#strangers.hold(exchange.socket),
          known: (nodeId) => this.#strangers.known(exchange.socket, nodeId),
        },
      });
      return;
    }
    const node = await this.#identify(exchange, method.name === 'RenewCertificate');
    if (!node) return;
    if (!mayCall(method, node.principals)) {
      refuse(exchange, { status: 403, code: 'permission_denied', message: 'METHOD_NOT_ALLOWED' });
      return;
    }
    if (method.name === 'Watch') await this.#watch(node, exchange);
    else await this.#serveNode(node, method, exchange, remoteAddress);
  }

  async #identify(exchange: Exchange, renewing: boolean): Promise<NodeIdentity | null> {
    try {
      const node = await this.#authenticator.identify(exchange.socket, { renewing });
      this.#strangers.known(exchange.socket, node.nodeId);
      return node;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { reason, nodeId } = error;
      this.#logRefusal(exchange.socket, reason, nodeId);
      // A disabled node is no mistake of its certificate.
      if (nodeId !== null && reason !== 'NODE_DISABLED') this.#reports.refused(nodeId, reason);
      const disabled = reason === 'NODE_DISABLED';
      // Its node was deleted, or its certificate replaced, since the connection began.
      if (!disabled) this.#strangers.add(exchange.socket);
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
    this.#limitTime(exchange);
    handler(exchange, caller);
  }

  /** The body is not read before the node has a place for the call, which it leaves when the response is sent. */
  async #serveNode(
    node: NodeIdentity,
    { lane }: Method,
    exchange: Exchange,
    remoteAddress: string | null,
  ): Promise<void> {
    // Its end would not be heard of any more.
    if (exchange.over) return;
    this.#limitTime(exchange);
    const allowance = await this.#budgets.admit(node.nodeId, lane, (end) => exchange.onClose(end));
    this.#node(exchange, { node, remoteAddress, allowance, connection: NO_CONNECTION });
  }

  #limitTime(exchange: Exchange): void {
    this.#open.set(exchange, Date.now());
    exchange.onClose(() => this.#open.delete(exchange));
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
    const ends: (() => void)[] = [];
    try {
      // Until it is open: a stream costs no call, and a second one ends the first.
      await this.#budgets.admit(node.nodeId, 'control', (end) => ends.push(end));
      const start = await readWatchRequest(exchange.body);
      const sink = exchange.open(200, { 'content-type': STREAM_TYPE });
      const stream = await this.#hub.open(node, sink, start);
      if (!stream) sink.end(endFrame({ code: 'not_found', message: 'the cluster was deleted' }));
    } catch (error) {
      if (!(error instanceof BadWatchRequest)) throw error;
      refuse(exchange, { status: 400, code: 'invalid_argument', message: error.message });
    } finally {
      for (const end of ends) end();
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
