import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { revisions } from '../../contract/resources/revisions.ts';
import { Cluster } from '../../models/cluster.ts';
import { latestRevisions } from '../../models/config-revision.ts';
import { subjectsOf } from '../../models/revision-subject.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const SHOWN = 20;

export async function listRevisions(
  { pools }: Runtime,
  { id }: Input<typeof revisions.revisions>,
): Promise<Output<typeof revisions.revisions>> {
  if (!(await Cluster.query(pools.api).findById(id).select('id'))) return fail('CLUSTER_NOT_FOUND');
  const rows = await latestRevisions(pools.api, id, SHOWN);
  const subjects = await subjectsOf(pools.api, rows);
  return {
    items: rows.map((row, index) => ({
      clusterId: row.clusterId,
      revision: row.number,
      contentHash: row.setHash.toString('hex'),
      entryCount: Number(row.entryCount),
      reasonCode: row.reason,
      reasonParams: row.params,
      actor: row.actor,
      subject: subjects[index] ?? null,
      changed: row.changed,
      createdAt: row.createdAt.toISOString(),
    })),
  };
}
