import type { Input, Output } from '../../contract/procedure.ts';
import { usage } from '../../contract/resources/usage.ts';
import { startLongJob } from '../../mixins/long-job.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { summedRange } from './range.ts';
import { usageExportJob } from './usage-export.job.ts';

/** Throws USAGE_RANGE_INVALID and JOB_LIMIT. */
export async function startUsageExport(
  runtime: Runtime,
  { from, to, siteId }: Input<typeof usage.startExport>,
  call: Call,
): Promise<Output<typeof usage.startExport>> {
  summedRange({ from, to });
  return write(runtime, call, { status: usage.startExport.status }, (tx) =>
    startLongJob(tx, usageExportJob, { from, to, ...(siteId === undefined ? {} : { siteId }) }),
  );
}
