import type { ServiceSchema } from 'moleculer';
import { clusters } from '../../contract/resources/clusters.ts';
import { nodeGroups } from '../../contract/resources/node-groups.ts';
import { regions } from '../../contract/resources/regions.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createClusterProcedure, deleteCluster, getCluster, listClusters, updateCluster } from './clusters.ts';
import { createNodeGroup, deleteNodeGroup, listNodeGroups, updateNodeGroup } from './node-groups.ts';
import { createRegion, deleteRegion, listRegions, updateRegion } from './regions.ts';

export const roles: Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'clusters',
  mixins: [
    contractService([
      implement(clusters.list, (input) => listClusters(runtime, input)),
      implement(clusters.get, (input) => getCluster(runtime, input)),
      implement(clusters.create, (input, call) => createClusterProcedure(runtime, input, call)),
      implement(clusters.update, (input, call) => updateCluster(runtime, input, call)),
      implement(clusters.delete, (input, call) => deleteCluster(runtime, input, call)),
      implement(nodeGroups.list, (input) => listNodeGroups(runtime, input)),
      implement(nodeGroups.create, (input, call) => createNodeGroup(runtime, input, call)),
      implement(nodeGroups.update, (input, call) => updateNodeGroup(runtime, input, call)),
      implement(nodeGroups.delete, (input, call) => deleteNodeGroup(runtime, input, call)),
      implement(regions.list, (input) => listRegions(runtime, input)),
      implement(regions.create, (input, call) => createRegion(runtime, input, call)),
      implement(regions.update, (input, call) => updateRegion(runtime, input, call)),
      implement(regions.delete, (input, call) => deleteRegion(runtime, input, call)),
    ]),
  ],
});
