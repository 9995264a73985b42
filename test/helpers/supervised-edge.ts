// Supervisor, Caddy and holder of sockets as processes, in front of an origin of this test; without a console.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { edgePaths, runPaths } from '../../agents/edge/paths.ts';
import { heldSockets } from '../../agents/edge/supervise/holder.ts';
import { siteHost, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { buildCaddy } from '../../bin/lib/caddy.ts';
import { root } from '../../bin/lib/root.ts';
import { edgeSend } from './edge-request.ts';
import { eventually } from './eventually.ts';

const MAIN = join(root, 'agents', 'edge', 'main.ts');

export class SupervisedEdge {
  readonly folder = mkdtempSync(join(tmpdir(), 'supervised-'));
  readonly stateDir = join(this.folder, 'state');
  readonly run = runPaths(join(this.folder, 'run'));
  output = '';
  private readonly t: ExecutionContext;
  private readonly binary: string;
  readonly port: number;
  private supervisor: ChildProcess | undefined;

  private constructor(t: ExecutionContext, binary: string, port: number) {
    this.t = t;
    this.binary = binary;
    this.port = port;
  }

  /** A node with one site; nothing runs yet. */
  static async make(t: ExecutionContext, respond: RequestListener): Promise<SupervisedEdge> {
    const edge = new SupervisedEdge(t, await buildCaddy(), await freePort());
    const origin = createServer(respond);
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    mkdirSync(edge.stateDir, { mode: 0o700 });
    writeEdgeState({
      folder: edgePaths(edge.stateDir).edgeDir,
      sites: 1,
      origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
    });
    t.teardown(async () => {
      await edge.end('SIGTERM');
      origin.closeAllConnections();
      await new Promise((resolve) => origin.close(resolve));
      if (!t.passed) for (const line of edge.output.split('\n').slice(-60)) t.log(line);
      rmSync(edge.folder, { recursive: true, force: true });
    });
    return edge;
  }

  /** Starts a holder as a unit of its own would, and waits until it responds. */
  async hold(path: string): Promise<ChildProcess> {
    const child = spawn(this.binary, ['hold', '--socket', path], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.t.teardown(() => child.kill('SIGKILL'));
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    await eventually(() => said.includes('holding'), { timeoutMs: 60_000, what: 'the holder' });
    return child;
  }

  /** Starts the supervisor, and waits until its own Caddy serves: one that a killed supervisor left is ended first. */
  async start(...more: string[]): Promise<void> {
    const former = this.pid('caddy');
    this.launch(...more);
    await eventually(() => Number.isInteger(this.pid('caddy')) && this.pid('caddy') !== former, {
      timeoutMs: 60_000,
      what: 'Caddy to be started',
    });
    await eventually(() => this.serves(), { timeoutMs: 60_000, what: 'the edge to serve' });
  }

  launch(...more: string[]): void {
    const args = [MAIN, 'supervise', '--state-dir', this.stateDir, '--run-dir', this.run.runDir];
    args.push('--caddy-bin', this.binary, '--https-listen', 'none', '--kernel-bans', 'off');
    args.push(...(more.includes('--http-listen') ? [] : ['--http-listen', `127.0.0.1:${this.port}`]), ...more);
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    this.supervisor = child;
  }

  /** Ends the supervisor alone and waits until it is gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.supervisor;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  /** Process id of the newest child of a name. */
  pid(child: 'caddy' | 'agent' | 'holder'): number {
    const started = [...this.output.matchAll(/"child":"(\w+)","pid":(\d+)/g)].filter(([, name]) => name === child);
    return Number(started.at(-1)?.[2]);
  }

  /** Kills a child and waits until another one was started. */
  async kill(child: 'caddy' | 'agent' | 'holder'): Promise<void> {
    const pid = this.pid(child);
    process.kill(pid, 'SIGKILL');
    await eventually(() => this.pid(child) !== pid, { timeoutMs: 60_000, what: `another ${child}` });
  }

  /** Waits until a holder has the port. */
  async held(path = this.run.holdSocket): Promise<void> {
    await eventually(
      async () => {
        const held = await heldSockets(path).catch(() => []);
        return held.some(({ address }) => address === `127.0.0.1:${this.port}`);
      },
      { timeoutMs: 60_000, what: 'the holder to have the port' },
    );
  }

  /** One request to the site over a connection of its own. */
  async ask(path = '/', port = this.port): Promise<number> {
    const answer = await edgeSend({ host: '127.0.0.1', port }, siteHost(0), { path, timeoutMs: 60_000 });
    return answer.status;
  }

  serves(port = this.port): Promise<boolean> {
    return this.ask('/', port).then(
      (status) => status === 200,
      () => false,
    );
  }
}

/** Visitors who come one after the other, `count` at a time, each over a connection of its own. */
export class Visitors {
  answered = 0;
  readonly failures: string[] = [];
  private readonly going: Promise<void>[];
  private stopped = false;

  constructor(t: ExecutionContext, edge: SupervisedEdge, count: number) {
    t.teardown(() => this.stop());
    this.going = Array.from({ length: count }, () => this.keepAsking(edge));
  }

  private async keepAsking(edge: SupervisedEdge): Promise<void> {
    while (!this.stopped) {
      try {
        const status = await edge.ask();
        if (status === 200) this.answered++;
        else this.failures.push(String(status));
      } catch (error) {
        this.failures.push((error as NodeJS.ErrnoException).code ?? String(error));
      }
    }
  }

  /** Waits for as many answers more. */
  async more(count: number): Promise<void> {
    const from = this.answered;
    await eventually(() => this.answered >= from + count, { timeoutMs: 60_000, what: `${count} answers` });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.going);
  }
}
