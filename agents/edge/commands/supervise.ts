// `supervise`: parent of the edge server (Caddy) and of the agent. It outlives both, holds the locks, and cleans up: after
// itself when it stops, after a killed predecessor when it starts.
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { ensurePrivateFolder, removeFile } from '../../kit/files.ts';
import { loadIdentity } from '../../kit/identity.ts';
import { type Lock, lockFolder } from '../../kit/locks.ts';
import { createLog, errorText, type Log } from '../../kit/log.ts';
import { markOf, type ProcessMark } from '../../kit/process-info.ts';
import { renderCaddyConfig } from '../caddy/caddy-config.ts';
import { ensureQuicKey } from '../caddy/quic-key.ts';
import { deleteOwnTable } from '../nft/kernel-bans.ts';
import { defaultTableName } from '../nft/script.ts';
import { adoptOldLayout } from '../old-layout.ts';
import { addressesOf, holderOf, type Options } from '../options.ts';
import { type EdgePaths, edgePaths, type RunPaths, runPaths } from '../paths.ts';
import { AGENT_CAPABILITIES } from '../run/node-capabilities.ts';
import { checkLength, existingRunFolders, openRunFolder, removeRunFolder } from '../run-folder.ts';
import { isTaken, lockAddress } from '../supervise/addresses.ts';
import { CaddyGuard } from '../supervise/caddy-guard.ts';
import { childEnvironment } from '../supervise/child-environment.ts';
import { closeOtherHosts, type HeldSocket, ownHolder, waitForHolder } from '../supervise/holder.ts';
import { ManagedChild } from '../supervise/managed-child.ts';
import { stopLeftovers, writeSupervisorRecord } from '../supervise/supervisor-file.ts';

/** The program itself, from source or bundled into one file. */
const MAIN = process.argv[1]!;
/** A second more than Caddy gives its own requests. */
const CADDY_GRACE_MS = 11_000;
const AGENT_GRACE_MS = 20_000;
const EXIT_USAGE = 2;
/** With V8's default young generation the agent takes 70 MiB more to read 100,000 entries, and is no faster. */
const AGENT_V8 = ['--max-semi-space-size=4'];

export async function superviseCommand(options: Options): Promise<number> {
  const log = createLog(options.logLevel, { process: 'supervisor' });
  const paths = edgePaths(resolve(options.required('state-dir')));
  delete process.env.SVC_TOKEN;
  const given = options.path('run-dir');
  if (given !== undefined) checkLength(given);
  const caddyBin = findExecutable(options.required('caddy-bin'));
  if (caddyBin === undefined) {
    log.error('edge server binary cannot be run, set it with --caddy-bin', {
      caddyBin: options.required('caddy-bin'),
    });
    return 1;
  }
  const exposing = geoipFolders(options).find(
    (folder) => holds(folder, paths.stateDir) || holds(paths.stateDir, folder),
  );
  if (exposing !== undefined) {
    log.error('GeoIP databases need their own folder, because the edge server may read all files in it', {
      folder: exposing,
    });
    return 1;
  }
  ensurePrivateFolder(paths.stateDir);
  const listen = options.list('http-listen');
  const all = [...listen, ...addressesOf(options.list('https-listen'))];
  const locks = takeLocks(paths, all, log);
  if (!locks) return 1;
  let holder: ManagedChild | undefined;
  const changes = { record: (): void => undefined };
  try {
    // Under the locks: a predecessor that ends removes its own.
    const run = runPaths(openRunFolder(paths.stateDir, given));
    // A predecessor may have found its room elsewhere; one of an older version has its record in the state folder.
    for (const folder of new Set([run.runDir, ...existingRunFolders(paths.stateDir), paths.stateDir]))
      await stopLeftovers(runPaths(folder).supervisorFile, log);
    const { path: holdSocket, isOwn } = holderOf(options.text('hold-socket'), run.holdSocket);
    if (isOwn) {
      holder = ownHolder({ caddyBin, path: run.holdSocket, runDir: run.runDir, log, changed: () => changes.record() });
      void holder.start();
    }
    const held = (holdSocket && (await waitForHolder(holdSocket, log))) || [];
    if (held.length > 0) await closeOtherHosts(holdSocket!, held, all);
    const taken = await takenAddress(listen, held);
    if (taken !== undefined) {
      log.error('another process listens on this address', { address: taken });
      return 1;
    }
    // A running agent of an older version writes in the old place, so nothing is moved before it has ended.
    adoptWhereRoom(paths, log);
    makeCaddyFolders(paths, log);
    ensureQuicKey(paths.quicKey, log);
    return await supervise(options, paths, run, { caddyBin, holdSocket, holder, changes }, log);
  } catch (error) {
    log.error('supervisor cannot start', { reason: errorText(error) });
    return 1;
  } finally {
    await holder?.stop();
    for (const lock of locks) lock.remove();
  }
}

