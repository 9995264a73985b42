// The demo as a newcomer runs it: `npm run demo` in a process group of its own, as a terminal would have it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { ConsoleClient } from '../../bin/lib/console-client.ts';
import { removeDataFolder } from '../../bin/lib/data-folder.ts';
import type { DemoFacts } from '../../bin/lib/demo-state.ts';
import { cacheDir, root } from '../../bin/lib/root.ts';
import { eventually } from './eventually.ts';

export { root };

export interface DemoStart {
  /** Options after `--data DIR`. */
  args?: string[];
  env?: NodeJS.ProcessEnv;
  /** Only the loopback interface exists, so nothing can be downloaded. Needs root. */
  networkCut?: boolean;
}

export interface Demo {
  facts: DemoFacts;
  /** Everything printed so far. */
  output(): string;
  launcher: ChildProcess;
  client: ConsoleClient;
  /** Status of the site's start page at the edge for a visitor's address. */
  visit(address: string, path?: string): Promise<number>;
  /** The start page over HTTP/2, for whoever trusts `ca`, that of demo.json unless another is given. */
  visitHttps(options?: { ca?: string | [] }): Promise<HttpsVisit>;
  /** Sends a signal as a terminal does, to the whole group, and waits for the end of npm. */
  end(signal: NodeJS.Signals): Promise<void>;
}

export interface HttpsVisit {
  status: number;
  /** The protocol that was agreed on. */
  alpn: string;
  headers: IncomingHttpHeaders;
}

const START_TIMEOUT_MS = 8 * 60_000;
const STOP_TIMEOUT_MS = 60_000;

/** A data folder for a test file. */
export function demoFolder(name: string): string {
  return join(cacheDir, 'e2e', `${name}-${process.pid}`);
}

/** Deletes a demo's folder; nothing may run in it any more. */
export async function removeDemo(folder: string): Promise<void> {
  await removeDataFolder(folder);
}

export function spawnDemo(
  folder: string,
  { args = [], env = {}, networkCut = false }: DemoStart = {},
): { child: ChildProcess; output(): string } {
  const npm = ['npm', 'run', '-s', 'demo', '--', '--data', folder, ...args];
  const [command = '', ...rest] = networkCut
    ? ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...npm]
    : npm;
  const child = spawn(command, rest, {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return { child, output: () => text };
}

/** Starts a demo and waits until it says that it runs. */
export async function startDemo(folder: string, start: DemoStart = {}): Promise<Demo> {
  const { child, output } = spawnDemo(folder, start);
  const file = join(folder, 'demo.json');
  await eventually(
    () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error('the demo ended');
      return output().includes('The demo runs.') && existsSync(file);
    },
    { timeoutMs: START_TIMEOUT_MS, everyMs: 100, what: 'the start of the demo' },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${output()}`);
  });
  const facts = JSON.parse(readFileSync(file, 'utf8')) as DemoFacts;
  const client = new ConsoleClient(facts.consoleUrl, facts.consoleUrl);
  client.accessKey = facts.accessKey;
  const visit = (address: string, path = '/') => visitEdge(facts, address, path);
  const end = async (signal: NodeJS.Signals) => {
    process.kill(-(child.pid ?? 0), signal);
    const ended = () => child.exitCode !== null || child.signalCode !== null;
    await eventually(ended, { timeoutMs: STOP_TIMEOUT_MS, what: 'the end of the demo' });
  };
  return { facts, output, launcher: child, client, visit, visitHttps: (options) => visitHttps(facts, options), end };
}

function visitEdge(facts: DemoFacts, address: string, path: string): Promise<number> {
  const [host, port] = facts.edge.http.split(':');
  const headers = { host: facts.site.host, [facts.clientIpHeader]: address };
  return new Promise((done, fail) => {
    const call = request({ host, port, path, headers, agent: false, timeout: 10_000 }, (response) => {
      response.resume();
      done(response.statusCode ?? 0);
    });
    call.on('timeout', () => call.destroy(new Error('no answer from the edge')));
    call.on('error', fail);
    call.end();
  });
}

/** Asks as a browser does, which names the port of the address. */
async function visitHttps(
  { edge, caFile, site }: DemoFacts,
  { ca = readFileSync(caFile, 'utf8') }: { ca?: string | [] } = {},
): Promise<HttpsVisit> {
  const [host, port] = edge.https.split(':');
  const socket = connectTls({ host, port: Number(port), servername: site.host, ca, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  const session = connectHttp2(`https://${site.host}:${port}`, { createConnection: () => socket });
  try {
    const headers = await new Promise<IncomingHttpHeaders>((done, fail) => {
      session.on('error', fail);
      const stream = session.request({ ':path': '/' });
      stream.on('response', done);
      stream.on('error', fail);
      stream.resume();
    });
    return { status: Number(headers[':status']), alpn: socket.alpnProtocol || '', headers };
  } finally {
    session.destroy();
  }
}

/** Command lines of processes whose arguments name the folder, or whose standard output is a file in it. */
export function processesOf(folder: string): string[] {
  const found: string[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      // A process that gives itself a title hides its arguments, not its log.
      if (command.includes(folder) || readlinkSync(`/proc/${name}/fd/1`).startsWith(folder)) found.push(command);
    } catch {
      // ended in between
    }
  }
  return found;
}
