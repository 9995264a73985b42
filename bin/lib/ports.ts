// Ports are picked once per data folder and kept, so that bookmarks, enrolled nodes and scripts stay right. A port counts
// as free only when every local address of both families can be bound: a server on ::1 alone would otherwise be found by
// `localhost` instead of ours.
import { createSocket } from 'node:dgram';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { type PortClaims, withPortClaims } from './port-claims.ts';
import { Refusal, say } from './progress.ts';

const PROBED = ['127.0.0.1', '::1', '0.0.0.0', '::'];
const TRIES = 200;

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', (error) => done(isAbsent(error)));
    server.listen({ host, port, exclusive: true, ipv6Only: host.includes(':') }, () => server.close(() => done(true)));
  });
}

function canReceive(address: string, port: number): Promise<boolean> {
  const ipv6 = address.includes(':');
  return new Promise((done) => {
    const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', ipv6Only: ipv6 });
    socket.once('error', (error) => socket.close(() => done(isAbsent(error))));
    socket.bind({ address, port, exclusive: true }, () => socket.close(() => done(true)));
  });
}

/** Whether the machine lacks the address family: it cannot hold the port either. */
function isAbsent({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
}

/** Whether nothing listens on the TCP port, on any local address; where `udp` says so, nor on the UDP port. */
export async function isFree(port: number, udp = false): Promise<boolean> {
  for (const host of PROBED) {
    if (!(await canListen(host, port)) || (udp && !(await canReceive(host, port)))) return false;
  }
  return true;
}

/** Whether the machine can listen on the IPv6 loopback address. */
export function hasIpv6(): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen({ host: '::1', port: 0 }, () => server.close(() => done(true)));
  });
}

export class Ports {
  readonly #file: string;
  readonly #stored: Record<string, number>;
  readonly #taken = new Set<number>();

  constructor(file: string) {
    this.#file = file;
    this.#stored = readStored(file);
  }

  /** The port of `name`: the stored one while it is free, else the first free one from `preferred` on; `udp`: it is used for both. */
  pick(name: string, preferred: number, udp = false): Promise<number> {
    return withPortClaims(this.#file, (claims) => this.#pick(name, preferred, udp, claims));
  }

  async #pick(name: string, preferred: number, udp: boolean, claims: PortClaims): Promise<number> {
    const usable = async (port: number) =>
      !this.#taken.has(port) && !claims.isClaimed(port) && (await isFree(port, udp));
    const stored = this.#stored[name];
    if (stored !== undefined && (await usable(stored))) {
      claims.claim(stored);
      this.#taken.add(stored);
      return stored;
    }
    const others = new Set(Object.entries(this.#stored).flatMap(([other, port]) => (other === name ? [] : [port])));
    for (let port = preferred; port < preferred + TRIES; port++) {
      if (others.has(port) || !(await usable(port))) continue;
      claims.claim(port);
      this.#taken.add(port);
      this.#stored[name] = port;
      this.#save();
      if (stored !== undefined) say(`port ${stored} of the ${name} is in use, moving to ${port}`);
      return port;
    }
    throw new Refusal(`no free port for the ${name} between ${preferred} and ${preferred + TRIES - 1}`);
  }

  #save(): void {
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(this.#stored, null, 1)}\n`, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }
}

function readStored(file: string): Record<string, number> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const stored: Record<string, number> = {};
  try {
    for (const [name, port] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
      if (Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536) stored[name] = Number(port);
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    say(`${file} is not valid JSON, picking ports again`);
  }
  return stored;
}
