import type { Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import type { Tx } from '../../mixins/write.ts';
import { publish } from '../../models/publish.ts';
import { labelSite, siteById } from '../../models/site.ts';
import { presentSite } from './present-site.ts';

export type SiteChange = Output<typeof sites.update>;

/** Publishes the site as it is now and answers it with the revision. */
export async function publishSite(tx: Tx, id: string, reason: string): Promise<SiteChange> {
  const site = (await siteById(tx.sql, id))!;
  await labelSite(tx.sql, id, site.name);
  const revision = await publish(tx, {
    clusterId: site.clusterId,
    entries: [{ kind: 'site', id }],
    reason,
    params: { site: site.name, siteId: id },
  });
  return { site: await presentSite(tx.sql, site), revision };
}
