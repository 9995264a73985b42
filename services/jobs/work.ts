// Works on long jobs, a while on each in turn, so that a short one does not wait for a long one.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { LongJobKind } from '../../mixins/long-job.ts';
import {
  endTooLarge,
  type LeasedJob,
  leaseLongJob,
  MAX_FILE_BYTES,
  noteLongJobFailure,
  releaseLongJob,
  storeLongJobPart,
} from '../../models/jobs/long-job.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const compress = promisify(gzip);
/** Characters of a part, about. */
const PART_LENGTH = 512 * 1024;
const TURN_MS = 5_000;

type Kind = LongJobKind<never>;

/** Works until no job is open or the signal aborts. */
export async function workOnJobs(runtime: Runtime, kinds: readonly Kind[], signal: AbortSignal): Promise<void> {
  const names = kinds.map(({ name }) => name);
  const { pools } = runtime;
  const bulk = { ...runtime, pools: { ...pools, api: pools.jobs } };
  while (!signal.aborted) {
    const job = await leaseLongJob(pools.jobs, names);
    if (!job) return;
    const kind = kinds.find(({ name }) => name === job.kind)!;
    try {
      await workOn(bulk, kind, job, AbortSignal.any([signal, AbortSignal.timeout(TURN_MS)]));
    } catch (err) {
      runtime.log.error({ err, jobId: job.id, kind: job.kind }, 'long job failed');
      await noteLongJobFailure(pools.jobs, job);
    }
  }
}

async function workOn(runtime: Runtime, kind: Kind, job: LeasedJob, turn: AbortSignal): Promise<void> {
  const sql = runtime.pools.jobs;
  const input = job.input as never;
  let { position } = job;
  let bytes = Number(job.bytes);
  do {
    let text = '';
    let fileName: string | undefined;
    let next: string | null = position;
    do {
      const piece = await kind.piece(runtime, input, next);
      text += piece.text;
      fileName ??= piece.fileName;
      next = piece.next;
    } while (next !== null && text.length < PART_LENGTH);
    const body = await compress(text);
    bytes += body.length;
    if (bytes > MAX_FILE_BYTES) return endTooLarge(sql, job);
    const progress = next === null ? 100 : Math.min(99, Math.max(0, Math.floor(kind.progress(input, next))));
    if (!(await storeLongJobPart(sql, job, { body, next, progress, fileName }))) return;
    if (next === null) return;
    position = next;
  } while (!turn.aborted);
  await releaseLongJob(sql, job);
}
