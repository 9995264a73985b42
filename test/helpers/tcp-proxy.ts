// A link that can be cut: forwards connections to a server until told otherwise.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';

export interface TcpProxy {
  host: string;
  port: number;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  /** Lets nothing through any more and tells neither side: a link that died. New connections work. */
  freeze(): void;
  restore(): void;
  /** Holds back what is sent to the server for so long from now on, in order; 0 ends that. */
  delay(milliseconds: number): void;
  close(): Promise<void>;
}

/** Forwards <host>:<port> to the host and port of `url`. `cut` from the start with `{ open: false }`. */
export async function tcpProxy(url: string, { open = true, host = '127.0.0.1' } = {}): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let passes = open;
  let held = 0;
  const slow = () =>
    new Transform({
      transform: (chunk, _encoding, done) => void (held > 0 ? setTimeout(done, held, null, chunk) : done(null, chunk)),
    });
  const server = createServer((socket) => {
    if (!passes) {
      socket.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      if (from === socket) from.pipe(slow()).pipe(to);
      else from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await listen(server, host);
  return {
    host,
    port: (server.address() as { port: number }).port,
    cut() {
      passes = false;
      for (const socket of sockets) socket.destroy();
    },
    freeze() {
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    restore() {
      passes = true;
    },
    delay(milliseconds) {
      held = milliseconds;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function listen(server: Server, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
}

/** The address with the proxy's host and port. */
export function throughProxy(url: string, { host, port }: TcpProxy): string {
  const address = new URL(url);
  address.hostname = host;
  address.port = String(port);
  return address.href;
}
