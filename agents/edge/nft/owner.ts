// Whose a table is stands in its comment: node, process and the process's namespace. The comment goes with the table, so it is
// there for everybody who sees the table, and for nobody else to forge than for those who could delete the table as well.
import { readlinkSync } from 'node:fs';
import { isAlive, type ProcessMark } from '../../kit/process-info.ts';
import { runNft } from './run-nft.ts';

export interface TableOwner {
  nodeId: string;
  mark: ProcessMark;
  /** Number of the namespace in which the pid means something; "" when the table does not say. */
  namespace: string;
}

/** The comment for a table of this node; what an nft script cannot hold is left out. */
export function ownerComment(nodeId: string, owner: ProcessMark): string {
  const node = nodeId.replace(/[^A-Za-z0-9_-]/g, '').slice(0, 64);
  return `node=${node} pid=${owner.pid} start=${owner.startTime} ns=${ownNamespace()}`;
}

/** The table with its handle, and its owner where it names one; undefined when there is no such table. */
export async function readTable(
  nftBin: string,
  table: string,
): Promise<{ handle: number; owner: TableOwner | undefined } | undefined> {
  const listing = await runNft(nftBin, ['list', 'tables', 'inet']);
  if (!listing.split('\n').includes(`table inet ${table}`)) return undefined;
  const text = await runNft(nftBin, ['-t', '-a', 'list', 'table', 'inet', table]);
  const handle = /^table inet \S+ \{ # handle (\d+)/m.exec(text);
  if (!handle) throw new Error(`nft did not return the handle of the table ${table}`);
  const comment = /^\s*comment "node=(\S+) pid=(\d+) start=(\d+)(?: ns=(\d+))?"/m.exec(text);
  const owner = comment && {
    nodeId: comment[1]!,
    mark: { pid: Number(comment[2]), startTime: comment[3]! },
    namespace: comment[4] ?? '',
  };
  return { handle: Number(handle[1]), owner: owner ?? undefined };
}

/** Whether the table belongs to this living process. */
export function isSameOwner(owner: TableOwner, mark: ProcessMark): boolean {
  return isOfOurs(owner) && owner.mark.pid === mark.pid && owner.mark.startTime === mark.startTime;
}

/**
 * Whether the owner may be alive. What runs in another namespace cannot be seen: it counts as alive, unless it was this
 * node itself, of which the lock of its folder lets only one run.
 */
export function mayLive(owner: TableOwner, nodeId: string): boolean {
  return isOfOurs(owner) ? isAlive(owner.mark) : owner.nodeId !== nodeId;
}

function isOfOurs({ namespace }: TableOwner): boolean {
  return namespace === '' || namespace === ownNamespace();
}

function ownNamespace(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
}
