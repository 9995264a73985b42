import type { Input, Output } from '../../contract/procedure.ts';
import type { analytics, TrafficPoint } from '../../contract/resources/analytics.ts';
import { type TrafficRow, trafficRows } from '../../models/traffic/traffic-series.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isKept, levelOf, periodOf, presentSpan, type Span, startsOf } from './span.ts';
import { subjectOf } from './subject.ts';
import { TrafficSum, totalsOf } from './traffic-sum.ts';

/** Throws ANALYTICS_PERIOD_INVALID and ANALYTICS_QUERY_INVALID. */
export async function readTraffic(
  { pools }: Pick<Runtime, 'pools'>,
  { siteId, clusterId, compare = false, ...asked }: Input<typeof analytics.traffic>,
): Promise<Output<typeof analytics.traffic>> {
  const now = Date.now();
  const span = periodOf(asked, now);
  const before: Span = { ...span, from: 2 * span.from - span.to, to: span.from };
  const kept = isKept(before, now);
  const { kind, id } = subjectOf({ siteId, clusterId });
  const rows = await trafficRows(pools.api, {
    kind,
    ids: [id],
    seconds: levelOf(span),
    from: kept ? before.from : span.from,
    to: span.to,
  });
  const shown = summed(span, rows);
  const previous = kept ? summed(before, rows) : null;
  return {
    ...presentSpan(span),
    points: pointsOf(span, shown),
    totals: totalsOf(shown.sum, shown.mostBytes, span.bucketSeconds),
    statuses: shown.sum.statuses(),
    previous: previous && totalsOf(previous.sum, previous.mostBytes, span.bucketSeconds),
    previousPoints: previous && compare ? pointsOf(before, previous) : null,
  };
}

function pointsOf(span: Span, { points }: ReturnType<typeof summed>): TrafficPoint[] {
  const starts = startsOf(span);
  return points.map((sum, index) => ({ start: new Date(starts[index]!).toISOString(), ...sum.counts() }));
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
