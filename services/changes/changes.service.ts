// Follows changes to the nodes, and lists the revisions they made.
import type { ServiceSchema } from 'moleculer';
import { changes } from '../../contract/resources/changes.ts';
import { revisions } from '../../contract/resources/revisions.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { getChange } from './changes.ts';
import { listRevisions } from './revisions.ts';

export const roles: readonly Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'changes',
  mixins: [
    contractService([
      implement(changes.get, (input) => getChange(runtime, input)),
      implement(revisions.revisions, (input) => listRevisions(runtime, input)),
    ]),
  ],
});
