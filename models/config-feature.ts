// Capabilities that the live entries of clusters need.
import type { Pool } from 'pg';

/** By cluster id; clusters whose entries need none are absent. */
export async function requiredFeatures(
  pool: Pick<Pool, 'query'>,
  clusterIds: readonly string[],
): Promise<Map<string, Set<string>>> {
  const { rows } = await pool.query<{ cluster_id: string; features: string[] }>({
    name: 'required-features',
    text: `select cluster_id, array_agg(feature) as features from config_feature
      where cluster_id = any($1::text[]) and track = 'S' and count > 0 group by cluster_id`,
    values: [clusterIds],
  });
  return new Map(rows.map(({ cluster_id, features }) => [cluster_id, new Set(features)]));
}
