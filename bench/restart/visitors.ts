// Visitors who come at a fixed rate, each over a connection of its own, whether or not those before were answered.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const WAIT_MS = 60_000;

export interface Visit {
  /** When it began and ended, ms. */
  from: number;
  to: number;
  /** What went wrong: refused, or something else after the connection was made. */
  failure?: 'refused' | 'broken';
}

export class Visitors {
  readonly visits: Visit[] = [];
  private readonly going = new Set<Promise<void>>();
  private readonly coming: Promise<void>;
  private stopped = false;

  constructor(port: number, host: string, perSecond: number) {
    this.coming = this.come(port, host, perSecond);
  }

  private async come(port: number, host: string, perSecond: number): Promise<void> {
    const startedAt = performance.now();
    for (let sent = 0; !this.stopped; await delay(1))
      for (; sent < ((performance.now() - startedAt) / 1000) * perSecond; sent++) {
        const visit = this.visit(port, host).finally(() => this.going.delete(visit));
        this.going.add(visit);
      }
  }

  private visit(port: number, host: string): Promise<void> {
    const from = performance.now();
    return new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      let connected = false;
      socket.setTimeout(WAIT_MS, () => socket.destroy());
      socket.on('connect', () => {
        connected = true;
        socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      });
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        const answered = text.startsWith('HTTP/1.1 200 ');
        const failure = answered ? {} : { failure: connected ? ('broken' as const) : ('refused' as const) };
        this.visits.push({ from, to: performance.now(), ...failure });
        resolve();
      });
    });
  }

  /** No more come; resolves when all who came have left. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.coming;
    await Promise.all(this.going);
  }
}
