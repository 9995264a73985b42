import type { ServiceSchema } from 'moleculer';
import { clusterCacheUsage, siteCacheUsage } from '../../contract/resources/cache-usage.ts';
import { clusterCache, nodeCache } from '../../contract/resources/cache-zone.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getClusterCacheUsage, getSiteCacheUsage } from './cache-usage.ts';
import { getClusterCache, setClusterCache } from './cluster-cache.ts';
import { getNodeCache, setNodeCache } from './node-cache.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'cache',
  mixins: [
    contractService([
      implement(clusterCache.get, (input) => getClusterCache(runtime, input)),
      implement(clusterCache.set, (input, call) => setClusterCache(runtime, input, call)),
      implement(nodeCache.get, (input) => getNodeCache(runtime, input)),
      implement(nodeCache.set, (input, call) => setNodeCache(runtime, input, call)),
      implement(siteCacheUsage.usage, (input) => getSiteCacheUsage(runtime, input)),
      implement(clusterCacheUsage.usage, (input) => getClusterCacheUsage(runtime, input)),
    ]),
  ],
});
