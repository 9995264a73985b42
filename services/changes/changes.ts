import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type changes, LISTED_CHANGES } from '../../contract/resources/changes.ts';
import { type AboutRevision, subjectsOf } from '../../models/config/revision-subject.ts';
import { isUndoable } from '../../models/config/undoable.ts';
import {
  type BanChangeName,
  type ChangeAbout,
  type Progress,
  type RevisionName,
  readArrivals,
  readBansProgress,
  readRevisionsProgress,
} from '../../models/overview/change-progress.ts';
import { newestManualBanChanges, newestRevisions } from '../../models/overview/overview.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];
type Change = Output<typeof changes.get>;

type ChangeName = RevisionName | BanChangeName;

/** What the id of a change names: a revision of a cluster, or a number of the ban feed. */
function changeOf(id: string): ChangeName {
  const [of = '', number = ''] = id.split('=');
  const [epoch = '', seq] = number.split(':');
  return seq === undefined ? { clusterId: of, revision: number } : { epoch, seq };
}

/** In the order of the names, with as many queries whatever their number; null where there is or was no such change. */
async function readProgress(sql: Sql, names: readonly ChangeName[]): Promise<(Progress | null)[]> {
  const revisions = names.filter((name) => 'revision' in name);
  const bans = names.filter((name) => 'seq' in name);
  const [ofRevisions, ofBans] = [
    revisions.length > 0 ? await readRevisionsProgress(sql, revisions) : [],
    bans.length > 0 ? await readBansProgress(sql, bans) : [],
  ];
  return names.map((name) => ('revision' in name ? ofRevisions.shift()! : ofBans.shift()!));
}

/** Those that there are or were, in the order of their ids. */
async function findChanges(sql: Sql, ids: readonly string[]): Promise<Change[]> {
  const read = await readProgress(sql, ids.map(changeOf));
  const known = read.flatMap((progress, index) => (progress ? [{ id: ids[index]!, progress }] : []));
  const published = known.flatMap(({ progress }) => aboutRevision(progress) ?? []);
  const subjects = await subjectsOf(sql, published);
  return known.map(({ id, progress }) => {
    const { publishedAt, firstAppliedAt, lastAppliedAt, about, ...rest } = progress;
    return {
      id,
      kind: 'changed' in about ? 'config' : 'ban',
      ...rest,
      subject: 'banId' in about ? subjectOfBan(about) : (subjects.shift() ?? null),
      undoable: 'changed' in about && isUndoable(rest.reason, about.changed),
      publishedAt: publishedAt.toISOString(),
      firstAppliedAt: firstAppliedAt?.toISOString() ?? null,
      lastAppliedAt: lastAppliedAt?.toISOString() ?? null,
    };
  });
}

/** Tells how far a change has come; CHANGE_NOT_FOUND when there is or was none of that id. */
export async function getChange({ pools }: Runtime, { id }: Input<typeof changes.get>): Promise<Change> {
  const [change] = await findChanges(pools.api, [id]);
  return change ?? fail('CHANGE_NOT_FOUND');
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
  const listed = newest.slice(0, LISTED_CHANGES).map(({ id }) => id);
  return { items: await findChanges(sql, listed) };
}

/** Nodes that a change concerns, those that have not applied it first; CHANGE_NOT_FOUND when there is or was none. */
export async function listChangeNodes(
  { pools }: Runtime,
  { id, ...page }: Input<typeof changes.nodes>,
): Promise<Output<typeof changes.nodes>> {
  const named = changeOf(id);
  const { items, total } = await readArrivals(pools.api, named, pageOf(page));
  if (total === 0 && !(await readProgress(pools.api, [named]))[0]) return fail('CHANGE_NOT_FOUND');
  return {
    items: items.map((item) => ({ ...item, appliedAt: item.appliedAt && new Date(item.appliedAt).toISOString() })),
    total,
  };
}

function aboutRevision({ clusterId, reason, about }: Progress): AboutRevision | null {
  return 'changed' in about ? { ...about, clusterId: clusterId!, reason } : null;
}

function subjectOfBan({ banId, cidr, inForce }: Extract<ChangeAbout, { banId: string }>): Change['subject'] {
  return { type: 'ban', id: banId, name: cidr ?? '', exists: inForce };
}
