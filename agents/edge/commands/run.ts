// `run`: the agent process. Without an identity it waits for one; the data plane may serve meanwhile.
import { resolve } from 'node:path';
import { sleep } from '../../kit/backoff.ts';
import type { NodeIdentity } from '../../kit/channel-client.ts';
import { ensurePrivateFolder, readTextIfPresent } from '../../kit/files.ts';
import { identityPath, loadIdentity } from '../../kit/identity.ts';
import { lockFile } from '../../kit/locks.ts';
import { createLog, type Log } from '../../kit/log.ts';
import { markOf } from '../../kit/process-info.ts';
import { defaultTableName } from '../nft/script.ts';
import { adoptOldLayout } from '../old-layout.ts';
import type { Options } from '../options.ts';
import { edgePaths, runPaths } from '../paths.ts';
import { EdgeAgent } from '../run/agent.ts';
import { checkLength, openRunFolder } from '../run-folder.ts';

const IDENTITY_POLL_MS = 2000;
const IDENTITY_CHECK_MS = 10_000;
const STOP_LIMIT_MS = 15_000;

export async function runCommand(options: Options): Promise<number> {
  const log = createLog(options.logLevel, { process: 'agent' });
  const paths = edgePaths(resolve(options.required('state-dir')));
  const given = options.path('run-dir');
  if (given !== undefined) checkLength(given);
  ensurePrivateFolder(paths.stateDir);
  const { socket, statusFile } = runPaths(openRunFolder(paths.stateDir, given));
  const supervised = process.env.SVC_SUPERVISED === '1';
  delete process.env.SVC_TOKEN;
  const stopping = stopSignal(supervised);
  const identity = await waitForIdentity(paths.stateDir, log, stopping);
  if (!identity) {
    leaveSupervisor();
    return 0;
  }
  const lock = lockFile(paths.agentLock);
  if (!lock) {
    log.error('another agent or enrollment uses this folder', { stateDir: paths.stateDir });
    return 1;
  }
  // A supervisor did this already, before it started Caddy.
  adoptOldLayout(paths, log);
  const agent = new EdgeAgent({
    paths,
    socket,
    statusFile,
    identity,
    log,
    banCapacity: options.integer('ban-capacity'),
    kernelBans: options.text('kernel-bans') as 'auto' | 'on' | 'off',
    nftBin: options.required('nft-bin'),
    nftTable: options.text('nft-table') ?? defaultTableName(identity.nodeId),
    proxyPeers: options.list('proxy-peers'),
    owner: markOf(supervised ? process.ppid : process.pid) ?? markOf(process.pid)!,
    keepTable: supervised,
  });
  await agent.start();
  const changed = await identityChanged(paths.stateDir, stopping);
  if (changed) log.info('node identity changed, agent restarts');
  const limit = setTimeout(() => {
    log.error('agent stops too slowly, exiting');
    process.exit(1);
  }, STOP_LIMIT_MS);
  await agent.stop();
  // Ends with the process, which nothing that was left open may keep from ending either.
  limit.unref();
  lock.release();
  log.info('agent stopped');
  leaveSupervisor();
  return changed ? 1 : 0;
}

/** The IPC channel of the supervisor would keep the process alive. */
function leaveSupervisor(): void {
  if (process.connected) process.disconnect();
}

/** Aborts on SIGTERM, SIGINT, SIGHUP, and when the supervisor is gone. */
function stopSignal(supervised: boolean): AbortSignal {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, stop);
  if (supervised) process.once('disconnect', stop);
  return stopping.signal;
}

async function waitForIdentity(stateDir: string, log: Log, stopping: AbortSignal): Promise<NodeIdentity | undefined> {
  for (let told = ''; !stopping.aborted; ) {
    let problem = 'this node is not enrolled';
    try {
      const identity = loadIdentity(stateDir);
      if (identity) return identity;
    } catch (error) {
      problem = (error as Error).message;
    }
    if (told !== problem) log.warn('agent waits for an identity', { reason: problem, stateDir });
    told = problem;
    await sleep(IDENTITY_POLL_MS, stopping);
  }
  return undefined;
}

/** Resolves true when another identity was written, false when the process has to stop. */
async function identityChanged(stateDir: string, stopping: AbortSignal): Promise<boolean> {
  const before = readTextIfPresent(identityPath(stateDir));
  while (!stopping.aborted) {
    await sleep(IDENTITY_CHECK_MS, stopping);
    if (!stopping.aborted && readTextIfPresent(identityPath(stateDir)) !== before) return true;
  }
  return false;
}
