// Visitors of a site over TLS, many at once: over connections that are kept, with HTTP/1.1 and HTTP/2, and over new ones.
// They come at a steady pace, whether answers are fast or not; where a machine cannot keep up they wait for one another.
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import https from 'node:https';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Of twenty visitors one has a new connection of HTTP/1.1; of two hundred, one of HTTP/2. */
const NEW_HTTP1 = 20;
const NEW_HTTP2 = 200;
const SESSIONS = 4;
const KEPT = 16;
/** Nobody more comes while so many wait. */
const MOST_WAITING = 400;
const EVERY_MS = 10;
const ANSWERED_MS = 30_000;
const NAMED_FAILURES = 20;
const SECOND_MS = 1000;

export interface VisitedSite {
  port: number;
  host: string;
  /** The authority of its certificates. */
  ca: string;
  perSecond: number;
}

export class TlsVisitors {
  /** Requests that were answered with 200, by protocol. */
  readonly answered = { kept: 0, new: 0, http2: 0 };
  /** The first of what went wrong. */
  readonly failures: string[] = [];
  failed = 0;
  /** SHA-256 of the certificates that new connections were shown. */
  readonly fingerprints = new Set<string>();
  readonly #site: VisitedSite;
  readonly #agent = new https.Agent({ keepAlive: true, maxSockets: KEPT, scheduling: 'fifo' });
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #waiting = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  /** When each of the latest answers came. */
  #answers: number[] = [];
  #visits = 0;

  constructor(site: VisitedSite) {
    this.#site = site;
    let due = 0;
    this.#timer = setInterval(() => {
      for (due += (site.perSecond * EVERY_MS) / 1000; due >= 1; due--) {
        if (this.#waiting.size < MOST_WAITING) this.#visit();
      }
    }, EVERY_MS);
  }

  get total(): number {
    const { kept, new: fresh, http2 } = this.answered;
    return kept + fresh + http2;
  }

  /** Answers within the last second: how many really come at once, whatever was meant to. */
  get rate(): number {
    const since = performance.now() - SECOND_MS;
    this.#answers = this.#answers.filter((at) => at >= since);
    return this.#answers.length;
  }

  /** Nobody more comes; resolves when all have been answered. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#waiting);
    this.#agent.destroy();
    for (const session of this.#sessions) session.destroy();
  }

  #visit(): void {
    const number = this.#visits++;
    const visit = (
      number % NEW_HTTP1 === 0
        ? this.#http1('new')
        : number % 2 === 0
          ? this.#http1('kept')
          : this.#http2(number % NEW_HTTP2 === 1)
    ).catch((error: unknown) => {
      this.failed += 1;
      if (this.failures.length < NAMED_FAILURES) this.failures.push(String(error));
    });
    this.#waiting.add(visit);
    void visit.then(() => {
      this.#waiting.delete(visit);
      this.#answers.push(performance.now());
      if (this.#answers.length > 2 * this.#site.perSecond) void this.rate;
    });
  }

  #http1(kind: 'kept' | 'new'): Promise<void> {
    const { port, host, ca } = this.#site;
    return new Promise((resolve, reject) => {
      const request = https.request(
        {
          ...{ host: '127.0.0.1', port, servername: host, ca, headers: { host }, timeout: ANSWERED_MS },
          agent: kind === 'kept' ? this.#agent : false,
        },
        (response) => {
          if (kind === 'new') this.#saw(response.socket as TLSSocket);
          response.on('error', reject).on('end', () => {
            if (response.statusCode !== 200) return reject(new Error(`${kind}: ${response.statusCode}`));
            this.answered[kind] += 1;
            resolve();
          });
          response.resume();
        },
      );
      request.on('timeout', () => request.destroy(new Error('no answer')));
      request.on('error', (error) => reject(new Error(`${kind}: ${error}`)));
      request.end();
    });
  }

  #http2(anew: boolean): Promise<void> {
    const session = this.#session(anew);
    return new Promise((resolve, reject) => {
      const failed = (error: unknown) => reject(new Error(`http2: ${error}`));
      session.once('error', failed);
      const stream = session.request({ ':path': '/', ':authority': this.#site.host });
      stream.setTimeout(ANSWERED_MS, () => stream.destroy(new Error('no answer')));
      let status: unknown;
      stream.on('response', (headers) => {
        status = headers[':status'];
      });
      stream.on('error', failed).on('close', () => {
        session.off('error', failed);
        if (status !== 200) return failed(status);
        this.answered.http2 += 1;
        resolve();
      });
      stream.resume();
    });
  }

  /** One of the sessions in turn; the oldest gives way to a new one and ends with its last stream. */
  #session(anew: boolean): ClientHttp2Session {
    if (anew || this.#sessions.length < SESSIONS) {
      if (this.#sessions.length === SESSIONS) this.#sessions.shift()!.close();
      const { port, host, ca } = this.#site;
      const made = connectHttp2(`https://${host}:${port}`, {
        createConnection: () => {
          const socket = connectTls({ host: '127.0.0.1', port, servername: host, ca, ALPNProtocols: ['h2'] });
          socket.on('secureConnect', () => this.#saw(socket));
          return socket;
        },
      });
      made.setMaxListeners(MOST_WAITING);
      made.on('error', () => undefined);
      this.#sessions.push(made);
    }
    return this.#sessions[this.#visits % this.#sessions.length]!;
  }

  #saw(socket: TLSSocket): void {
    // A session that was resumed shows no certificate.
    const { fingerprint256 } = socket.getPeerCertificate();
    if (fingerprint256) this.fingerprints.add(fingerprint256.replaceAll(':', '').toLowerCase());
  }
}
