// Notices that the database is not the one it was, and begins a new epoch then.
import { readBanTarget } from '../models/bans/ban-feed.ts';
import { headOn, knowsPlace, readConfigHead } from '../models/config/config-history.ts';
import { beginEpoch, readHistory } from '../models/config/epoch.ts';
import { withOneConnection } from '../runtime/one-connection.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type BanPlaceOf, type Claimed, type ConfigPlaceOf, positionMarks } from './position-marks.ts';

/**
 * Begins a new epoch, later than `beyond`; `expected` is the epoch the reason was found under. Answers whether this call
 * began it.
 */
export async function startNewEpoch(
  runtime: Runtime,
  why: string,
  expected?: string,
  beyond?: bigint,
): Promise<boolean> {
  const { epoch, begun } = await beginEpoch(runtime.pools.api, why, expected, beyond);
  if (begun) runtime.log.warn({ why, epoch }, 'new epoch began, nodes compare their state');
  return begun;
}

/** At start and at each reconnect: another server, or another timeline of the same, means lost or older data. */
export async function checkHistory(runtime: Runtime): Promise<void> {
  const { epoch, same } = await readHistory(runtime.pools.api);
  if (!same) await startNewEpoch(runtime, 'database_replaced', epoch);
}

/** Where a node says it is. */
export interface NodeClaim {
  clusterId: string;
  config?: Claimed<ConfigPlaceOf> | undefined;
  bans?: Claimed<BanPlaceOf> | undefined;
}

export interface ClaimVerdict {
  /** Whether the node says to be ahead of the database and has no valid mark: its own problem. */
  unproven: { config: boolean; bans: boolean };
  /** Whether a new epoch began, because the database has forgotten a place that it gave the node. */
  began: boolean;
}

/**
 * Compares where a node says it is with the database. A place that the database does not have begins a new epoch when its
 * mark proves that the console gave it: nothing else that a node says does.
 */
export async function judgeClaim(runtime: Runtime, { clusterId, config, bans }: NodeClaim): Promise<ClaimVerdict> {
  // Read after the report came in: what a node has was committed before it was sent.
  const pool = runtime.pools.channel;
  const head = config ? await readConfigHead(pool, clusterId) : null;
  const target = await readBanTarget(pool, clusterId);
  const unproven = { config: false, bans: false };
  let forgotten = 0n;
  const forget = (epoch: bigint) => {
    if (epoch > forgotten) forgotten = epoch;
  };
  if (config && head && !(await knowsPlace(pool, clusterId, head, config))) {
    if ((await positionMarks(runtime)).provesConfig(clusterId, config)) forget(config.epoch);
    else unproven.config = config.epoch > head.epoch || config.revision > headOn(head, config.track).revision;
  }
  if (bans && (bans.epoch === target.epoch ? bans.sequence > target.sequence : bans.epoch > target.epoch)) {
    if ((await positionMarks(runtime)).provesBans(clusterId, bans)) forget(bans.epoch);
    else unproven.bans = true;
  }
  if (forgotten === 0n) return { unproven, began: false };
  return { unproven, began: await startNewEpoch(runtime, 'node_ahead', target.epoch.toString(), forgotten) };
}

/** For whoever restored a dump into the same server, which nothing can notice by itself. Answers the new epoch. */
export async function declareRestored(databaseUrl: string): Promise<string> {
  return withOneConnection(databaseUrl, async (sql) => (await beginEpoch(sql, 'declared_restored')).epoch);
}
