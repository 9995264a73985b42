import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type changes, LISTED_CHANGES } from '../../contract/resources/changes.ts';
import { subjectsOf } from '../../models/config/revision-subject.ts';
import { isUndoable } from '../../models/config/undoable.ts';
import {
  type ChangeAbout,
  type Progress,
  readArrivals,
  readBanProgress,
  readRevisionProgress,
} from '../../models/overview/change-progress.ts';
import { newestManualBanChanges, newestRevisions } from '../../models/overview/overview.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];
type Change = Output<typeof changes.get>;

/** What the id of a change names: a revision of a cluster, or a number of the ban feed. */
function changeOf(id: string): { clusterId: string; revision: string } | { epoch: string; seq: string } {
  const [of = '', number = ''] = id.split('=');
  const [epoch = '', seq] = number.split(':');
  return seq === undefined ? { clusterId: of, revision: number } : { epoch, seq };
}

function readProgress(sql: Sql, change: ReturnType<typeof changeOf>): Promise<Progress | null> {
  return 'seq' in change ? readBanProgress(sql, change) : readRevisionProgress(sql, change.clusterId, change.revision);
}

async function findChange(sql: Sql, id: string): Promise<Change | null> {
  const named = changeOf(id);
  const progress = await readProgress(sql, named);
  if (!progress) return null;
  const { publishedAt, firstAppliedAt, lastAppliedAt, about, ...rest } = progress;
  return {
    id,
    kind: 'seq' in named ? 'ban' : 'config',
    ...rest,
    subject: await subjectOf(sql, progress, about),
    undoable: 'changed' in about && isUndoable(rest.reason, about.changed),
    publishedAt: publishedAt.toISOString(),
    firstAppliedAt: firstAppliedAt?.toISOString() ?? null,
    lastAppliedAt: lastAppliedAt?.toISOString() ?? null,
  };
}

/** Tells how far a change has come; CHANGE_NOT_FOUND when there is or was none of that id. */
export async function getChange({ pools }: Runtime, { id }: Input<typeof changes.get>): Promise<Change> {
  return (await findChange(pools.api, id)) ?? fail('CHANGE_NOT_FOUND');
}

/** The newest changes that somebody saved, newest first; one that is forgotten meanwhile is left out. */
export async function listChanges({ pools }: Runtime): Promise<Output<typeof changes.list>> {
  const sql = pools.api;
  const [published, bans] = await Promise.all([
    newestRevisions(sql, null, LISTED_CHANGES),
    newestManualBanChanges(sql, LISTED_CHANGES),
  ]);
  const newest = [
    ...published.map(({ clusterId, revision, createdAt }) => ({ id: `${clusterId}=${revision}`, at: createdAt })),
    ...bans.map(({ epoch, seq, changedAt }) => ({ id: `ban=${epoch}:${seq}`, at: changedAt })),
  ].sort((a, b) => b.at.getTime() - a.at.getTime());
  const items: Change[] = [];
  // One after the other: a page that is left open is no reason to take the connections of others.
  for (const { id } of newest.slice(0, LISTED_CHANGES)) {
    const change = await findChange(sql, id);
    if (change) items.push(change);
  }
  return { items };
}

/** Nodes that a change concerns, those that have not applied it first; CHANGE_NOT_FOUND when there is or was none. */
export async function listChangeNodes(
  { pools }: Runtime,
  { id, ...page }: Input<typeof changes.nodes>,
): Promise<Output<typeof changes.nodes>> {
  const named = changeOf(id);
  const { items, total } = await readArrivals(pools.api, named, pageOf(page));
  if (total === 0 && !(await readProgress(pools.api, named))) return fail('CHANGE_NOT_FOUND');
  return {
    items: items.map((item) => ({ ...item, appliedAt: item.appliedAt && new Date(item.appliedAt).toISOString() })),
    total,
  };
}

async function subjectOf(sql: Sql, { clusterId, reason }: Progress, about: ChangeAbout): Promise<Change['subject']> {
  if ('banId' in about) return { type: 'ban', id: about.banId, name: about.cidr ?? '', exists: about.inForce };
  const [subject] = await subjectsOf(sql, [{ ...about, clusterId: clusterId!, reason }]);
  return subject ?? null;
}
