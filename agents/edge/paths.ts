// Names inside the state folder.
import { join } from 'node:path';

export interface EdgePaths {
  stateDir: string;
  runDir: string;
  configJournal: string;
  banJournal: string;
  statsLedger: string;
  supervisorFile: string;
  socket: string;
  caddyConfig: string;
  statusFile: string;
}

export function edgePaths(stateDir: string): EdgePaths {
  const runDir = join(stateDir, 'run');
  return {
    stateDir,
    runDir,
    configJournal: join(stateDir, 'config.journal'),
    banJournal: join(stateDir, 'bans.journal'),
    statsLedger: join(stateDir, 'stats.json'),
    supervisorFile: join(stateDir, 'supervisor.lock'),
    socket: join(runDir, 'edge.sock'),
    caddyConfig: join(runDir, 'caddy.json'),
    statusFile: join(runDir, 'status.json'),
  };
}
