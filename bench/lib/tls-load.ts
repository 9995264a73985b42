// Drives bench/tls-load: certificates, handshakes and requests of HTTP/2.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { buildGo } from './servers.ts';

const root = path.resolve(import.meta.dirname, '../..');

export type Curve = 'X25519' | 'X25519MLKEM768';

export interface Certificate {
  /** Of the leaf, as entries name it. */
  fingerprint: Buffer;
  /** DER, leaf first. */
  chain: Buffer[];
  /** PKCS #8 in DER. */
  privateKey: Buffer;
}

export interface Handshakes {
  /** Of each, the connection of TCP left out. */
  micros: number[];
}

export interface Requests {
  requests: number;
  unexpected: number;
  seconds: number;
}

interface HandshakeOptions {
  port: number;
  host: string;
  count: number;
  curve?: Curve;
  resumed?: boolean;
  /** The %d in `host` is one of so many, in an order that the seed says, none twice. */
  numbers?: number;
  seed?: number;
}

export class TlsLoad {
  readonly program: string;
  private readonly cpus: string;

  /** Builds it; it runs on these cores. */
  constructor(cpus: string) {
    mkdirSync(path.join(root, '.cache'), { recursive: true });
    this.program = buildGo(path.join(root, 'bench/tls-load'), path.join(root, '.cache/tls-load'));
    this.cpus = cpus;
  }

  /** Makes certificates of one authority, each with a key of its own; a %d in `host` is the number from `first` on. */
  async *certificates(options: {
    host: string;
    count?: number;
    first?: number;
    key?: 'ecdsa' | 'rsa';
  }): AsyncGenerator<Certificate> {
    const child = spawn(this.program, ['certificates', ...flags(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    for await (const line of createInterface({ input: child.stdout })) {
      const [leaf, authority, privateKey] = line.split(' ').map((text) => Buffer.from(text, 'base64'));
      const fingerprint = createHash('sha256').update(leaf!).digest();
      yield { fingerprint, chain: [leaf!, authority!], privateKey: privateKey! };
    }
    const [code] = (await ended) as [number | null];
    if (code !== 0) throw new Error(`no certificates: tls-load ended with ${code}`);
  }

  handshakes(options: HandshakeOptions): Promise<Handshakes> {
    return this.capture('handshakes', options);
  }

  requests(options: {
    port: number;
    host: string;
    seconds: number;
    connections: number;
    streams: number;
  }): Promise<Requests> {
    return this.capture('requests', options);
  }

  private async capture<T>(command: string, { port, ...options }: { port: number }): Promise<T> {
    const given = ['--address', `127.0.0.1:${port}`, ...flags(options)];
    const child = spawn('taskset', ['-c', this.cpus, this.program, command, ...given], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-5000);
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${command} at port ${port}: ${errors}`);
    return JSON.parse(output) as T;
  }
}

function flags(options: object): string[] {
  return Object.entries(options).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
}
