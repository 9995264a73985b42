import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { changes } from '../../contract/resources/changes.ts';
import {
  type ChangeAbout,
  type Progress,
  readBanProgress,
  readRevisionProgress,
} from '../../models/change-progress.ts';
import { subjectsOf } from '../../models/revision-subject.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Tells how far a change has come; CHANGE_NOT_FOUND when there is or was none of that id. */
export async function getChange(
  { pools }: Runtime,
  { id }: Input<typeof changes.get>,
): Promise<Output<typeof changes.get>> {
  const ban = /^ban=([0-9]+):([0-9]+)$/.exec(id);
  const [clusterId = '', revision = ''] = id.split('=');
  const progress = ban
    ? await readBanProgress(pools.api, { epoch: ban[1]!, seq: ban[2]! })
    : await readRevisionProgress(pools.api, clusterId, revision);
  if (!progress) return fail('CHANGE_NOT_FOUND');
  const { publishedAt, firstAppliedAt, lastAppliedAt, about, ...rest } = progress;
  return {
    id,
    kind: ban ? 'ban' : 'config',
    ...rest,
    subject: await subjectOf(pools.api, progress, about),
    publishedAt: publishedAt.toISOString(),
    firstAppliedAt: firstAppliedAt?.toISOString() ?? null,
    lastAppliedAt: lastAppliedAt?.toISOString() ?? null,
  };
}

async function subjectOf(
  sql: Runtime['pools']['api'],
  { clusterId, reason }: Progress,
  about: ChangeAbout,
): Promise<Output<typeof changes.get>['subject']> {
  if ('banId' in about) return { type: 'ban', id: about.banId, name: about.cidr ?? '', exists: about.inForce };
  const [subject] = await subjectsOf(sql, [{ ...about, clusterId: clusterId!, reason }]);
  return subject ?? null;
}
