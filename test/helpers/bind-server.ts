// A real authoritative server (BIND) with one zone that a TSIG key may change and read whole.
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, Processes, tail } from '../../bin/lib/processes.ts';
import { eventually } from './eventually.ts';

/** The profile that Debian has for it lets it read and write here. */
const HOME = '/var/cache/bind';

export class BindServer {
  readonly zone: string;
  readonly port: number;
  readonly key = {
    name: 'console.example.org',
    algorithm: 'hmac-sha256',
    secret: randomBytes(32).toString('base64'),
  } as const;
  readonly #processes: Processes;
  readonly #folder: string;
  readonly #resolver = new Resolver({ timeout: 2_000, tries: 1 });
  #child: Child | null = null;

  private constructor(zone: string, port: number) {
    this.zone = zone;
    this.port = port;
    this.#folder = mkdtempSync(join(existsSync(HOME) ? HOME : tmpdir(), 'svc-test-'));
    this.#processes = new Processes(join(this.#folder, 'processes.json'));
    this.#resolver.setServers([`127.0.0.1:${port}`]);
  }

  /** Starts it with lines of the zone beside SOA and NS, and waits until it answers. */
  static async start(zone: string, records: readonly string[] = []): Promise<BindServer> {
    const server = new BindServer(zone, await freePort());
    const { key, port } = server;
    const folder = server.#folder;
    const lines = ['$TTL 60', `@ SOA ns hostmaster 1 60 60 3600 1`, '@ NS ns', 'ns A 127.0.0.1', ...records];
    writeFileSync(join(folder, 'zone'), `${lines.join('\n')}\n`);
    const conf = `controls { };
options { directory "${folder}"; pid-file none; lock-file none; session-keyfile none; recursion no; notify no;
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; dnssec-validation no; empty-zones-enable no; };
key "${key.name}" { algorithm ${key.algorithm}; secret "${key.secret}"; };
zone "${zone}" { type primary; file "${join(folder, 'zone')}"; allow-transfer { key "${key.name}"; };
  update-policy { grant ${key.name} zonesub ANY; }; };
`;
    writeFileSync(join(folder, 'named.conf'), conf);
    await server.resume();
    return server;
  }

  /** Starts it again after {@link pause}. */
  async resume(): Promise<void> {
    const logFile = join(this.#folder, 'named.log');
    const args = ['-g', '-n', '1', '-c', join(this.#folder, 'named.conf')];
    const env = { PATH: `${process.env.PATH}:/usr/sbin` };
    const child = this.#processes.start({ name: 'name server', command: 'named', args, env, logFile });
    this.#child = child;
    await eventually(
      async () => {
        if (!child.running()) throw new Error(tail(logFile));
        return readFileSync(logFile, 'utf8').includes('running') && (await this.answers('ns')).length > 0;
      },
      { what: 'name server' },
    );
  }

  /** Nobody answers until it is resumed. */
  async pause(): Promise<void> {
    const child = this.#child!;
    process.kill(child.pid, 'SIGKILL');
    await eventually(() => !child.running(), { what: 'end of the name server' });
  }

  get credentials(): Record<string, string> {
    const { name, algorithm, secret } = this.key;
    return {
      server: `127.0.0.1:${this.port}`,
      tsig_key_name: name,
      tsig_algorithm: algorithm,
      tsig_secret: secret,
    };
  }

  /** Addresses of a name below the zone, sorted; [] when it has none. */
  async answers(label: string, type: 'A' | 'AAAA' | 'CNAME' | 'TXT' = 'A'): Promise<string[]> {
    try {
      const found = await this.#resolver.resolve(`${label}.${this.zone}`, type);
      return (found as (string | string[])[]).map((one) => [one].flat().join('')).sort();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENODATA' || code === 'ENOTFOUND') return [];
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#processes.stopAll();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
