// Heads of clusters as PostgreSQL has them: what Redis is compared with, and what counts when Redis is away.

import { CHALLENGE_KEYS } from '../../../models/clusters/challenge-key.ts';
import { SESSION_TICKET_KEYS } from '../../../models/clusters/session-ticket-key.ts';
import { readConfigHeads } from '../../../models/config/config-history.ts';
import { neededCapabilities } from '../../../models/config/needed-capabilities.ts';
import { canaryMembers } from '../../../models/rollouts/cluster-canary.ts';
import type { FeedSource, FeedTarget } from '../../../runtime/feeds.ts';
import type { Pools } from '../../../runtime/runtime.ts';
import { type ClusterHeads, CONFIG } from './cluster-feed.ts';

const NOTHING = { stable: new Set<string>(), canary: new Set<string>() };

/** By cluster id; clusters that are gone are absent. `sources`: of the feeds, by name. */
export async function readHeads(
  { channel: pool }: Pools,
  sources: ReadonlyMap<string, FeedSource>,
  clusterIds: readonly string[],
): Promise<Map<string, ClusterHeads>> {
  const others = [...sources].filter(([name]) => name !== CONFIG);
  const [configs, features, keys, ticketKeys, ...targets] = await Promise.all([
    readConfigHeads(pool, clusterIds),
    neededCapabilities(pool, clusterIds),
    CHALLENGE_KEYS.versions(pool, clusterIds),
    SESSION_TICKET_KEYS.versions(pool, clusterIds),
    ...others.map(([, source]) => source.targets(clusterIds)),
  ]);
  const trying = [...configs].flatMap(([id, { canary }]) => (canary ? [id] : []));
  const members = await canaryMembers(pool, trying);
  const heads = new Map<string, ClusterHeads>();
  for (const [clusterId, config] of configs) {
    const found = new Map<string, FeedTarget>();
    for (const [index, [name]] of others.entries()) {
      const target = targets[index]!.get(clusterId);
      if (target) found.set(name, target);
    }
    // Made or deleted between two reads.
    if (found.size < others.length) continue;
    const keysVersion = keys.get(clusterId) ?? 0n;
    const ticketKeysVersion = ticketKeys.get(clusterId) ?? 0n;
    const needed = features.get(clusterId) ?? NOTHING;
    const canary = config.canary && {
      ...config.canary,
      features: needed.canary,
      members: members.get(clusterId) ?? new Set<string>(),
    };
    heads.set(clusterId, { config, canary, others: found, features: needed.stable, keysVersion, ticketKeysVersion });
  }
  return heads;
}
