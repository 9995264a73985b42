import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { SITE_FEATURES, type SiteFeature, type sites } from '../../contract/resources/sites.ts';
import { sharedCapabilities } from '../../models/cluster-settings.ts';
import { clusterOfSite } from '../../models/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Features = Output<typeof sites.features>;

/** The capability a node needs, and whether this version of the console configures the feature. */
const FEATURES: Record<SiteFeature, { capability: string; configured: boolean }> = {
  brotli: { capability: 'brotli-v1', configured: false },
  zstd: { capability: 'zstd-v1', configured: false },
  crs: { capability: 'modsecurity-v1', configured: false },
  activeHealthCheck: { capability: 'active-health-v1', configured: false },
  sessionAffinity: { capability: 'session-affinity-v1', configured: false },
  originHttp2: { capability: 'site-content-v1', configured: false },
  errorPages: { capability: 'site-content-v1', configured: false },
  purgeByTag: { capability: 'purge-tag-v1', configured: false },
  prefetchVariants: { capability: 'prefetch-v2', configured: false },
  siteContent: { capability: 'site-content-v1', configured: false },
  rulesV2: { capability: 'rules-v2', configured: false },
  rulesV3: { capability: 'rules-v3', configured: false },
  edgePorts: { capability: 'edge-ports-v1', configured: false },
  clientIp: { capability: 'client-ip-v1', configured: true },
};

/** What every active node of the site's cluster can do. Throws SITE_NOT_FOUND. */
export async function siteFeatures({ pools }: Runtime, input: Input<typeof sites.features>): Promise<Features> {
  const clusterId = (await clusterOfSite(pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  const capabilities = [...new Set(Object.values(FEATURES).map(({ capability }) => capability))];
  const shared = await sharedCapabilities(pools.api, clusterId, capabilities);
  return Object.fromEntries(
    SITE_FEATURES.map((name) => {
      const { capability, configured } = FEATURES[name];
      const reason = !shared.has(capability) ? 'nodes' : configured ? null : 'console';
      return [name, { available: reason === null, reason }];
    }),
  ) as Features;
}
