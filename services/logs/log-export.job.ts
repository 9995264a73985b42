// All logged requests of a range as a file.
import { fail } from '../../contract/errors.ts';
import type { LOG_FORMATS } from '../../contract/resources/logs.ts';
import type { LongJobKind } from '../../mixins/long-job.ts';
import type { LogFilterFields } from '../../models/logs/log-reader.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { CSV_HEAD, csvOf, jsonOf } from './lines.ts';
import { present } from './query.ts';
import { logReader } from './search.ts';

export interface LogExportInput {
  id: string;
  from: string;
  to: string;
  filter: LogFilterFields;
  format: (typeof LOG_FORMATS)[number];
}

/** Rows of a piece. */
const AT_ONCE = 2_000;
const PERCENT = 100;

export const logExportJob: LongJobKind<LogExportInput> = {
  name: 'log_export',
  async piece(runtime, { id, from, to, filter, format }, after) {
    if ((await clusterOfSite(runtime.pools.api, id)) === undefined) fail('SITE_NOT_FOUND');
    const search = { siteId: id, from: Date.parse(from), to: Date.parse(to), filter };
    const rows = await logReader(runtime).page(search, after === null ? null : readCursor(after), AT_ONCE + 1);
    const page = rows.slice(0, AT_ONCE);
    const lineOf = format === 'csv' ? csvOf : jsonOf;
    const lines = (await present(runtime, page)).map(lineOf).join('');
    return {
      text: after === null && format === 'csv' ? CSV_HEAD + lines : lines,
      next: rows.length > AT_ONCE ? writeCursor(page.at(-1)!) : null,
      ...(after === null && { fileName: `logs-${compact(from)}-${compact(to)}.${format}` }),
    };
  },
  progress({ from, to }, next) {
    const place = readCursor(next);
    const [first, last] = [Date.parse(from), Date.parse(to)];
    // The latest rows come first.
    return place ? (PERCENT * (last - place.at)) / (last - first) : 0;
  },
};

/** 20260101T0000 */
function compact(time: string): string {
  return time.slice(0, 16).replaceAll(/[-:]/g, '');
}
