// A TCP proxy before an edge that counts every byte it passes on, and when. When a client leaves, it still reads all that
// the edge sends.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { eventually } from './eventually.ts';

const TICK_MS = 100;

/** How many bytes passed, in all and in any time. */
export class PassedBytes {
  total = 0;
  readonly #ticks = new Map<number, number>();

  add(bytes: number): void {
    this.total += bytes;
    const tick = Math.floor(Date.now() / TICK_MS);
    this.#ticks.set(tick, (this.#ticks.get(tick) ?? 0) + bytes);
  }

  /** What passed within at least one of these times, Unix ms, a tenth of a second more at their ends. */
  within(spans: readonly (readonly [number, number])[]): number {
    let sum = 0;
    for (const [tick, bytes] of this.#ticks) {
      const at = tick * TICK_MS;
      if (spans.some(([from, to]) => at + TICK_MS > from && at <= to)) sum += bytes;
    }
    return sum;
  }

  /** The most that passed in one second that began in this time, Unix ms. */
  largestSecond(from: number, to: number): number {
    let largest = 0;
    for (let at = from; at <= to; at += TICK_MS) largest = Math.max(largest, this.within([[at, at + 1000]]));
    return largest;
  }
}

export interface CountingProxy {
  port: number;
  /** From clients to the edge, and back. */
  up: PassedBytes;
  down: PassedBytes;
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** Forwards 127.0.0.1:<port> to a port of this machine. A client that comes while nobody listens there is turned away. */
export async function countingProxy(edgePort: number): Promise<CountingProxy> {
  const up = new PassedBytes();
  const down = new PassedBytes();
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    const edge = connect({ port: edgePort, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [client, edge]) {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
      socket.setNoDelay();
    }
    edge.on('connect', () => client.resume());
    client.on('data', (chunk: Buffer) => {
      up.add(chunk.length);
      if (!edge.write(chunk)) client.pause();
    });
    edge.on('drain', () => client.resume());
    client.on('end', () => edge.end());
    client.on('error', () => edge.end());
    edge.on('data', (chunk: Buffer) => {
      down.add(chunk.length);
      if (client.writable) client.write(chunk);
    });
    edge.on('end', () => {
      client.end();
      edge.end();
    });
    edge.on('error', () => client.destroy());
    // What the client still sends, nobody reads.
    edge.on('close', () => client.destroySoon());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    up,
    down,
    idle: async () => {
      await eventually(() => open.size === 0, { timeoutMs: 120_000, what: 'all connections to be closed' });
    },
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
