// Notices that the database is not the one it was, and begins a new epoch then.
import { readBanTarget } from '../models/ban-feed.ts';
import { readConfigHead } from '../models/config-history.ts';
import { beginEpoch, readHistory } from '../models/epoch.ts';
import { withOneConnection } from './one-connection.ts';
import type { Runtime } from './runtime.ts';

/** Nodes cannot make the console begin epochs faster than this: their word alone starts one. */
const NODE_CLAIM_PAUSE_MS = 60_000;

/** Begins a new epoch; `expected` is the epoch the reason was found under. Answers whether this call began it. */
export async function startNewEpoch(runtime: Runtime, why: string, expected?: string): Promise<boolean> {
  const { epoch, begun } = await beginEpoch(runtime.pools.api, why, expected);
  if (begun) runtime.log.warn({ why, epoch }, 'a new epoch began, every node compares its state');
  return begun;
}

/** At start and at each reconnect: another server, or another timeline of the same, means lost or older data. */
export async function checkHistory(runtime: Runtime): Promise<void> {
  const { epoch, same } = await readHistory(runtime.pools.api);
  if (!same) await startNewEpoch(runtime, 'database_replaced', epoch);
}

export interface NodeClaim {
  clusterId: string;
  config?: { epoch: bigint; revision: bigint };
  bans?: { epoch: bigint; sequence: bigint };
}

/**
 * For a node that reports a position beyond its target: begins a new epoch when the database really is behind it.
 * Answers whether it did; false as well within a minute of the last epoch.
 */
export async function noteNodeAhead(runtime: Runtime, { clusterId, config, bans }: NodeClaim): Promise<boolean> {
  // Read after the report came in: what a node has was committed before it was sent.
  const head = await readConfigHead(runtime.pools.channel, clusterId);
  const target = await readBanTarget(runtime.pools.channel, clusterId);
  const ahead =
    (config !== undefined && head !== null && config.epoch === head.epoch && config.revision > head.revision) ||
    (bans !== undefined && bans.epoch === target.epoch && bans.sequence > target.sequence);
  if (!ahead || Date.now() - Number(target.epoch) < NODE_CLAIM_PAUSE_MS) return false;
  return startNewEpoch(runtime, 'node_ahead', target.epoch.toString());
}

/** For whoever restored a dump into the same server, which nothing can notice by itself. Answers the new epoch. */
export async function declareRestored(databaseUrl: string): Promise<string> {
  return withOneConnection(databaseUrl, async (sql) => (await beginEpoch(sql, 'declared_restored')).epoch);
}
