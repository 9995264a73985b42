import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { REASONS } from '../../contract/reasons.ts';
import type { revisions } from '../../contract/resources/revisions.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { revisionPage } from '../../models/config/config-revision.ts';
import { subjectsOf } from '../../models/config/revision-subject.ts';
import { isUndoable } from '../../models/config/undoable.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Throws CLUSTER_NOT_FOUND. */
export async function listRevisions(
  { pools }: Runtime,
  { id, ...page }: Input<typeof revisions.revisions>,
): Promise<Output<typeof revisions.revisions>> {
  if (!(await Cluster.query(pools.api).findById(id).select('id'))) return fail('CLUSTER_NOT_FOUND');
  const { limit, offset } = pageOf(page);
  const { rows, total } = await revisionPage(pools.api, id, limit, offset);
  const subjects = await subjectsOf(pools.api, rows);
  return {
    items: rows.map((row, index) => ({
      clusterId: row.clusterId,
      revision: row.number,
      contentHash: row.setHash.toString('hex'),
      entryCount: Number(row.entryCount),
      siteCount: Number(row.siteCount),
      canaryOnly: row.canaryOnly,
      reason: REASONS[row.reason] ?? row.reason,
      reasonCode: row.reason,
      reasonParams: row.params,
      actor: row.actor,
      subject: subjects[index] ?? null,
      changed: row.changed,
      undoable: isUndoable(row.reason, row.changed),
      createdAt: row.createdAt.toISOString(),
    })),
    total,
  };
}
