// Capabilities that the live entries of clusters need.
import type { Pool } from 'pg';

/** What everybody's entries need, and those of a canary. */
export interface NeededCapabilities {
  stable: Set<string>;
  canary: Set<string>;
}

/** By cluster id; clusters whose entries need none are absent. */
export async function neededCapabilities(
  pool: Pick<Pool, 'query'>,
  clusterIds: readonly string[],
): Promise<Map<string, NeededCapabilities>> {
  const { rows } = await pool.query<{ cluster_id: string; stable: string[]; canary: string[] }>({
    name: 'needed-capabilities',
    text: `select cluster_id, coalesce(array_agg(feature) filter (where stable > 0), '{}') as stable,
        coalesce(array_agg(feature) filter (where shown > 0), '{}') as canary
      from (select cluster_id, feature, sum(count) filter (where track = 'S') as stable, sum(count) as shown
              from config_feature where cluster_id = any($1::text[]) group by cluster_id, feature) f
      group by cluster_id`,
    values: [clusterIds],
  });
  return new Map(
    rows.map(({ cluster_id, stable, canary }) => [cluster_id, { stable: new Set(stable), canary: new Set(canary) }]),
  );
}
