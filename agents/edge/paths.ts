// Names inside the state folder.
import { join } from 'node:path';
import { UsageError } from '../kit/options.ts';

/** Longest path a unix socket can have on Linux, bytes. */
const SOCKET_PATH_MAX = 107;

export interface EdgePaths {
  stateDir: string;
  runDir: string;
  /** What Caddy may read; everything else in the state folder is the agent's alone. */
  edgeDir: string;
  configJournal: string;
  banJournal: string;
  securityJournal: string;
  challengeKeys: string;
  /** What the data plane said last that it can do. */
  capabilities: string;
  statsLedger: string;
  supervisorFile: string;
  socket: string;
  caddyConfig: string;
  statusFile: string;
}

/** Throws UsageError when the folder is too deep for a socket in it. */
export function edgePaths(stateDir: string): EdgePaths {
  const runDir = join(stateDir, 'run');
  const socket = join(runDir, 'edge.sock');
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX) {
    throw new UsageError(
      `--state-dir is too long: ${socket} exceeds the ${SOCKET_PATH_MAX} bytes of a unix socket's path`,
    );
  }
  const edgeDir = join(stateDir, 'edge');
  return {
    stateDir,
    runDir,
    edgeDir,
    configJournal: join(edgeDir, 'config.journal'),
    banJournal: join(edgeDir, 'bans.journal'),
    securityJournal: join(edgeDir, 'security.journal'),
    challengeKeys: join(edgeDir, 'challenge-keys.json'),
    capabilities: join(stateDir, 'capabilities.json'),
    statsLedger: join(stateDir, 'stats.json'),
    supervisorFile: join(stateDir, 'supervisor.lock'),
    socket,
    caddyConfig: join(runDir, 'caddy.json'),
    statusFile: join(runDir, 'status.json'),
  };
}
