// Logged requests of a site as CSV: a thousand at once, all of them by a long job.
import type { Input, Output } from '../../contract/procedure.ts';
import { logs } from '../../contract/resources/logs.ts';
import { startLongJob } from '../../mixins/long-job.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { CSV_HEAD, csvOf } from './lines.ts';
import { logExportJob } from './log-export.job.ts';
import { present } from './query.ts';
import { logReader, readSearch, withinBudget } from './search.ts';

const MAX_LINES = 1000;

/** Throws the contract's errors. */
export async function exportLogs(
  runtime: Pick<Runtime, 'pools'>,
  input: Input<typeof logs.export>,
): Promise<Output<typeof logs.export>> {
  const search = await readSearch(runtime, input);
  const rows = await withinBudget(logReader(runtime).page(search, null, MAX_LINES + 1));
  const entries = await present(runtime, rows.slice(0, MAX_LINES));
  return { csv: CSV_HEAD + entries.map(csvOf).join(''), truncated: rows.length > MAX_LINES };
}

/** Throws the contract's errors. */
export async function startLogExport(
  runtime: Runtime,
  input: Input<typeof logs.startExport>,
  call: Call,
): Promise<Output<typeof logs.startExport>> {
  const { siteId: id, from, to, filter } = await readSearch(runtime, input);
  const range = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const job = { id, ...range, filter, format: input.format ?? 'csv' };
  return write(runtime, call, { status: logs.startExport.status }, (tx) => startLongJob(tx, logExportJob, job));
}
