// The node channel's listener: HTTP/2 (HTTP/1.1 accepted) with mutual TLS. Every request passes the same gate before
// anything of its body is read: a known path, then Enroll or an accepted certificate.
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { ensureCertificateAuthority } from '../../mixins/certificate-authority.ts';
import { type Address, DRAIN_MS, type Listener } from '../../mixins/listener.ts';
import { nodeAccessChannel } from '../../mixins/node-access.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { deleteOldSiteMinutes } from '../../models/site-request-minute.ts';
import { Authenticator } from './authenticator.ts';
import { ChannelCertificate } from './channel-certificate.ts';
import { Gate } from './gate.ts';
import { NodeReports } from './node-reports.ts';
import type { Request, Response } from './unary.ts';
import { REFUSED, WatchHub } from './watch/watch-hub.ts';

const REFRESH_MS = 2_000;
const RETENTION_MS = 3_600_000;
const IDLE_MS = 120_000;
const HANDSHAKE_MS = 10_000;
const SESSION_PING_MS = 15_000;
const SESSION_PING_ANSWER_MS = 10_000;
const MAX_CONNECTIONS = 10_000;
/** A node needs one stream for Watch and a few for calls. */
const MAX_STREAMS = 32;

export class ChannelServer implements Listener {
  readonly name = 'node-channel';
  readonly #runtime: Runtime;
  readonly #hub: WatchHub;
  readonly #reports: NodeReports;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #timers: NodeJS.Timeout[] = [];
  #server: Http2SecureServer | null = null;
  #refreshing: Promise<void> | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#hub = new WatchHub(runtime);
    this.#reports = new NodeReports(runtime);
  }

  async open(): Promise<Address> {
    const { env, log } = this.#runtime;
    const authority = await ensureCertificateAuthority(this.#runtime);
    const certificate = new ChannelCertificate(this.#runtime, authority);
    await certificate.refresh(new Date());
    const authenticator = new Authenticator(this.#runtime, authority);
    const gate = new Gate(this.#runtime, authority, authenticator, this.#hub, this.#reports, () => certificate.hosts);
    const server = createSecureServer({
      ...certificate.context,
      ca: authority.certificatePem,
      allowHTTP1: true,
      requestCert: true,
      // The gate judges certificates itself, so that a refusal can be explained and recorded.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: 256 * 1024 },
      maxSessionMemory: 10,
    });
    server.maxConnections = MAX_CONNECTIONS;
    this.#server = server;
    server.on('request', (request: Request, response: Response) => gate.handle(request, response));
    server.on('session', (session) => this.#watchSession(session));
    server.on('secureConnection', (socket: TLSSocket) => socket.setNoDelay(true));
    server.on('tlsClientError', (err) => log.debug({ err }, 'node channel handshake failed'));
    // A peer that breaks off is nobody's fault; without a listener it would end the process.
    server.on('sessionError', (err) => log.debug({ err }, 'node channel session failed'));
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
    this.#keepFresh(authenticator, certificate);
    const { address: host, port } = server.address() as { address: string; port: number };
    return { host, port };
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const server = this.#server;
    const closed = new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
    // Streams first: nodes look for another process while calls still end here.
    await this.#hub.stop();
    for (const session of this.#sessions) session.close();
    const forced = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
      (server as unknown as { closeAllConnections?: () => void } | null)?.closeAllConnections?.();
    }, DRAIN_MS);
    await closed;
    clearTimeout(forced);
    await this.#refreshing;
    await this.#reports.stop();
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
        this.#runtime.log.warn({ err }, 'refreshing node identities failed');
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
    );
  }

  async #deleteOld(): Promise<void> {
    try {
      while ((await deleteOldSiteMinutes(this.#runtime.pools.channel)) > 0) {
        if (this.#runtime.stopping.aborted) return;
      }
    } catch (err) {
      this.#runtime.log.warn({ err }, 'deleting old statistics failed');
    }
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
