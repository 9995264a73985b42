import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { jobs } from '../../contract/resources/jobs.ts';
import type { Piece } from '../../mixins/contract-service.ts';
import { presentJob } from '../../mixins/long-job.ts';
import {
  cancelLongJob,
  type LongJobRow,
  longJobById,
  longJobCount,
  longJobPage,
  longJobPart,
} from '../../models/jobs/long-job.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

const decompress = promisify(gunzip);

export async function listJobs(
  { pools }: Runtime,
  { page = 1, pageSize = 50 }: Input<typeof jobs.list>,
): Promise<Output<typeof jobs.list>> {
  const [rows, total] = await Promise.all([
    longJobPage(pools.api, pageSize, (page - 1) * pageSize),
    longJobCount(pools.api),
  ]);
  return { items: rows.map(presentJob), total };
}

export async function getJob({ pools }: Runtime, { id }: Input<typeof jobs.get>): Promise<Output<typeof jobs.get>> {
  return presentJob(await jobOf(pools.api, id));
}

/** Throws JOB_NOT_FOUND and JOB_FINISHED. */
export async function cancelJob(
  runtime: Runtime,
  { id }: Input<typeof jobs.cancel>,
  call: Call,
): Promise<Output<typeof jobs.cancel>> {
  return write(runtime, call, {}, async ({ sql }) => {
    await jobOf(sql, id);
    return presentJob((await cancelLongJob(sql, id)) ?? fail('JOB_FINISHED'));
  });
}

/** A piece of the file is a part of it, named by its number. Throws JOB_NOT_FOUND and JOB_FILE_UNAVAILABLE. */
export async function jobFile(
  { pools }: Runtime,
  { id }: Input<typeof jobs.file>,
  after: string | null,
): Promise<Piece> {
  const { parts, file_name: fileName } = await jobOf(pools.api, id);
  const number = after === null ? 0 : Number(after) + 1;
  const body = (await longJobPart(pools.api, id, number)) ?? fail('JOB_FILE_UNAVAILABLE');
  return {
    text: (await decompress(body)).toString(),
    next: number + 1 < parts ? String(number) : null,
    ...(after === null && fileName !== null && { fileName }),
  };
}

async function jobOf(sql: Runtime['pools']['api'], id: string): Promise<LongJobRow> {
  return (await longJobById(sql, id)) ?? fail('JOB_NOT_FOUND');
}
