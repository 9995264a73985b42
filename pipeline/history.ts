// Notices that the database is not the one it was, and begins a new epoch then.
import { readBanTarget } from '../models/bans/ban-feed.ts';
import { headOn, knowsPlace, readConfigHead } from '../models/config/config-history.ts';
import { beginEpoch, beginRestoredEpoch, readHistory } from '../models/config/epoch.ts';
import type { FeedTarget } from '../runtime/feeds.ts';
import { withOneConnection } from '../runtime/one-connection.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Claimed, type ConfigPlaceOf, type FeedPlaceOf, positionMarks } from './position-marks.ts';

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
  /** Places in other feeds, by name. */
  feeds?: ReadonlyMap<string, Claimed<FeedPlaceOf>>;
}

export interface ClaimVerdict {
  /** Feeds in which the node says to be ahead of the database and has no valid mark: its own problem. */
  unproven: ReadonlySet<string>;
  /** Whether a new epoch began, because the database has forgotten a place that it gave the node. */
  began: boolean;
}

/**
 * Compares where a node says it is with the database. A place that the database does not have begins a new epoch when its
 * mark proves that the console gave it: nothing else that a node says does.
 */
export async function judgeClaim(
  runtime: Runtime,
  { clusterId, config, feeds = new Map() }: NodeClaim,
): Promise<ClaimVerdict> {
  // Read after the report came in: what a node has was committed before it was sent.
  const pool = runtime.pools.channel;
  const head = config ? await readConfigHead(pool, clusterId) : null;
  const { epoch } = await readBanTarget(pool, clusterId);
  const unproven = new Set<string>();
  let forgotten = 0n;
  const forget = (epoch: bigint) => {
    if (epoch > forgotten) forgotten = epoch;
  };
  if (config && head && !(await knowsPlace(pool, clusterId, head, config))) {
    if ((await positionMarks(runtime)).provesConfig(clusterId, config)) forget(config.epoch);
    else if (config.epoch > head.epoch || config.revision > headOn(head, config.track).revision) unproven.add('config');
  }
  for (const [name, place] of feeds) {
    const target = (await runtime.feeds.get(name).source(runtime).targets([clusterId])).get(clusterId);
    if (!target || !isBeyond(place, target)) continue;
    if ((await positionMarks(runtime)).provesFeed(name, clusterId, place)) forget(place.epoch);
    else unproven.add(name);
  }
  if (forgotten === 0n) return { unproven, began: false };
  return { unproven, began: await startNewEpoch(runtime, 'node_ahead', epoch.toString(), forgotten) };
}

function isBeyond(place: FeedPlaceOf, { epoch, position }: FeedTarget): boolean {
  return place.epoch === epoch ? place.sequence > position : place.epoch > epoch;
}

/** For whoever restored a dump into the same server, which nothing can notice by itself. Answers the new epoch. */
export async function declareRestored(databaseUrl: string): Promise<string> {
  return withOneConnection(databaseUrl, (sql) => beginRestoredEpoch(sql, 'declared_restored'));
}
