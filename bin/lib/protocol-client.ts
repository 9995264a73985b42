// A client of an edge over one version of HTTP and TLS. The program behind it is ours, in Go: Node has no HTTP/3.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { caddySources, findGo, GO_BUILD_FLAGS, goEnvironment } from './caddy.ts';
import { run } from './commands.ts';
import { cacheDir } from './root.ts';

export type Version = 1 | 2 | 3;

const BUILD_TIMEOUT_MS = 15 * 60_000;

/** Builds the program; Go's cache makes that quick where nothing changed. */
async function program(): Promise<string> {
  const found = await findGo();
  if ('problem' in found) throw new Error(found.problem);
  const folder = join(cacheDir, 'protocol-client');
  mkdirSync(folder, { recursive: true });
  const binary = join(folder, 'client');
  await run(found.go, ['build', ...GO_BUILD_FLAGS, '-o', binary, './internal/edgetest/client'], {
    cwd: caddySources,
    env: goEnvironment(process),
    timeout: BUILD_TIMEOUT_MS,
  });
  return binary;
}

export interface ProtocolRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string | undefined;
}

export interface ProtocolAnswer {
  status: number;
  /** Such as HTTP/2.0. */
  proto: string;
  /** By lower-case name; several values are joined by ", ". */
  headers: Record<string, string>;
  body: string;
}

interface Event {
  id: number;
  status?: number;
  proto?: string;
  headers?: Record<string, string[]>;
  text?: string;
  end?: boolean;
  error?: string;
}

/** A request that is under way. */
export class OpenRequest {
  status = 0;
  proto = '';
  headers: Record<string, string> = {};
  body = '';
  /** How it ended: "" when its answer was whole; undefined while it goes on. */
  ended: string | undefined;
  readonly #cancel: () => void;
  readonly over: Promise<void>;
  #isOver = (): void => undefined;

  constructor(cancel: () => void) {
    this.#cancel = cancel;
    this.over = new Promise((resolve) => {
      this.#isOver = resolve;
    });
  }

  cancel(): void {
    this.#cancel();
  }

  take({ status, proto, headers, text, end, error }: Event): void {
    if (status !== undefined) this.status = status;
    if (proto !== undefined) this.proto = proto;
    for (const [name, values] of Object.entries(headers ?? {})) this.headers[name.toLowerCase()] = values.join(', ');
    if (text !== undefined) this.body += text;
    if (end) this.finish(error ?? '');
  }

  finish(how: string): void {
    this.ended ??= how;
    this.#isOver();
  }
}

/** Connections of one client; requests for one host share them. */
export class ProtocolClient {
  readonly version: Version;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #folder: string;
  readonly #open = new Map<number, OpenRequest>();
  #next = 1;

  private constructor(version: Version, binary: string, port: number, authority: string) {
    this.version = version;
    this.#folder = mkdtempSync(join(tmpdir(), 'protocol-client-'));
    const file = join(this.#folder, 'authority.pem');
    writeFileSync(file, authority);
    this.#child = spawn(binary, [String(version), `127.0.0.1:${port}`, file], { stdio: ['pipe', 'pipe', 'pipe'] });
    let errors = '';
    this.#child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const event = JSON.parse(line) as Event;
      const request = this.#open.get(event.id);
      request?.take(event);
      if (event.end) this.#open.delete(event.id);
    });
    this.#child.on('close', () => {
      for (const request of this.#open.values()) request.finish(`the client ended: ${errors}`);
    });
    // One that ended is told above.
    this.#child.stdin.on('error', () => undefined);
  }

  /** A client of the edge at a port of this machine that trusts an authority, in PEM. */
  static async start(version: Version, port: number, authority: string): Promise<ProtocolClient> {
    return new ProtocolClient(version, await program(), port, authority);
  }

  /** Begins a request for a host and a path. */
  open(host: string, path = '/', { method = 'GET', headers = {}, body }: ProtocolRequest = {}): OpenRequest {
    const id = this.#next++;
    const request = new OpenRequest(() => this.#say({ id, cancel: true }));
    this.#open.set(id, request);
    const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    this.#say({ id, host, path, method, headers: lists, body: body ?? null });
    return request;
  }

  /** The whole answer; rejects where it did not come whole. */
  async ask(host: string, path?: string, options?: ProtocolRequest): Promise<ProtocolAnswer> {
    const request = this.open(host, path, options);
    await request.over;
    const { ended, status, proto, headers, body } = request;
    if (ended) throw new Error(ended);
    return { status, proto, headers, body };
  }

  async close(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) {
      const closed = new Promise((resolve) => this.#child.once('close', resolve));
      this.#child.kill('SIGKILL');
      await closed;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #say(order: Record<string, unknown>): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }
}
