// A real edge node for a test: enrolled through the console's API, supervisor, agent and Caddy as processes, on this
// machine or on a host of a test network.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { existingRunFolders, removeRunFolder } from '../../agents/edge/run-folder.ts';
import { buildCaddy } from '../../bin/lib/caddy.ts';
import type { ConsoleClient } from '../../bin/lib/console-client.ts';
import { edgePids } from '../../bin/lib/edge-process.ts';
import { type Child, Processes } from '../../bin/lib/processes.ts';
import { root } from '../../bin/lib/root.ts';
import { eventually } from './eventually.ts';

export interface EdgeNodeOptions {
  client: ConsoleClient;
  clusterId: string;
  /** [address]:port to serve HTTP on. */
  listen: string;
  /** [address]:port to serve HTTPS on; without one nothing is. */
  httpsListen?: string;
  kernelBans: 'on' | 'off';
  /** Options of the supervisor beside those above. */
  more?: readonly string[];
  /** Words that run a program elsewhere, such as `ip netns exec NAME`. */
  exec?: readonly string[];
  /** Its state folder, when it is to lie elsewhere than beside its log. */
  stateDir?: string;
}

export interface EdgeNode {
  nodeId: string;
  stateDir: string;
  supervisor: Child;
  /** Ids of the agent and of Caddy at the moment. */
  pids(): { agent: number; caddy: number } | undefined;
  log(): string;
  /** Starts the supervisor again after it was killed or stopped, and waits until the console sees the node. */
  start(): Promise<void>;
  /** The same without waiting, for a console that is away. */
  restart(): void;
  stop(): Promise<void>;
}

const main = join(root, 'agents', 'edge', 'main.ts');

/** Enrols a node, starts it and waits until the console sees it online. */
export async function startEdgeNode(options: EdgeNodeOptions): Promise<EdgeNode> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-node-'));
  const stateDir = options.stateDir ?? join(folder, 'state');
  const logFile = join(folder, 'edge.log');
  const prefix = [...(options.exec ?? []), process.execPath, main];
  const caddy = await buildCaddy();
  await enroll(prefix, stateDir, options);
  const { node_id: nodeId } = JSON.parse(readFileSync(join(stateDir, 'identity.json'), 'utf8')) as { node_id: string };
  const processes = new Processes(join(folder, 'processes.json'));
  const supervise = (): Child => {
    const words = [...prefix, 'supervise', '--state-dir', stateDir, '--caddy-bin', caddy];
    words.push(
      '--http-listen',
      options.listen,
      '--https-listen',
      options.httpsListen ?? 'none',
      '--kernel-bans',
      options.kernelBans,
      ...(options.more ?? []),
    );
    return processes.start({
      name: 'edge node',
      command: words[0]!,
      args: words.slice(1),
      env: { PATH: process.env.PATH },
      logFile,
      graceMs: 20_000,
    });
  };
  const node: EdgeNode = {
    nodeId,
    stateDir,
    supervisor: supervise(),
    pids: () => edgePids(node.supervisor.pid),
    log: () => readFileSync(logFile, 'utf8'),
    restart: () => {
      node.supervisor = supervise();
    },
    start: async () => {
      node.supervisor = supervise();
      await online(options.client, nodeId);
    },
    stop: async () => {
      await node.supervisor.stop();
      // One that was killed left its own.
      if (existsSync(stateDir)) for (const run of existingRunFolders(stateDir)) removeRunFolder(stateDir, run);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await online(options.client, nodeId);
    return node;
  } catch (error) {
    const log = node.log();
    await node.stop();
    throw new Error(`the edge node did not come online:\n${log.slice(-4000)}`, { cause: error });
  }
}

async function enroll(prefix: readonly string[], stateDir: string, options: EdgeNodeOptions): Promise<void> {
  const { token, serverUrl, caSha256 } = await options.client.api<{
    token: string;
    serverUrl: string;
    caSha256: string;
  }>('POST', '/enrollment-tokens', { clusterId: options.clusterId });
  const words = [...prefix, 'enroll', '--state-dir', stateDir, '--server', serverUrl, '--ca-sha256', caSha256];
  const child = spawn(words[0]!, words.slice(1), {
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  child.stdin.end(token);
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`enrollment ended with ${code}: ${output}`);
}

async function online(client: ConsoleClient, nodeId: string): Promise<void> {
  await eventually(
    async () => {
      const node = await client.api<{ online: boolean; dataPlaneHealthy: boolean }>('GET', `/nodes/${nodeId}`);
      return node.online && node.dataPlaneHealthy;
    },
    { timeoutMs: 60_000, what: 'the node to be online' },
  );
}
