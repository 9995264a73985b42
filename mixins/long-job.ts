// Long jobs: work that takes minutes and ends in a file. A service folder registers a kind in `<name>.job.ts`. A job is done in
// pieces, so that another process continues where one died.

import { fail } from '../contract/errors.ts';
import type { Job } from '../contract/resources/jobs.ts';
import { addLongJob, type LongJobRow, MAX_KEPT, MAX_OPEN_OF_USER } from '../models/jobs/long-job.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Tx } from '../runtime/write.ts';
import type { Piece } from './contract-service.ts';

export interface LongJobKind<I> {
  /** Of one kind only. The Web UI names it by `job` in the words of a feature. */
  readonly name: string;
  /** The piece of the file after another; null is the first. Reads through `runtime.pools.api`, which is the jobs' own pool. */
  piece(runtime: Pick<Runtime, 'pools'>, input: I, after: string | null): Promise<Piece>;
  /** How much is done before the piece after `next`, 0 to 100. */
  progress(input: I, next: string): number;
}

/** Starts a job of the caller. Throws JOB_LIMIT. */
export async function startLongJob<I extends object>(tx: Tx, kind: LongJobKind<I>, input: I): Promise<Job> {
  const row = await addLongJob(tx.sql, tx.call.actor, kind.name, input);
  return row ? presentJob(row) : fail('JOB_LIMIT', { limit: MAX_OPEN_OF_USER, kept: MAX_KEPT });
}

export function presentJob(row: LongJobRow): Job {
  return {
    id: row.id,
    kind: row.kind,
    state: row.state,
    progress: row.progress,
    problem: row.problem,
    createdBy: { id: row.actor_id, name: row.actor_name },
    createdAt: row.created_at.toISOString(),
    finishedAt: row.finished_at?.toISOString() ?? null,
    fileName: row.file_name,
    fileExpiresAt: row.expires_at?.toISOString() ?? null,
  };
}