interface Programs {
  caddyBin: string;
  holdSocket: string | undefined;
  /** The holder, where it is ours. */
  holder: ManagedChild | undefined;
  /** Is given what writes down the processes, for when the holder is another one. */
  changes: { record: () => void };
}

async function supervise(
  options: Options,
  paths: EdgePaths,
  run: RunPaths,
  { caddyBin, holdSocket, holder, changes }: Programs,
  log: Log,
): Promise<number> {
  const self = markOf(process.pid)!;
  removeFile(run.socket);
  const record = (): void => {
    const children = [caddy.mark, agent.mark].filter((mark): mark is ProcessMark => mark !== undefined);
    writeSupervisorRecord(run.supervisorFile, { supervisor: self, children, holder: holder?.mark });
  };
  changes.record = record;
  const guard = new CaddyGuard({
    journals: { config: paths.configJournal, bans: paths.banJournal },
    withoutAgent: (work) => agent.without(work),
    silenceSeconds: options.integer('replace-after'),
    log,
  });
  const caddy = new ManagedChild({
    name: 'caddy',
    command: caddyBin,
    // Through standard input: a file could not be written to a full disk.
    args: ['run', '--config', '-'],
    input: caddyConfig(options, paths, run, holdSocket),
    // Caddy keeps nothing of its own on disk; what it still wants to write stays in the run folder.
    env: childEnvironment({
      XDG_DATA_HOME: run.runDir,
      XDG_CONFIG_HOME: run.runDir,
      TMPDIR: run.runDir,
      SVC_CONFINE: confinement(options, paths, run),
    }),
    ipc: false,
    minDelayMs: 1000,
    maxDelayMs: 30_000,
    graceMs: CADDY_GRACE_MS,
    log,
    changed: record,
    guard,
  });
  const agent = new ManagedChild({
    name: 'agent',
    command: process.execPath,
    args: [...process.execArgv, ...AGENT_V8, MAIN, 'run', ...agentArguments(options, paths, run)],
    env: childEnvironment({ SVC_SUPERVISED: '1' }),
    ipc: true,
    minDelayMs: 2000,
    maxDelayMs: 60_000,
    graceMs: AGENT_GRACE_MS,
    finalCode: EXIT_USAGE,
    log,
    changed: record,
  });
  const signalled = new Promise<undefined>((stop) => {
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop(undefined));
  });
  void caddy.start();
  const finalCode = await Promise.race([agent.start(), signalled]);
  log.info('stopping', finalCode === undefined ? {} : { agentExitCode: finalCode });
  await Promise.all([agent.stop(), caddy.stop()]);
  await removeTable(options, paths, self, log);
  // Before its folder.
  await holder?.stop();
  removeFile(run.supervisorFile);
  removeRunFolder(paths.stateDir, run.runDir);
  log.info('stopped');
  return finalCode ?? 0;
}

function caddyConfig(options: Options, paths: EdgePaths, run: RunPaths, holdSocket: string | undefined): string {
  const config = renderCaddyConfig({
    stateDir: paths.edgeDir,
    socketPath: run.socket,
    holdSocket,
    httpListen: options.list('http-listen'),
    httpsListen: addressesOf(options.list('https-listen')),
    banCapacity: options.integer('ban-capacity'),
    banMaxMib: options.integer('ban-max-mib'),
    proxyPeers: options.list('proxy-peers'),
    agentCapabilities: AGENT_CAPABILITIES,
    geoipCountry: options.path('geoip-country'),
    geoipAsn: options.path('geoip-asn'),
    metricsListen: options.text('metrics-listen'),
    metricsSites: options.list('metrics-site'),
    maxConnections: options.integer('max-connections'),
    maxConnectionsPerNetwork: options.integer('max-connections-per-network'),
    maxConnectionsPerAddress: options.integer('max-connections-per-address'),
    maxRequestMib: options.integer('max-request-mib'),
    maxRequestMibPerNetwork: options.integer('max-request-mib-per-network'),
    maxConnectionsPerOrigin: options.integer('max-connections-per-origin'),
    originStaleSeconds: options.integer('origin-stale-seconds'),
    maxBodyMinutes: options.integer('max-body-minutes'),
  });
  return `${JSON.stringify(config)}\n`;
}

