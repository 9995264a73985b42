import type { ServiceSchema } from 'moleculer';
import { nodes } from '../../contract/resources/nodes.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nodeMetrics } from './node-metrics.ts';
import { deleteNode, getNode, listNodes, setNodeStatus, updateNode } from './nodes.ts';
import { setNodeAddresses } from './set-addresses.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'nodes',
  mixins: [
    contractService([
      implement(nodes.list, (input) => listNodes(runtime, input)),
      implement(nodes.get, (input) => getNode(runtime, input)),
      implement(nodes.metrics, (input) => nodeMetrics(runtime, input)),
      implement(nodes.update, (input, call) => updateNode(runtime, input, call)),
      implement(nodes.setAddresses, (input, call) => setNodeAddresses(runtime, input, call)),
      implement(nodes.disable, (input, call) => setNodeStatus(runtime, input, 'disabled', call)),
      implement(nodes.enable, (input, call) => setNodeStatus(runtime, input, 'active', call)),
      implement(nodes.delete, (input, call) => deleteNode(runtime, input, call)),
    ]),
  ],
});
