// Visitors that send what HTTP/1 knows over sockets of their own, and know what each site was sent: kept connections,
// uploads, chunks, several requests at once, bad and unfinished ones, upgrades. And the origin that answers them.
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

const TIMEOUT_MS = 120_000;
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
].join('\r\n');

/** Reads what it is sent and answers with as many bytes as it is asked for. It echoes in a WebSocket. */
export async function trafficOrigin(): Promise<{ port: number; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url!, 'http://origin');
    const size = Number(searchParams.get('size') ?? 0);
    request.on('end', () => {
      if (searchParams.has('chunked')) response.flushHeaders();
      else response.setHeader('content-length', size);
      response.end('x'.repeat(size));
    });
    request.on('error', () => response.destroy());
    request.resume();
  });
  server.on('upgrade', (_request, socket: Socket, head) => {
    socket.on('error', () => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.write(head);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, stop: () => stop(server) };
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Requests and bytes that a site was sent; of no site: "". */
export interface Sent {
  requests: number;
  bytes: number;
}

export interface TrafficOptions {
  /** Of what the visitors connect to, on this machine. */
  port: number;
  /** The first domain of each site. */
  domains: readonly string[];
  /** Answers that nobody reads to their end have so many bytes. */
  abortedBytes: number;
}

export class Traffic {
  readonly #options: TrafficOptions;
  /** By domain. */
  readonly sent = new Map<string, Sent>();
  /** What visits failed with. */
  readonly failures: string[] = [];
  requests = 0;

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  /** Visitors one after the other in each of `workers` rows, with a pause between, until `enough`. */
  async run(workers: number, pauseMs: number, enough: () => boolean): Promise<void> {
    await Promise.all(
      Array.from({ length: workers }, async () => {
        while (!enough()) {
          await this.visit().catch((error) => this.failures.push(String(error)));
          if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      }),
    );
  }

  /** One request; answers its status. Rejects when there is no answer. */
  async ask(domain: string): Promise<number> {
    const talk = await this.#dial();
    try {
      this.#say(talk, domain, `HEAD /?size=9 HTTP/1.1\r\nHost: ${domain}\r\nConnection: close\r\n\r\n`);
      return await talk.answer('HEAD');
    } finally {
      talk.socket.end();
    }
  }

  /** One connection of some kind. Rejects when it did not go as it should. */
  async visit(): Promise<void> {
    const talk = await this.#dial();
    try {
      await VISITS[random(VISITS.length)]!(talk, this.#speaker(talk));
    } finally {
      if (!talk.socket.destroyed) talk.socket.end();
    }
  }

  #dial(): Promise<Talk> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#options.port, '127.0.0.1');
      socket.setNoDelay();
      socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('nothing came for too long')));
      socket.on('error', reject);
      socket.on('connect', () => resolve(new Talk(socket)));
    });
  }

  #speaker(talk: Talk): Speaker {
    const { domains, abortedBytes } = this.#options;
    return {
      abortedBytes,
      domain: () => domains[random(domains.length)]!,
      say: (domain, text) => this.#say(talk, domain, text),
      more: (domain, text) => this.#more(talk, domain, text),
    };
  }

  #say(talk: Talk, domain: string, text: string): void {
    this.requests += 1;
    this.#sentTo(domain).requests += 1;
    this.#more(talk, domain, text);
  }

  #more(talk: Talk, domain: string, text: string): void {
    this.#sentTo(domain).bytes += text.length;
    if (talk.socket.writable) talk.socket.write(text, 'latin1');
  }

  #sentTo(domain: string): Sent {
    let sent = this.sent.get(domain);
    if (!sent) {
      sent = { requests: 0, bytes: 0 };
      this.sent.set(domain, sent);
    }
    return sent;
  }
}

/** What one visit says on its connection, noted for a site or for none. */
interface Speaker {
  abortedBytes: number;
  domain(): string;
  /** A request begins. */
  say(domain: string, text: string): void;
  /** It goes on. */
  more(domain: string, text: string): void;
}

const get = (domain: string, size: number): string =>
  `GET /?size=${size}${random(3) === 0 ? '&chunked' : ''} HTTP/1.1\r\nHost: ${domain}\r\n` +
  `X-Filling: ${'f'.repeat(random(300))}\r\n\r\n`;
const post = (domain: string, length: number, text: string, size = 0): string =>
  `POST /?size=${size} HTTP/1.1\r\nHost: ${domain}\r\nContent-Length: ${length}\r\n\r\n${text}`;

