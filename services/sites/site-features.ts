import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { SITE_FEATURES, type sites } from '../../contract/resources/sites.ts';
import { sharedCapabilities } from '../../models/clusters/cluster-settings.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Features = Output<typeof sites.features>;

/** What every active node of the site's cluster can do. Throws SITE_NOT_FOUND. */
export async function siteFeatures({ pools }: Runtime, input: Input<typeof sites.features>): Promise<Features> {
  const clusterId = (await clusterOfSite(pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  const capabilities = [...new Set(Object.values(SITE_FEATURES).map(({ capability }) => capability))];
  const shared = await sharedCapabilities(pools.api, clusterId, capabilities);
  return Object.fromEntries(
    Object.entries(SITE_FEATURES).map(([name, { capability, configured }]) => {
      const reason = !shared.has(capability) ? 'nodes' : configured ? null : 'console';
      return [name, { available: reason === null, reason }];
    }),
  ) as Features;
}
