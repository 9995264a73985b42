// Names of files: what must survive lies in the state folder, what only lives with the processes in the run folder.
import { join } from 'node:path';

export interface EdgePaths {
  stateDir: string;
  /** What Caddy may read; everything else in the state folder is the agent's alone. */
  edgeDir: string;
  configJournal: string;
  banJournal: string;
  /** Bans that a restore of the console took, until the console knows them. */
  lostBans: string;
  securityJournal: string;
  challengeKeys: string;
  sessionTicketKeys: string;
  /** Under which keys of PURGE requests are hashed. */
  purgeSecret: string;
  certificates: string;
  /** Secret of QUIC, read by Caddy. */
  quicKey: string;
  /** What Caddy counted and the agent has not taken yet. Into this folder and the next two Caddy writes, into no other here. */
  countsDir: string;
  /** Where Caddy keeps rows of request logs until the console has them. */
  logsDir: string;
  /** Where Caddy keeps request bodies until they are inspected or complete, in files without names. */
  spoolDir: string;
  /** Where Caddy keeps responses of sites that cache. */
  cacheDir: string;
  /** What the data plane said last that it can do. */
  capabilities: string;
  /** What was known of the console's clock. */
  clock: string;
  /** Counts that the console does not have yet. */
  statsFolder: string;
  /** What an older version kept of them. */
  oldStatsLedger: string;
  /** Held by the agent, and by an enrollment. */
  agentLock: string;
}

export interface RunPaths {
  runDir: string;
  supervisorFile: string;
  socket: string;
  /** Of the holder of sockets, where the supervisor runs it. */
  holdSocket: string;
  statusFile: string;
}

export function edgePaths(stateDir: string): EdgePaths {
  const edgeDir = join(stateDir, 'edge');
  return {
    stateDir,
    edgeDir,
    configJournal: join(edgeDir, 'config.journal'),
    banJournal: join(edgeDir, 'bans.journal'),
    lostBans: join(stateDir, 'lost-bans.json'),
    securityJournal: join(edgeDir, 'security.journal'),
    challengeKeys: join(edgeDir, 'challenge-keys.json'),
    certificates: join(edgeDir, 'certificates.pack'),
    sessionTicketKeys: join(edgeDir, 'session-ticket-keys.json'),
    purgeSecret: join(stateDir, 'purge-secret.json'),
    quicKey: join(edgeDir, 'quic.key'),
    countsDir: join(edgeDir, 'counts'),
    logsDir: join(edgeDir, 'logs'),
    spoolDir: join(edgeDir, 'spool'),
    cacheDir: join(edgeDir, 'cache'),
    capabilities: join(stateDir, 'capabilities.json'),
    clock: join(stateDir, 'clock.json'),
    statsFolder: join(stateDir, 'stats'),
    oldStatsLedger: join(stateDir, 'stats.json'),
    agentLock: join(stateDir, 'agent.lock'),
  };
}

/** `runDir` as run-folder.ts finds it. */
export function runPaths(runDir: string): RunPaths {
  return {
    runDir,
    supervisorFile: join(runDir, 'supervisor.lock'),
    socket: join(runDir, 'edge.sock'),
    holdSocket: join(runDir, 'hold.sock'),
    statusFile: join(runDir, 'status.json'),
  };
}
