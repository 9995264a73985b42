// `status`: what the agent of this machine wrote last, and whether it still lives.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readTextIfPresent } from '../../kit/files.ts';
import { startTimeOf } from '../../kit/process-info.ts';
import type { ConnectionsView, PortsView } from '../caddy/data-plane-report.ts';
import type { Options } from '../options.ts';
import { runPaths } from '../paths.ts';
import { existingRunFolders } from '../run-folder.ts';
import type { ProtectionView } from '../security/protection.ts';

const STALE_MS = 30_000;

interface Status {
  updatedAt: string;
  node: { id: string; name: string; clusterId: string; serverUrl: string };
  agent: { version: string; pid: number; certificateNotAfter: string };
  console: { connected: boolean; problem: string };
  config: {
    epoch: string;
    revision: string;
    appliedRevision: string;
    entries: number;
    failed: number;
    held?: number;
    missingFeatures?: string[];
  };
  bans: { epoch: string; sequence: string; appliedSequence: string; entries: number; unapplied: number };
  protection: ProtectionView;
  kernel: { table: string | null; entries: number; problem: string };
  dataPlane: {
    healthy: boolean;
    instance: string | null;
    version: string | null;
    sites: number;
    connections?: ConnectionsView | null;
    ports?: PortsView | null;
  };
  lastError: string;
}

export async function statusCommand(options: Options): Promise<number> {
  const stateDir = resolve(options.required('state-dir'));
  const text = newestStatus(stateDir, options.path('run-dir'));
  if (text === undefined) {
    process.stderr.write(`no agent is running in ${stateDir}\n`);
    return 1;
  }
  const status = JSON.parse(text) as Status;
  if (startTimeOf(status.agent.pid) === undefined || Date.now() - Date.parse(status.updatedAt) > STALE_MS) {
    process.stderr.write(`the agent is not running; its last status is from ${status.updatedAt}\n`);
    return 1;
  }
  process.stdout.write(options.flag('json') ? text : present(status));
  return status.console.connected && status.dataPlane.healthy ? 0 : 3;
}

/** What was written last, wherever the agent found room for it. */
function newestStatus(stateDir: string, runDir: string | undefined): string | undefined {
  if (!existsSync(stateDir)) return undefined;
  const texts = existingRunFolders(stateDir, runDir).flatMap(
    (folder) => readTextIfPresent(runPaths(folder).statusFile) ?? [],
  );
  const writtenAt = (text: string): number => Date.parse((JSON.parse(text) as Status).updatedAt);
  return texts.sort((left, right) => writtenAt(right) - writtenAt(left))[0];
}

function present(status: Status): string {
  const { node, config, bans, protection, kernel, dataPlane } = status;
  const rows: [string, string][] = [
    ['node', `${node.name} (${node.id}) of cluster ${node.clusterId}`],
    [
      'console',
      status.console.connected ? `connected to ${node.serverUrl}` : `not connected: ${status.console.problem}`,
    ],
    [
      'data plane',
      dataPlane.healthy ? `serving ${dataPlane.sites} sites, version ${dataPlane.version}` : 'not healthy',
    ],
    ['connections', connectionsText(dataPlane.connections)],
    ['ports', portsText(dataPlane.ports)],
    [
      'configuration',
      `revision ${config.revision}, applied ${config.appliedRevision}, ${config.entries} entries, ${config.failed} failed${lackingText(config)}`,
    ],
    [
      'bans',
      `sequence ${bans.sequence}, applied ${bans.appliedSequence}, ${bans.entries} bans, ${bans.unapplied} without room`,
    ],
    [
      'protection',
      `${protection.keysVersion === '0' ? 'no challenge keys' : `challenge keys ${protection.keysVersion}`}, ` +
        `${protection.ownBans} own bans, ${protection.sitesAboveNormal} sites above normal`,
    ],
    ['kernel bans', kernel.table === null ? `off: ${kernel.problem}` : `${kernel.entries} in table ${kernel.table}`],
    ['certificate', `valid until ${status.agent.certificateNotAfter}`],
    ['last error', status.lastError || 'none'],
  ];
  return rows.map(([name, value]) => `${`${name}:`.padEnd(15)}${value}\n`).join('');
}

/** Nothing where no entry is lacking; an older agent reports none. */
function lackingText({ held: lacking = 0, missingFeatures = [] }: Status['config']): string {
  if (lacking === 0) return '';
  return `, ${lacking} not applied: upgrade required${missingFeatures.length > 0 ? `, this node lacks ${missingFeatures.join(', ')}` : ''}`;
}

function connectionsText(connections: ConnectionsView | null | undefined): string {
  if (!connections) return 'unknown';
  const { open, limit, refused, evicted } = connections;
  const total = (counts: Record<string, number>) => Object.values(counts).reduce((sum, count) => sum + count, 0);
  return `${open} of at most ${limit}, ${total(refused)} refused, ${total(evicted)} closed to make room`;
}

export function portsText(ports: PortsView | null | undefined): string {
  if (!ports) return 'unknown';
  const closed = ports.problems.map(({ port, reason }) => `; ${port} is not open: ${reason}`);
  return `${ports.open.join(', ') || 'none'}${closed.join('')}`;
}