const VISITS: readonly ((talk: Talk, speaker: Speaker) => Promise<void>)[] = [
  async function oneAfterTheOther(talk, { domain, say }) {
    for (let left = 1 + random(6); left > 0; left--) {
      const to = domain();
      say(to, get(to, random(9000)));
      await talk.expect('GET', 200);
    }
  },
  async function anUpload(talk, { domain, say }) {
    const [first, second, size] = [domain(), domain(), random(20_000)];
    say(first, post(first, size, 'u'.repeat(size), size));
    await talk.expect('POST', 200);
    say(second, get(second, 10));
    await talk.expect('GET', 200);
  },
  async function anUploadInChunks(talk, { domain, say, more }) {
    const to = domain();
    say(to, `PUT /?size=7 HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    for (let left = random(5); left > 0; left--) {
      const length = 1 + random(4000);
      more(to, `${length.toString(16)};extension\r\n${'c'.repeat(length)}\r\n`);
    }
    more(to, '0\r\nTrailer: x\r\n\r\n');
    await talk.expect('PUT', 200);
  },
  async function severalAtOnceTheLastOneBad(talk, { domain, say }) {
    const count = 1 + random(4);
    talk.socket.cork();
    for (let left = count; left > 0; left--) {
      const to = domain();
      say(to, get(to, random(500)));
    }
    say('', 'GET / HTTP/1.1\r\nHost: a b\r\nBad Field: x\r\n\r\n');
    talk.socket.uncork();
    for (let left = count; left > 0; left--) await talk.expect('GET', 200);
    await talk.expect('GET', 400);
  },
  async function anUploadThatEndsInTheMiddle(_talk, { domain, say }) {
    const [to, size] = [domain(), random(20_000)];
    say(to, post(to, size + 1, 'u'.repeat(size)));
  },
  async function aDownloadThatNobodyReadsToItsEnd(talk, { domain, say, abortedBytes }) {
    const to = domain();
    say(to, get(to, abortedBytes));
    await talk.read(1000);
    talk.socket.destroy();
  },
  async function bothWaysAfterAnUpgrade(talk, { domain, say, more }) {
    const to = domain();
    say(to, `GET / HTTP/1.1\r\nHost: ${to}\r\n${UPGRADE}\r\n\r\n`);
    await talk.expect('GET', 101);
    for (let left = 1 + random(5); left > 0; left--) {
      const length = 1 + random(9000);
      more(to, 'w'.repeat(length));
      await talk.read(length);
    }
  },
  async function ofNoSite(talk, { domain, say }) {
    const to = domain();
    say('', 'GET / HTTP/1.1\r\nHost: unknown.example\r\n\r\n');
    await talk.expect('GET', 404);
    say('', `HEAD /.svc/health HTTP/1.1\r\nHost: 192.0.2.9\r\n\r\n`);
    await talk.expect('HEAD', 200);
    say(to, `HEAD /?size=9 HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`);
    await talk.expect('HEAD', 200);
  },
  async function carefulAndThenNotFinished(talk, { domain, say }) {
    const to = domain();
    say(to, `GET /?size=5 HTTP/1.1\r\nHost: ${to}\r\nExpect: 100-continue\r\n\r\n`);
    await talk.expect('GET', 200);
    // The server says that this is no request, to nobody.
    say('', 'GET / HTT');
  },
];

const random = (below: number): number => Math.floor(Math.random() * below);

/** A connection whose answers are read. */
class Talk {
  readonly socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #over: Error | undefined;
  #wake = (): void => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    const over = (error = new Error('the connection ended')) => {
      this.#over ??= error;
      this.#wake();
    };
    socket.on('end', () => over());
    socket.on('close', () => over());
    socket.removeAllListeners('error').on('error', over);
  }

  async expect(method: string, status: number): Promise<void> {
    const answered = await this.answer(method);
    if (answered !== status) throw new Error(`${method} was answered with ${answered}, not ${status}`);
  }

  /** Reads an answer to its end. */
  async answer(method: string): Promise<number> {
    const head = await this.#through('\r\n\r\n');
    const status = Number(head.slice(9, 12));
    if (method === 'HEAD' || status === 101) return status;
    const length = /\r\ncontent-length: (\d+)/i.exec(head);
    if (length) await this.read(Number(length[1]));
    else if (/\r\ntransfer-encoding: chunked/i.test(head)) {
      for (let size = -1; size !== 0; ) {
        size = Number.parseInt(await this.#through('\r\n'), 16);
        await this.read(size + 2);
      }
    } else if (/\r\nconnection: close/i.test(head)) await this.#until(() => this.#over !== undefined);
    else throw new Error(`an answer without an end: ${head}`);
    return status;
  }

  async read(bytes: number): Promise<void> {
    await this.#until(() => this.#received.length >= bytes);
    this.#received = this.#received.subarray(bytes);
  }

  async #through(end: string): Promise<string> {
    let at = -1;
    await this.#until(() => {
      at = this.#received.indexOf(end, 0, 'latin1');
      return at >= 0;
    });
    const text = this.#received.toString('latin1', 0, at + end.length);
    this.#received = this.#received.subarray(at + end.length);
    return text;
  }

  async #until(there: () => boolean): Promise<void> {
    while (!there()) {
      if (this.#over) throw this.#over;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
