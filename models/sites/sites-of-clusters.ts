// Which sites are of which cluster, also those that were deleted a while ago: nodes report them later.
import type { PoolClient } from 'pg';

/** Tells of a site whether it is of the cluster, or was until it was deleted. '' is traffic of no site. */
export type IsOfCluster = (place: { clusterId: string; siteId: string }) => boolean;

/** Knows the sites with these ids. */
export async function sitesOfClusters(client: PoolClient, siteIds: Iterable<string>): Promise<IsOfCluster> {
  const { rows } = await client.query<{ siteId: string; clusterId: string }>({
    name: 'sites-of-clusters',
    text: `select id as "siteId", cluster_id as "clusterId" from site where id = any($1)
      union all select site_id, cluster_id from deleted_site where site_id = any($1)`,
    values: [[...siteIds]],
  });
  const clusterOf = new Map(rows.map(({ siteId, clusterId }) => [siteId, clusterId]));
  return ({ siteId, clusterId }) => siteId === '' || clusterOf.get(siteId) === clusterId;
}
