import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { NAMED_SITES, type revisions } from '../../contract/resources/revisions.ts';
import { Cluster } from '../../models/cluster.ts';
import { revisionPlace } from '../../models/config-revision.ts';
import { planRollback } from '../../models/rollback.ts';
import { siteLabels } from '../../models/site.ts';
import { lockHead, writeRevision } from '../../models/write-revision.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/** Refuses as the rollback would. */
export async function previewRollback(
  { pools }: Runtime,
  { id, revision }: Input<typeof revisions.rollbackPreview>,
): Promise<Output<typeof revisions.rollbackPreview>> {
  const sql = pools.api;
  const { head, kept } = (await revisionPlace(sql, id, revision)) ?? fail('CLUSTER_NOT_FOUND');
  if (!kept) fail('REVISION_NOT_FOUND', { revision });
  const { differences, sites, keptDisabled } = await planRollback(sql, id, { revision, head });
  const named = (ids: readonly string[]) => siteLabels(sql, ids.slice(0, NAMED_SITES));
  return {
    revision,
    currentRevision: head === '0' ? null : head,
    unchanged: differences.length === 0,
    sites: {
      added: await named(sites.added),
      changed: await named(sites.changed),
      removed: await named(sites.removed),
    },
    siteCounts: { added: sites.added.length, changed: sites.changed.length, removed: sites.removed.length },
    keptDisabled: await named(keptDisabled),
    entryCount: differences.length,
  };
}

/**
 * Publishes what the revision had, as a new revision; saved settings stay as they are. Throws the errors of a preview.
 */
export async function rollBack(
  runtime: Runtime,
  { id, revision, note }: Input<typeof revisions.rollback>,
  call: Call,
): Promise<Output<typeof revisions.rollback>> {
  return write(runtime, call, { clusterId: id }, async (tx) => {
    const cluster = (await Cluster.query(tx.sql).findById(id).select('name')) ?? fail('CLUSTER_NOT_FOUND');
    await lockHead(tx, id, []);
    const { head, kept } = (await revisionPlace(tx.sql, id, revision)) ?? fail('CLUSTER_NOT_FOUND');
    if (!kept) fail('REVISION_NOT_FOUND', { revision });
    const { differences, sites } = await planRollback(tx.sql, id, { revision, head });
    if (differences.length === 0) return { revision: null };
    const said = { revision, ...(note === undefined ? {} : { note }) };
    const { added, changed, removed } = sites;
    const number = await writeRevision(
      tx,
      {
        clusterId: id,
        reason: 'rollback',
        params: said,
        source: 'rollback',
        audit: {
          action: 'cluster.rollback',
          target: { type: 'cluster', id, name: cluster.name },
          metadata: { ...said, added: added.length, changed: changed.length, removed: removed.length },
        },
      },
      await lockHead(tx, id, differences),
      differences,
    );
    return { revision: number };
  });
}
