// Where nodes say they are. A node that is ahead of the database proves with its mark that the database has forgotten
// something; without a valid one it has to start over, and nobody else hears of it.
import { create } from '@bufbuild/protobuf';
import { Counter, type Registry } from 'prom-client';
import { judgeClaim } from '../../pipeline/history.ts';
import { type BanPosition, BanPositionSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { type ConfigPosition, ConfigPositionSchema } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Target } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeIdentity } from './identity.ts';
import type { ClusterFeed } from './watch/cluster-feed.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const LOG_EVERY_MS = 60_000;

/** Where a node says it is; undefined where it does not say. */
export interface Claim {
  config: ConfigPosition | undefined;
  bans: BanPosition | undefined;
}

/** Feeds in which a node has to start over. */
export interface Unproven {
  config: boolean;
  bans: boolean;
}

const NONE: Unproven = { config: false, bans: false };

/** What may have been forgotten, judged from memory: everything else needs no look into the database. */
export function mayBeForgotten(feed: Pick<ClusterFeed, 'headOf' | 'bans'>, { config, bans }: Claim): boolean {
  const { epoch, ring } = feed.bans;
  return (
    (config !== undefined && isBeyond(config, feed.headOf(config.track))) ||
    areBeyond(bans, { epoch, sequence: ring.head })
  );
}

function isBeyond(claimed: ConfigPosition, { epoch, track, revision, setHash }: ConfigPosition): boolean {
  if (claimed.epoch !== epoch) return claimed.epoch > epoch;
  if (claimed.revision !== revision) return claimed.revision > revision;
  // Of a canary that ended its own numbers are all that is known.
  return claimed.track === track && revision > 0n && Buffer.compare(claimed.setHash, setHash) !== 0;
}

function areBeyond(
  claimed: BanPosition | undefined,
  { epoch, sequence }: Pick<BanPosition, 'epoch' | 'sequence'>,
): boolean {
  if (!claimed || claimed.epoch !== epoch) return claimed !== undefined && claimed.epoch > epoch;
  return claimed.sequence > sequence;
}

/**
 * Judges by the database where a node says it is: a new epoch begins when it has forgotten what it gave the node. Answers
 * where the node is ahead without a proof.
 */
export async function judge(
  { runtime, hub }: { runtime: Runtime; hub: WatchHub },
  node: NodeIdentity,
  claim: Claim,
): Promise<Unproven & { began: boolean }> {
  const { unproven, began } = await judgeClaim(runtime, { clusterId: node.clusterId, ...claim });
  if (began) await hub.compare();
  for (const name of ['config', 'bans'] as const)
    if (unproven[name]) unprovenPositions(runtime.metrics).inc({ feed: name });
  if (unproven.config || unproven.bans) tell(runtime, node, claim);
  return { ...unproven, began };
}

/** Judges what a heartbeat says; see {@link judge}. */
export async function judgeHeartbeat(
  context: { runtime: Runtime; hub: WatchHub },
  feed: ClusterFeed,
  node: NodeIdentity,
  claim: Claim,
): Promise<Unproven> {
  return mayBeForgotten(feed, claim) ? judge(context, node, claim) : NONE;
}

/**
 * The target of a node that has to start over: its own revision with another hash, of which it asks for the buckets that
 * differ, and another epoch of bans, of which it asks for everything.
 */
export function ownTarget(target: Target, unproven: Unproven, claim: Claim): Target {
  if (unproven.config && claim.config && claim.config.epoch === target.config?.epoch) {
    const { epoch, track, revision, setHash } = claim.config;
    target.config = create(ConfigPositionSchema, { epoch, track, revision, setHash: anotherHash(setHash) });
  }
  if (unproven.bans) target.bans = create(BanPositionSchema);
  return target;
}

function anotherHash(hash: Uint8Array): Uint8Array {
  const other = new Uint8Array(32);
  other.set(hash.subarray(0, other.length));
  return other.map((byte) => byte ^ 0xff);
}

/** When a node was last told of. */
const told = new WeakMap<NodeIdentity, number>();

function tell({ log }: Runtime, node: NodeIdentity, { config, bans }: Claim): void {
  const now = Date.now();
  if (now - (told.get(node) ?? Number.NEGATIVE_INFINITY) < LOG_EVERY_MS) return;
  told.set(node, now);
  log.warn(
    {
      nodeId: node.nodeId,
      clusterId: node.clusterId,
      config: config && `${config.epoch}/${config.revision}`,
      bans: bans && `${bans.epoch}/${bans.sequence}`,
    },
    'node reports a position ahead of the database without proof, node restarts its feed',
  );
}

const counters = new WeakMap<Registry, Counter<'feed'>>();

function unprovenPositions(registry: Registry): Counter<'feed'> {
  const known = counters.get(registry);
  if (known) return known;
  const counter = new Counter({
    name: 'svc_unproven_positions_total',
    help: 'Positions ahead of the database that nodes reported without a valid mark.',
    labelNames: ['feed'],
    registers: [registry],
  });
  counters.set(registry, counter);
  return counter;
}
