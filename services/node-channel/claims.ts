// Where nodes say they are. A node that is ahead of the database proves with its mark that the database has forgotten
// something; without a valid one it has to start over, and nobody else hears of it.
import { create } from '@bufbuild/protobuf';
import { Counter, type Registry } from 'prom-client';
import { judgeClaim } from '../../pipeline/history.ts';
import { type ConfigPosition, ConfigPositionSchema } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Target } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { FeedPlace, PositionReport } from '../../runtime/feed-wire.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeIdentity } from './identity.ts';
import { type ClusterFeed, CONFIG } from './watch/cluster-feed.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const LOG_EVERY_MS = 60_000;

/** Where a node says it is; what is missing it does not say. */
export interface Claim {
  config?: ConfigPosition | undefined;
  /** Of other feeds whose places carry marks, by name. */
  feeds: ReadonlyMap<string, FeedPlace>;
}

const NONE: ReadonlySet<string> = new Set();

/** What a report claims of the feeds that the node is sent. */
export function claimOf(cluster: ClusterFeed, node: NodeIdentity, report: PositionReport): Claim {
  const feeds = new Map<string, FeedPlace>();
  for (const { feed } of cluster.othersOf(node)) {
    const place = feed.wire.isMarked ? feed.wire.told(report) : undefined;
    if (place) feeds.set(feed.name, place);
  }
  return { config: report.config, feeds };
}

/** What may have been forgotten, judged from memory: everything else needs no look into the database. */
export function mayBeForgotten(cluster: Pick<ClusterFeed, 'headOf' | 'tracks'>, { config, feeds }: Claim): boolean {
  if (config !== undefined && isBeyond(config, cluster.headOf(config.track))) return true;
  for (const [name, { epoch, sequence }] of feeds) {
    const track = cluster.tracks.get(name);
    if (track && (epoch === track.epoch ? sequence > track.ring.head : epoch > track.epoch)) return true;
  }
  return false;
}

function isBeyond(claimed: ConfigPosition, { epoch, track, revision, setHash }: ConfigPosition): boolean {
  if (claimed.epoch !== epoch) return claimed.epoch > epoch;
  if (claimed.revision !== revision) return claimed.revision > revision;
  // Of a canary that ended its own numbers are all that is known.
  return claimed.track === track && revision > 0n && Buffer.compare(claimed.setHash, setHash) !== 0;
}

/**
 * Judges by the database where a node says it is: a new epoch begins when it has forgotten what it gave the node. Answers
 * the feeds in which the node is ahead without a proof, and so has to start over.
 */
export async function judge(
  { runtime, hub }: { runtime: Runtime; hub: WatchHub },
  node: NodeIdentity,
  claim: Claim,
): Promise<{ unproven: ReadonlySet<string>; began: boolean }> {
  const { unproven, began } = await judgeClaim(runtime, { clusterId: node.clusterId, ...claim });
  if (began) await hub.compare();
  for (const feed of unproven) unprovenPositions(runtime.metrics).inc({ feed });
  if (unproven.size > 0) tell(runtime, node, claim);
  return { unproven, began };
}

/** Judges what a heartbeat says; see {@link judge}. */
export async function judgeHeartbeat(
  context: { runtime: Runtime; hub: WatchHub },
  cluster: ClusterFeed,
  node: NodeIdentity,
  claim: Claim,
): Promise<ReadonlySet<string>> {
  return mayBeForgotten(cluster, claim) ? (await judge(context, node, claim)).unproven : NONE;
}

/**
 * The target of a node that has to start over: its own revision with another hash, of which it asks for the buckets that
 * differ, and another epoch of other feeds, of which it asks for everything.
 */
export function ownTarget(
  { feeds }: Pick<Runtime, 'feeds'>,
  target: Target,
  unproven: ReadonlySet<string>,
  claim: Claim,
): Target {
  for (const name of unproven) {
    if (name !== CONFIG) feeds.get(name).wire.aim?.(target, NOWHERE);
    else if (claim.config && claim.config.epoch === target.config?.epoch) {
      const { epoch, track, revision, setHash } = claim.config;
      target.config = create(ConfigPositionSchema, { epoch, track, revision, setHash: anotherHash(setHash) });
    }
  }
  return target;
}

const NOWHERE = { epoch: 0n, sequence: 0n };

function anotherHash(hash: Uint8Array): Uint8Array {
  const other = new Uint8Array(32);
  other.set(hash.subarray(0, other.length));
  return other.map((byte) => byte ^ 0xff);
}

/** When a node was last told of. */
const told = new WeakMap<NodeIdentity, number>();

function tell({ log }: Runtime, node: NodeIdentity, { config, feeds }: Claim): void {
  const now = Date.now();
  if (now - (told.get(node) ?? Number.NEGATIVE_INFINITY) < LOG_EVERY_MS) return;
  told.set(node, now);
  log.warn(
    {
      nodeId: node.nodeId,
      clusterId: node.clusterId,
      config: config && `${config.epoch}/${config.revision}`,
      ...Object.fromEntries([...feeds].map(([name, { epoch, sequence }]) => [name, `${epoch}/${sequence}`])),
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
