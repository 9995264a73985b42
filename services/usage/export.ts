// All records of a range as CSV, in pieces: each a page of GET /usage, with the names of sites.
import type { Input } from '../../contract/procedure.ts';
import { type usage, WINDOW_MS } from '../../contract/resources/usage.ts';
import type { Piece } from '../../mixins/contract-service.ts';
import { csvLine, textCell } from '../../mixins/csv.ts';
import { type UsageRow, usageInRange } from '../../models/usage/usage-record.ts';
import { siteNames, type UsageSpan } from '../../models/usage/usage-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { isoOf, summedRange } from './range.ts';

/** Records of a piece. */
const AT_ONCE = 2_000;
const HEAD = [
  'window_start',
  'window_end',
  'site_id',
  'site_name',
  'requests',
  'bytes_sent',
  'bytes_received',
  'revision',
  'updated_at',
];

/** The piece after the one whose `next` is given. Throws USAGE_RANGE_INVALID. */
export async function exportUsage(
  { pools }: Pick<Runtime, 'pools'>,
  input: Input<typeof usage.export>,
  after: string | null,
): Promise<Piece> {
  const range = summedRange(input);
  const records = await usageInRange(
    pools.api,
    {
      from: new Date(range.from),
      to: new Date(range.to),
      siteId: input.siteId ?? null,
      after: after === null ? null : readCursor(after),
    },
    AT_ONCE + 1,
  );
  const rows = records.rows.slice(0, AT_ONCE);
  const names = await siteNames(pools.api, [...new Set(rows.map(({ siteId }) => siteId))]);
  const lines = rows.map((row) => lineOf(row, names.get(row.siteId) ?? '')).join('');
  return {
    text: after === null ? csvLine(HEAD) + lines : lines,
    next: records.rows.length > AT_ONCE ? writeCursor(rows.at(-1)!) : null,
    ...(after === null && { fileName: fileNameOf(range) }),
  };
}

function lineOf({ windowStart, siteId, requests, bytesSent, ...row }: UsageRow, name: string): string {
  return csvLine([
    isoOf(windowStart),
    isoOf(windowStart + WINDOW_MS),
    textCell(siteId),
    textCell(name),
    requests,
    bytesSent,
    row.bytesReceived,
    row.revision,
    isoOf(row.updatedAt),
  ]);
}

/** usage-20260101T0000-20260201T0000.csv */
function fileNameOf({ from, to }: UsageSpan): string {
  const [first, last] = [from, to].map((time) => isoOf(time).slice(0, 16).replaceAll(/[-:]/g, ''));
  return `usage-${first}-${last}.csv`;
}
