// The node channel's listener: HTTP/2 (HTTP/1.1 accepted) with mutual TLS. Every request passes the same gate before
// anything of its body is read: a known path, then Enroll or an accepted certificate.
import { createServer as createHttp1Server, type Server as Http1Server } from 'node:http';
import { performServerHandshake, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { Gauge } from 'prom-client';
import { ensureCertificateAuthority } from '../../mixins/certificate-authority.ts';
import { writePropagation } from '../../models/overview/propagation.ts';
import { deleteOldSiteMinutes } from '../../models/security/site-request-minute.ts';
import { connectionLimit } from '../../runtime/connection-limit.ts';
import { type Address, DRAIN_MS, type Listener } from '../../runtime/listener.ts';
import { nodeAccessChannel } from '../../runtime/node-access.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Authenticator } from './authenticator.ts';
import { ChannelCertificate } from './channel-certificate.ts';
import { Http1Exchange, Http2Exchange } from './exchange.ts';
import { watchLagging } from './feed-metrics.ts';
import { Gate } from './gate.ts';
import { NodeReports } from './node-reports.ts';
import { Propagation } from './propagation.ts';
import { Strangers } from './strangers.ts';
import { TaskBell } from './tasks/task-bell.ts';
import { REFUSED, WatchHub } from './watch/watch-hub.ts';

const REFRESH_MS = 2_000;
const RETENTION_MS = 3_600_000;
const PROPAGATION_MS = 500;
const IDLE_MS = 120_000;
const HANDSHAKE_MS = 5_000;
/** For the head of an HTTP/1.1 request, however slowly it trickles in; a stranger ends a second later. */
const HEADERS_MS = 3_000;
const HEADERS_CHECK_MS = 1_000;
const SESSION_PING_MS = 15_000;
const SESSION_PING_ANSWER_MS = 10_000;
/** Of 10,000 nodes, and of the strangers, who have no part in those. */
const MAX_CONNECTIONS = 12_000;
/** A node needs one stream for Watch and a few for calls. */
const MAX_STREAMS = 32;

export class ChannelServer implements Listener {
  readonly name = 'node-channel';
  readonly #runtime: Runtime;
  readonly #hub: WatchHub;
  readonly #reports: NodeReports;
  readonly #propagation = new Propagation();
  readonly #strangers: Strangers;
  readonly #tasks: TaskBell;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #http1: Http1Server;
  readonly #http1Sockets = new Set<TLSSocket>();
  #server: TlsServer | null = null;
  #gate: Gate | null = null;
  #refreshing: Promise<void> | null = null;
  #measuring: Promise<void> = Promise.resolve();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#reports = new NodeReports(runtime);
    this.#strangers = new Strangers(runtime);
    this.#hub = new WatchHub(runtime, (nodeId) => this.#reports.forget(nodeId), this.#propagation);
    this.#tasks = new TaskBell(runtime, this.#hub);
    watchMetrics(runtime, this.#hub);
    watchLagging(runtime, this.#hub, this.#reports);
    // Never listens: it is handed the connections that chose HTTP/1.1. It begins to keep its time limits when it is told
    // that it listens.
    this.#http1 = createHttp1Server({
      keepAliveTimeout: IDLE_MS,
      headersTimeout: HEADERS_MS,
      connectionsCheckingInterval: HEADERS_CHECK_MS,
    });
    this.#http1.setTimeout(IDLE_MS);
    this.#http1.emit('listening');
  }

  async open(): Promise<Address> {
    const { env, log } = this.#runtime;
    const authority = await ensureCertificateAuthority(this.#runtime);
    const certificate = new ChannelCertificate(this.#runtime, authority);
    await certificate.refresh(new Date());
    const authenticator = new Authenticator(this.#runtime, authority);
    const hosts = () => certificate.hosts;
    const gate = new Gate(
      this.#runtime,
      authority,
      authenticator,
      this.#hub,
      this.#reports,
      this.#propagation,
      this.#strangers,
      hosts,
    );
    this.#gate = gate;
    this.#http1.on('request', (request, response) => gate.handle(new Http1Exchange(request, response)));
    const server = createTlsServer({
      ...certificate.context,
      ca: authority.certificatePem,
      requestCert: true,
      // The gate judges certificates itself, so that a refusal can be explained and recorded.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: HANDSHAKE_MS,
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', connectionLimit(this.#runtime, this.name, env.nodeApiConnectionsPerAddress));
    server.on('connection', (socket: Socket) => this.#strangers.add(socket));
    this.#server = server;
    server.on('secureConnection', (socket) => this.#accept(socket, gate));
    server.on('tlsClientError', (err) => log.debug({ err }, 'node channel handshake failed'));
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) =>
        reject(
          new Error(`cannot listen on ${env.nodeApiHost}:${env.nodeApiPort} (NODE_API_HOST, NODE_API_PORT)`, { cause }),
        ),
      );
      server.listen(env.nodeApiPort, env.nodeApiHost, resolve);
    });
    server.on('error', (err) => log.error({ err }, 'node channel listener failed'));
    this.#hub.start();
    this.#tasks.start();
    this.#keepFresh(authenticator, certificate);
    const { address: host, port } = server.address() as { address: string; port: number };
    return { host, port };
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#strangers.stop();
    await this.#tasks.stop();
    const server = this.#server;
    const closed = new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
    // Streams first: nodes look for another process while calls still end here.
    await this.#hub.stop();
    for (const session of this.#sessions) session.close();
    this.#http1.close();
    const forced = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#http1Sockets) socket.destroy();
    }, DRAIN_MS);
    await closed;
    clearTimeout(forced);
    await this.#gate?.stop();
    await this.#refreshing;
    await this.#reports.stop();
    this.#writePropagation();
    await this.#measuring;
  }

  /** Certificates, statuses and the channel's own names: at every hint, and every 2 s without one. */
  #keepFresh(authenticator: Authenticator, certificate: ChannelCertificate): void {
    const refresh = async (): Promise<void> => {
      try {
        // An open stream counts as use.
        for (const node of this.#hub.nodes()) authenticator.touch(node);
        await authenticator.refresh();
        this.#hub.endWhere((node) => !authenticator.isAccepted(node), REFUSED);
        if (await certificate.refresh(new Date())) this.#server?.setSecureContext(certificate.context);
      } catch (err) {
        this.#runtime.log.warn({ err }, 'node identities not refreshed');
      }
    };
    const refreshOnce = (): void => {
      this.#refreshing ??= refresh().finally(() => {
        this.#refreshing = null;
      });
    };
    const hints = this.#runtime.newRedis();
    hints.subscribe(nodeAccessChannel(this.#runtime)).catch(() => undefined);
    hints.on('message', refreshOnce);
    this.#timers.push(
      setInterval(refreshOnce, REFRESH_MS),
      setInterval(() => this.#deleteOld(), RETENTION_MS),
      setInterval(() => this.#writePropagation(), PROPAGATION_MS),
    );
  }

  #writePropagation(): void {
    const batches = this.#propagation.take(Date.now());
    if (batches.length === 0) return;
    this.#measuring = this.#measuring
      .then(() => writePropagation(this.#runtime.pools.channel, this.#runtime.feeds, batches))
      // Figures, and only the latest: what is lost is not tried again.
      .catch((err) => this.#runtime.log.warn({ err }, 'propagation figures not written'));
  }

  async #deleteOld(): Promise<void> {
    try {
      while ((await deleteOldSiteMinutes(this.#runtime.pools.channel)) > 0) {
        if (this.#runtime.stopping.aborted) return;
      }
    } catch (err) {
      this.#runtime.log.warn({ err }, 'old statistics not deleted');
    }
  }

  #accept(socket: TLSSocket, gate: Gate): void {
    socket.setNoDelay(true);
    gate.greet(socket);
    // A peer that breaks off is nobody's fault; without a listener it would end the process.
    socket.on('error', (err) => this.#runtime.log.debug({ err }, 'node channel connection failed'));
    if (socket.alpnProtocol !== 'h2') {
      this.#http1Sockets.add(socket);
      socket.once('close', () => this.#http1Sockets.delete(socket));
      this.#http1.emit('connection', socket);
      return;
    }
    const session = performServerHandshake(socket, {
      settings: { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: 256 * 1024 },
      maxSessionMemory: 10,
    });
    session.on('error', (err) => this.#runtime.log.debug({ err }, 'node channel session failed'));
    session.on('stream', (stream, headers) => gate.handle(new Http2Exchange(stream, headers, socket)));
    this.#watchSession(session);
  }

  /** Idle and dead peers: a session without traffic ends after 2 min, one that leaves a ping unanswered after 10 s. */
  #watchSession(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.setTimeout(IDLE_MS, () => session.destroy());
    const ping = setInterval(() => {
      if (session.destroyed) return;
      const dead = setTimeout(() => session.destroy(), SESSION_PING_ANSWER_MS);
      const sent = session.ping(() => clearTimeout(dead));
      if (!sent) clearTimeout(dead);
    }, SESSION_PING_MS);
    session.once('close', () => {
      clearInterval(ping);
      this.#sessions.delete(session);
    });
  }
}

function watchMetrics(runtime: Runtime, hub: WatchHub): void {
  new Gauge({
    name: 'svc_node_channel_streams',
    help: 'Nodes connected to this process.',
    registers: [runtime.metrics],
    collect() {
      this.set(hub.streamCount);
    },
  });
}
