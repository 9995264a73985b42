import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import { DEFAULT_HTTPS } from '../../contract/resources/site-https.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { givenCache } from '../../models/cache/given-cache.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import { readOriginAllowList } from '../../models/sites/origin-allow-list.ts';
import { clusterForSite, insertSite, siteById } from '../../models/sites/site.ts';
import { keepListenPorts } from '../../models/sites/site-ports.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { assignDomains } from './assign-domains.ts';
import { assertOriginsAllowed } from './origin-policy.ts';
import { newSite, publishSite, type SiteChange } from './publish-site.ts';
import { NEW_CACHE, saveCache } from './site-cache.ts';
import { newContent } from './site-content.ts';
import { assertPorts } from './site-ports.ts';

/** Creates and publishes an enabled site. Throws the errors the contract lists. */
export async function createSite(runtime: Runtime, input: Input<typeof sites.create>, call: Call): Promise<SiteChange> {
  const content = newContent(input);
  const cache = givenCache(NEW_CACHE, input);
  const clusterId =
    (await clusterForSite(runtime.pools.api, input.clusterId)) ??
    fail(input.clusterId === undefined ? 'NO_CLUSTER' : 'CLUSTER_NOT_FOUND');
  const known = await newSite(runtime, clusterId);
  return write(runtime, call, { clusterId, status: 201 }, async (tx) => {
    if (input.ports) {
      const offered = (await keepListenPorts(tx.sql, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
      assertPorts(content.ports, offered, DEFAULT_HTTPS);
    }
    assertOriginsAllowed(content.origins, await readOriginAllowList(tx.sql));
    const id = await insertSite(tx.sql, clusterId, content, tx.now).catch((error) => {
      // The cluster was deleted meanwhile.
      if (violatedConstraint(error) === 'site_cluster_id_fkey') fail('CLUSTER_NOT_FOUND');
      throw error;
    });
    await assignDomains(tx, id, content.domains);
    await saveCache(tx, runtime.sealer, { id, clusterId, ...NEW_CACHE }, cache);
    const change = { reason: 'site_created', action: 'site.create' };
    return publishSite(tx, (await siteById(tx.sql, id))!, change, known);
  });
}
