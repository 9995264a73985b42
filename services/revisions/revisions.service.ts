// What was published: lists revisions, tells them apart, and puts an earlier one back.
import type { ServiceSchema } from 'moleculer';
import { revisions } from '../../contract/resources/revisions.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listRevisions } from './list-revisions.ts';
import { diffRevisions } from './revision-diff.ts';
import { previewRollback, rollBack } from './rollback.ts';

export const roles: readonly Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'revisions',
  mixins: [
    contractService([
      implement(revisions.revisions, (input) => listRevisions(runtime, input)),
      implement(revisions.revisionDiff, (input) => diffRevisions(runtime, input)),
      implement(revisions.rollbackPreview, (input) => previewRollback(runtime, input)),
      implement(revisions.rollback, (input, call) => rollBack(runtime, input, call)),
    ]),
  ],
});
