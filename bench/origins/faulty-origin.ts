// An HTTP/1.1 origin that fails in a way of one's choice, as far as a proxy can tell: below HTTP, so that nothing is put right.
import { createServer, type Server, type Socket } from 'node:net';

export const FAULTS = ['killed', 'hangs', 'answers 503', 'resets before', 'resets within', 'sends garbage'] as const;
export type Fault = (typeof FAULTS)[number];

const BODY_BYTES = 1024;
const READ_WITHIN_MS = 10;
const BODY = 'x'.repeat(BODY_BYTES);

export class FaultyOrigin {
  readonly port: number;
  readonly #name: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #fault: Fault | null = null;

  constructor(name: string, port: number) {
    this.#name = name;
    this.port = port;
  }

  /** Responds from here on, or fails. */
  async become(fault: Fault | null): Promise<void> {
    this.#fault = fault;
    if (fault === 'killed') await this.close();
    else await this.#open();
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    for (const socket of this.#sockets) socket.resetAndDestroy();
    if (server) await new Promise<void>((done) => server.close(() => done()));
  }

  async #open(): Promise<void> {
    if (this.#server) return;
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((done, failed) => {
      server.once('error', failed);
      server.listen({ host: '127.0.0.1', port: this.port, backlog: 4096 }, done);
    });
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.setNoDelay(true);
    let asked = '';
    socket.on('data', (chunk) => {
      asked += chunk.toString('latin1');
      // GETs have no body: each ends with its headers.
      for (let end = asked.indexOf('\r\n\r\n'); end >= 0; end = asked.indexOf('\r\n\r\n')) {
        asked = asked.slice(end + 4);
        this.#respond(socket);
      }
    });
  }

  #respond(socket: Socket): void {
    const head = (status: string) =>
      `HTTP/1.1 ${status}\r\ncontent-length: ${BODY_BYTES}\r\nx-origin: ${this.#name}\r\n\r\n`;
    switch (this.#fault) {
      case null:
        socket.write(head('200 OK') + BODY);
        return;
      case 'hangs':
        return;
      case 'answers 503':
        socket.write(head('503 Service Unavailable') + BODY);
        return;
      case 'resets within':
        socket.write(head('200 OK') + BODY.slice(BODY_BYTES / 2));
        // A reset drops what the proxy has not read yet, the headers too.
        setTimeout(() => socket.resetAndDestroy(), READ_WITHIN_MS);
        return;
      case 'sends garbage':
        socket.end('\u0016\u0003 no HTTP at all\r\n\r\n');
        return;
      default:
        socket.resetAndDestroy();
    }
  }
}
