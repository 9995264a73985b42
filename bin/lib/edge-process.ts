// The edge node of this machine: enrolled and supervised as a child of a launcher.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runPaths } from '../../agents/edge/paths.ts';
import { existingRunFolders } from '../../agents/edge/run-folder.ts';
import type { NewEnrollmentToken } from '../../client/src/index.ts';
import { startedAt } from './process-table.ts';
import { type Child, type Processes, tail } from './processes.ts';
import { Refusal } from './progress.ts';
import { root } from './root.ts';

const main = join(root, 'agents', 'edge', 'main.ts');
const ENROLL_TIMEOUT_MS = 90_000;
const START_TIMEOUT_MS = 60_000;
const LEFTOVER_GRACE_MS = 3000;

export interface EdgeOptions {
  processes: Processes;
  stateDir: string;
  logFile: string;
  caddy: string;
  /** Files of databases. */
  geoip: { country: string; asn: string };
  listen: string[];
  httpsListen: string[];
  kernelBans: 'on' | 'off';
  /** Who may send a PROXY header: addresses and CIDRs. */
  proxyPeers: readonly string[];
}

/** Our own settings travel as options: SVC_* of the environment are for the console and would be read by the agent too. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_')));
}

/** The identity in a node's state folder. */
export function enrolledNode(stateDir: string): { nodeId: string; serverUrl: string } | undefined {
  const file = join(stateDir, 'identity.json');
  if (!existsSync(file)) return undefined;
  const identity = JSON.parse(readFileSync(file, 'utf8')) as { node_id: string; server_url: string };
  return { nodeId: identity.node_id, serverUrl: identity.server_url };
}

/** Trades the token, handed over on standard input, for an identity in the state folder. */
export async function enroll(
  stateDir: string,
  { token, serverUrl, caSha256 }: Pick<NewEnrollmentToken, 'token' | 'serverUrl' | 'caSha256'>,
): Promise<void> {
  const args = [
    main,
    'enroll',
    '--state-dir',
    stateDir,
    '--server',
    serverUrl,
    '--ca-sha256',
    caSha256,
    '--node-name',
    'demo',
    '--force',
  ];
  const child = spawn(process.execPath, args, {
    env: environment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: ENROLL_TIMEOUT_MS,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000);
    });
  }
  child.stdin.on('error', () => undefined);
  child.stdin.end(token);
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code !== 0) throw new Refusal(`the node could not enroll:\n${output.trimEnd()}`);
}

/** Starts supervisor, agent and Caddy. */
export function superviseEdge(options: EdgeOptions): Child {
  const args = [main, 'supervise', '--state-dir', options.stateDir, '--caddy-bin', options.caddy];
  args.push('--geoip-country', options.geoip.country, '--geoip-asn', options.geoip.asn);
  args.push('--kernel-bans', options.kernelBans, ...options.listen.flatMap((address) => ['--http-listen', address]));
  args.push(...options.httpsListen.flatMap((address) => ['--https-listen', address]));
  args.push(...options.proxyPeers.flatMap((peer) => ['--proxy-peers', peer]));
  return options.processes.start({
    name: 'edge node',
    command: process.execPath,
    args,
    cwd: root,
    env: environment(),
    logFile: options.logFile,
    // The supervisor gives Caddy ten seconds to finish its requests.
    graceMs: 20_000,
  });
}

interface SupervisorFile {
  supervisor: { pid: number; startTime: string };
  children: { pid: number; startTime: string }[];
  holder?: { pid: number; startTime: string };
}

/**
 * Stops agent, Caddy and the holder of sockets of a supervisor that was killed. The next supervisor would do it too, but only
 * after the ports they hold were found in use and given up.
 */
export async function stopLeftoverEdge(stateDir: string): Promise<void> {
  if (!existsSync(stateDir) || process.platform !== 'linux') return;
  for (const folder of existingRunFolders(stateDir)) {
    const file = runPaths(folder).supervisorFile;
    if (existsSync(file)) await stopChildren(JSON.parse(readFileSync(file, 'utf8')) as SupervisorFile);
  }
}

async function stopChildren({ supervisor, children, holder }: SupervisorFile): Promise<void> {
  const lives = ({ pid, startTime }: { pid: number; startTime: string }) =>
    startedAt(pid)?.endsWith(`:${startTime}`) === true;
  if (lives(supervisor)) return;
  const left = [...children, ...(holder ? [holder] : [])].filter(lives);
  for (const { pid } of left) process.kill(pid, 'SIGTERM');
  const deadline = Date.now() + LEFTOVER_GRACE_MS;
  while (left.some(lives)) {
    if (Date.now() > deadline) for (const child of left.filter(lives)) process.kill(child.pid, 'SIGKILL');
    await delay(50);
  }
}

/** Ids of the agent and of Caddy below the supervisor; undefined while one of them is missing. */
export function edgePids(supervisor: number): { agent: number; caddy: number } | undefined {
  const { agent, caddy } = edgeChildren(supervisor);
  return agent === undefined || caddy === undefined ? undefined : { agent, caddy };
}

/** Those of them that run. */
export function edgeChildren(supervisor: number): { agent: number | undefined; caddy: number | undefined } {
  let agent: number | undefined;
  let caddy: number | undefined;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) !== supervisor) continue;
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      if (command.includes('\0hold\0')) continue;
      if (command.includes('svc-caddy')) caddy = Number(name);
      else agent = Number(name);
    } catch {
      // ended in between
    }
  }
  return { agent, caddy };
}

/** Waits for agent and Caddy. */
export async function waitForEdge(child: Child): Promise<{ agent: number; caddy: number }> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const pids = edgePids(child.pid);
    if (pids) {
      child.keepRunning();
      return pids;
    }
    if (!child.running() || Date.now() > deadline)
      throw new Refusal(`the edge node did not start:\n${tail(child.logFile)}`);
    await delay(50);
  }
}
