// Which sites are of which cluster, also those that were deleted a while ago: nodes report them later.
import type { PoolClient } from 'pg';

/** Tells of a site whether it is of the cluster, or was until it was deleted. '' is traffic of no site. */
export type IsOfCluster = (place: { clusterId: string; siteId: string }) => boolean;

/** Knows the sites that are named here. */
export async function sitesOfClusters(
  client: PoolClient,
  places: readonly { clusterId: string; siteId: string }[],
): Promise<IsOfCluster> {
  const ids = [...new Set(places.map(({ siteId }) => siteId))].filter((id) => id !== '');
  const { rows } = await client.query<{ siteId: string; clusterId: string }>({
    name: 'sites-of-clusters',
    text: `select id as "siteId", cluster_id as "clusterId" from site where id = any($1)
      union all select site_id, cluster_id from deleted_site where site_id = any($1)`,
    values: [ids],
  });
  const known = new Set(rows.map(keyOf));
  return (place) => place.siteId === '' || known.has(keyOf(place));
}

const keyOf = ({ clusterId, siteId }: { clusterId: string; siteId: string }) => `${clusterId} ${siteId}`;
