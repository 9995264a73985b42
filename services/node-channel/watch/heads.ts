// Heads of clusters as PostgreSQL has them: what Redis is compared with, and what counts when Redis is away.
import type { Pool } from 'pg';
import { readBanTargets } from '../../../models/ban-feed.ts';
import { readKeysVersions } from '../../../models/challenge-key.ts';
import { requiredFeatures } from '../../../models/config-feature.ts';
import { readConfigHeads } from '../../../models/config-history.ts';
import type { ClusterHeads } from './cluster-feed.ts';

const NOTHING: ReadonlySet<string> = new Set();

/** By cluster id; clusters that are gone are absent. */
export async function readHeads(pool: Pool, clusterIds: readonly string[]): Promise<Map<string, ClusterHeads>> {
  const [configs, bans, features, keys] = await Promise.all([
    readConfigHeads(pool, clusterIds),
    readBanTargets(pool, clusterIds),
    requiredFeatures(pool, clusterIds),
    readKeysVersions(pool, clusterIds),
  ]);
  const heads = new Map<string, ClusterHeads>();
  for (const [clusterId, config] of configs) {
    const ban = bans.get(clusterId);
    if (!ban) continue;
    const keysVersion = keys.get(clusterId) ?? 0n;
    heads.set(clusterId, { config, bans: ban, features: features.get(clusterId) ?? NOTHING, keysVersion });
  }
  return heads;
}