/** What an older version left is moved; a disk without room for that keeps nobody from serving what can be read. */
function adoptWhereRoom(paths: EdgePaths, log: Log): void {
  try {
    adoptOldLayout(paths, log);
  } catch (error) {
    log.error('files of an older version not moved', { reason: errorText(error) });
  }
}

/** Folders Caddy keeps itself to: the private key, and what else is the agent's alone, lies outside of them. */
function confinement(options: Options, paths: EdgePaths, run: RunPaths): string {
  // Without its folders Caddy counts in memory, gathers what memory holds and stores no responses. It serves on a full disk.
  const write = [run.runDir, ...[paths.countsDir, paths.logsDir, paths.spoolDir, paths.cacheDir].filter(existsSync)];
  return JSON.stringify({ read: [paths.edgeDir, ...geoipFolders(options).filter(existsSync)], write });
}

/** Folders rather than files: a file that takes the place of another is another one. */
function geoipFolders(options: Options): string[] {
  const files = [options.path('geoip-country'), options.path('geoip-asn')];
  return [...new Set(files.flatMap((file) => (file === undefined ? [] : dirname(file))))];
}

/** Whether a folder is, or lies in, the other one. */
function holds(outer: string, inner: string): boolean {
  return `${inner}/`.startsWith(outer.endsWith('/') ? outer : `${outer}/`);
}

function makeCaddyFolders(paths: EdgePaths, log: Log): void {
  try {
    ensurePrivateFolder(paths.edgeDir);
    ensurePrivateFolder(paths.countsDir);
    ensurePrivateFolder(paths.logsDir);
    ensurePrivateFolder(paths.spoolDir);
    ensurePrivateFolder(paths.cacheDir);
  } catch (error) {
    log.error('data plane folders not created, data plane keeps data in memory', { reason: errorText(error) });
  }
}

function agentArguments(options: Options, paths: EdgePaths, run: RunPaths): string[] {
  const args = ['--state-dir', paths.stateDir, '--run-dir', run.runDir];
  args.push('--ban-capacity', String(options.integer('ban-capacity')));
  for (const name of ['kernel-bans', 'nft-bin', 'nft-table', 'log-level']) {
    const value = options.text(name);
    if (value !== undefined) args.push(`--${name}`, value);
  }
  for (const peer of options.list('proxy-peers')) args.push('--proxy-peers', peer);
  return args;
}

/** One lock for the folder and one per address. */
function takeLocks(paths: EdgePaths, listen: readonly string[], log: Log): Lock[] | undefined {
  const locks: Lock[] = [];
  const wanted: [string, () => Lock | undefined][] = [[paths.stateDir, () => lockFolder(paths.stateDir)]];
  for (const address of new Set(listen)) wanted.push([address, () => lockAddress(address)]);
  for (const [what, take] of wanted) {
    const lock = take();
    if (!lock) {
      log.error('another supervisor already uses this folder or address', { what });
      for (const held of locks) held.remove();
      return undefined;
    }
    locks.push(lock);
  }
  return locks;
}

/** The first address on which another process listens. What the holder has is ours. */
async function takenAddress(listen: readonly string[], held: readonly HeldSocket[]): Promise<string | undefined> {
  const ours = new Set(held.map((socket) => `${socket.network} ${socket.address}`));
  for (const address of listen) if (!ours.has(`tcp ${address}`) && (await isTaken(address))) return address;
  return undefined;
}

async function removeTable(options: Options, paths: EdgePaths, owner: ProcessMark, log: Log): Promise<void> {
  if (options.text('kernel-bans') === 'off') return;
  try {
    const identity = loadIdentity(paths.stateDir);
    const table = options.text('nft-table') ?? (identity && defaultTableName(identity.nodeId));
    if (table !== undefined) await deleteOwnTable(options.required('nft-bin'), table, owner);
  } catch (error) {
    log.debug('no kernel ban table to delete', { reason: errorText(error) });
  }
}

/** Path of an executable file, looked up on PATH when it is a bare name. */
function findExecutable(name: string): string | undefined {
  const candidates = name.includes('/')
    ? [resolve(name)]
    : (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder || '.', name));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
