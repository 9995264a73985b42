// A publication and the canary of its cluster: what is to be tried begins one, joins the one that runs, or goes to
// everybody where no node can try it.
import type { Tx } from '../../runtime/write.ts';
import { recordAudit } from '../audit/audit-entry.ts';
import {
  type CanaryMove,
  type Difference,
  type Head,
  keyOf,
  nextNumber,
  type OverlayDifference,
  type RevisionNote,
  writeRevision,
} from '../config/write-revision.ts';
import { noteCandidate, noteDirect, noteEnd, noteStart, type RolloutOutcome, settleMembers } from './cluster-canary.ts';
import { watchCandidate, watchForUndo } from './watch-change.ts';

/** What everybody gets, and what only the nodes of a canary get. */
export interface Changes {
  differences: Difference[];
  overlays: OverlayDifference[];
}

/** Writes the revision of the changes; answers its number. */
export async function publishChanges(
  tx: Tx,
  note: RevisionNote,
  head: Head,
  { differences, overlays }: Changes,
): Promise<string> {
  const { clusterId } = note;
  if (head.canary) return moveCanary(tx, note, head, { differences, overlays });
  if (overlays.length === 0) return publishDirect(tx, note, head, differences);
  const features = overlays.flatMap(({ after }) => after?.features ?? []);
  if ((await settleMembers(tx, clusterId, features)) > 0) {
    const { revision, setHash, entryCount } = head;
    const begun = { ...head, canary: { revision, setHash, entryCount, entries: [], buckets: {} } };
    const number = await writeRevision(tx, note, begun, differences, { overlays });
    await noteStart(tx, clusterId, revision, number);
    await watchCandidate(tx, clusterId, number, overlays);
    return number;
  }
  const number = await publishDirect(tx, note, head, forEverybody(differences, overlays));
  await noteDirect(tx, clusterId, number);
  await recordAudit(tx, 'cluster.rollout_direct', await clusterTarget(tx, clusterId), { revision: number });
  return number;
}

/** The cluster as a target of the audit log. */
export async function clusterTarget(tx: Tx, id: string): Promise<{ type: string; id: string; name: string }> {
  const { name } = (await tx.sql('cluster').where({ id }).first('name')) as { name: string };
  return { type: 'cluster', id, name };
}

/** A canary that has nothing over the stable entries any more ends: there is nothing to try. */
async function moveCanary(tx: Tx, note: RevisionNote, head: Head, { differences, overlays }: Changes): Promise<string> {
  const { clusterId } = note;
  const move: CanaryMove = (await isWithdrawn(tx, clusterId, overlays)) ? { ends: true } : { overlays };
  const number = await writeRevision(tx, note, head, differences, move);
  if (move.ends) {
    const outcome = (head.promoting as RolloutOutcome | null) ?? 'withdrawn';
    await noteEnd(tx, clusterId, { outcome, revision: number });
  } else {
    await noteCandidate(tx, clusterId, number);
    if (head.promoting === null) await watchCandidate(tx, clusterId, number, overlays);
  }
  return number;
}

async function publishDirect(
  tx: Tx,
  note: RevisionNote,
  head: Head,
  differences: readonly Difference[],
): Promise<string> {
  const beside = head.undoes ? watchForUndo(note.clusterId, nextNumber(head), differences) : undefined;
  return writeRevision(tx, note, head, differences, {}, beside);
}

async function isWithdrawn(tx: Tx, clusterId: string, overlays: readonly OverlayDifference[]): Promise<boolean> {
  const closed = new Set(overlays.filter(({ after }) => after === undefined).map(keyOf));
  if (closed.size < overlays.length || closed.size === 0) return false;
  const { rows } = await tx.sql.raw<{ rows: { kind: string; id: string }[] }>(
    `select kind, resource_id as id from config_entry
      where cluster_id = ? and track = 'C' and to_revision is null limit ?`,
    [clusterId, closed.size + 1],
  );
  return rows.every((row) => closed.has(keyOf(row)));
}

function forEverybody(differences: readonly Difference[], overlays: readonly OverlayDifference[]): Difference[] {
  const tried = new Set(overlays.map(keyOf));
  return [
    ...differences.filter((difference) => !tried.has(keyOf(difference))),
    ...overlays.map(({ kind, id, bucket, stable, after }): Difference => {
      // Nothing was over it before: what it becomes is all there is.
      const before = stable[0] as Difference['before'];
      return { kind, id, bucket, before, after: after ?? undefined };
    }),
  ];
}
