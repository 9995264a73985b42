// What was published: lists revisions, tells them apart, puts an earlier one back, undoes one; and what is saved and no
// node runs.
import type { ServiceSchema } from 'moleculer';
import { revisions } from '../../contract/resources/revisions.ts';
import { unpublishedOfCluster, unpublishedOfSite } from '../../contract/resources/unpublished.ts';
import { PUBLISHING } from '../../mixins/belongings.ts';
import { contractService, type Implementation, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listRevisions } from './list-revisions.ts';
import { diffRevisions } from './revision-diff.ts';
import { previewRollback, rollBack } from './rollback.ts';
import { undoRevision } from './undo-revision.ts';
import {
  discardUnpublished,
  type Place,
  placeOfCluster,
  placeOfSite,
  publishUnpublished,
  readUnpublished,
} from './unpublished.ts';

export const roles: readonly Role[] = ['app'];
export const belongings = PUBLISHING;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'revisions',
  mixins: [
    contractService([
      implement(revisions.revisions, (input) => listRevisions(runtime, input)),
      implement(revisions.revisionDiff, (input) => diffRevisions(runtime, input)),
      implement(revisions.rollbackPreview, (input) => previewRollback(runtime, input)),
      implement(revisions.rollback, (input, call) => rollBack(runtime, input, call)),
      implement(revisions.undoRevision, (input, call) => undoRevision(runtime, input, call)),
      ...unpublished(runtime, unpublishedOfSite, placeOfSite),
      ...unpublished(runtime, unpublishedOfCluster, placeOfCluster),
    ]),
  ],
});

function unpublished(
  runtime: Runtime,
  of: typeof unpublishedOfSite | typeof unpublishedOfCluster,
  find: (runtime: Runtime, input: { id: string }) => Promise<Place>,
): Implementation[] {
  const {
    unpublished: reads,
    publishUnpublished: publishes,
    discardUnpublished: discards,
  } = of as typeof unpublishedOfSite;
  return [
    implement(reads, async (input) => readUnpublished(runtime, await find(runtime, input))),
    implement(publishes, async (input, call) => publishUnpublished(runtime, await find(runtime, input), call)),
    implement(discards, async (input, call) => discardUnpublished(runtime, await find(runtime, input), call)),
  ];
}
