// Follows changes to the nodes.
import type { ServiceSchema } from 'moleculer';
import type { Output } from '../../contract/procedure.ts';
import { changes } from '../../contract/resources/changes.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { Recent } from '../../models/db/recent.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getChange, listChangeNodes, listChanges } from './changes.ts';

export const roles: readonly Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => {
  // Drawers that hear of the same event share a read.
  const recent = new Recent<Output<typeof changes.list>>(0);
  return {
    name: 'changes',
    mixins: [
      contractService([
        implement(changes.list, () => recent.now(() => listChanges(runtime))),
        implement(changes.nodes, (input) => listChangeNodes(runtime, input)),
        implement(changes.get, (input) => getChange(runtime, input)),
      ]),
    ],
  };
};
