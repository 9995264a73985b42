import type { Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { formatDomain } from '../../contract/scalars/domain.ts';
import { type Delivery, deliveryOf, isUnderWay, situationNow } from '../../models/overview/delivery.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export type SiteOutput = Output<typeof sites.get>;
type Sql = Runtime['pools']['api'];

/** Sites as the contract shows them, in the order given. */
export async function presentSites(sql: Sql, rows: readonly SiteRow[]): Promise<SiteOutput[]> {
  let deliveries = await deliveryOf(sql, rows);
  if ([...deliveries.values()].some(isUnderWay)) deliveries = await deliveryOf(sql, rows, situationNow);
  return rows.map((row) => presentWith(row, deliveries.get(row.id)!));
}

export function presentWith(row: SiteRow, delivery: Delivery): SiteOutput {
  return {
    id: row.id,
    name: row.name,
    enabled: row.enabled,
    clusterId: row.clusterId,
    clusterName: row.clusterName,
    domains: row.domains.map(formatDomain),
    origins: row.origins,
    originSettings: row.originSettings,
    contentSettings: row.contentSettings,
    ports: row.ports,
    cacheRules: row.cacheRules,
    cacheSettings: row.cacheSettings,
    delivery,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
