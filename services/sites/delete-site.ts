import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { abandonBans } from '../../models/bans/gone-site.ts';
import { releaseDefaultSite } from '../../models/clusters/unknown-hosts-setting.ts';
import { siteOwner } from '../../models/config/entry-owner.ts';
import { publish } from '../../models/config/publish.ts';
import { clusterOfSite, lockSite, deleteSite as removeSite } from '../../models/sites/site.ts';
import { rememberDeletedSite } from '../../models/usage/deleted-site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/**
 * Deletes a site and ends its role as default site. Its bans are gone for whoever looks; a job lifts them. Throws
 * SITE_NOT_FOUND.
 */
export async function deleteSite(
  runtime: Runtime,
  input: Input<typeof sites.delete>,
  call: Call,
): Promise<Output<typeof sites.delete>> {
  const clusterId = (await clusterOfSite(runtime.pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    // The cluster before the site, as whoever sets the default site does.
    const released = await releaseDefaultSite(tx.sql, clusterId, input.id);
    const site = (await lockSite(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    await removeSite(tx.sql, site.id);
    await rememberDeletedSite(tx, site, clusterId);
    const bans = await abandonBans(tx, site.id);
    const revision = await publish(tx, {
      clusterId,
      entries: released,
      ends: [siteOwner(site.id)],
      reason: 'site_deleted',
      params: { site: site.name, siteId: site.id },
      audit: { action: 'site.delete', target: { type: 'site', id: site.id, name: site.name }, metadata: { bans } },
    });
    return { revision };
  });
}
