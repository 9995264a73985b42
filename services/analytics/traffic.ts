import type { Input, Output } from '../../contract/procedure.ts';
import { type analytics, RANGES } from '../../contract/resources/analytics.ts';
import { KEPT_DAYS, LEVELS } from '../../models/traffic/traffic-columns.ts';
import { type TrafficRow, trafficRows } from '../../models/traffic/traffic-series.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { levelOf, presentSpan, type Span, spanOf, startsOf } from './span.ts';
import { TrafficSum, totalsOf } from './traffic-sum.ts';

export async function readTraffic(
  { pools }: Pick<Runtime, 'pools'>,
  { range = '24h', siteId }: Input<typeof analytics.traffic>,
): Promise<Output<typeof analytics.traffic>> {
  const span = spanOf(range, Date.now());
  const seconds = levelOf(span);
  const length = span.to - span.from;
  const before: Span = { ...span, from: span.from - length, to: span.from };
  const kept = 2 * RANGES[range].seconds <= KEPT_DAYS[LEVELS[seconds]] * 86_400;
  const subject = siteId === undefined ? { kind: 'all' as const, ids: [''] } : { kind: 'site' as const, ids: [siteId] };
  const rows = await trafficRows(pools.api, { ...subject, seconds, from: kept ? before.from : span.from, to: span.to });
  const { points, ...now } = summed(span, rows);
  return {
    ...presentSpan(span),
    points: points.map((sum, index) => ({ start: iso(startsOf(span)[index]!), ...sum.counts() })),
    totals: totalsOf(now.sum, now.mostBytes, span.bucketSeconds),
    statuses: now.sum.statuses(),
    previous: kept ? totalsOfSpan(before, rows) : null,
  };
}

/** Points of a span, their sum, and the bytes of the largest. */
function summed(span: Span, rows: readonly TrafficRow[]) {
  const ms = span.bucketSeconds * 1000;
  const points = startsOf(span).map(() => new TrafficSum());
  const sum = new TrafficSum();
  for (const row of rows) {
    if (row.start < span.from || row.start >= span.to) continue;
    points[Math.floor((row.start - span.from) / ms)]!.add(row);
    sum.add(row);
  }
  return { points, sum, mostBytes: points.reduce((most, { bytesSent }) => Math.max(most, bytesSent), 0) };
}

function totalsOfSpan(span: Span, rows: readonly TrafficRow[]) {
  const { sum, mostBytes } = summed(span, rows);
  return totalsOf(sum, mostBytes, span.bucketSeconds);
}

const iso = (ms: number) => new Date(ms).toISOString();
