import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { analytics } from '../../contract/resources/analytics.ts';
import type { Amount } from '../../models/traffic/traffic-columns.ts';
import { type TrafficKind, type TrafficRow, trafficRows } from '../../models/traffic/traffic-series.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { levelOf, periodOf, presentSpan, type Span, startsOf } from './span.ts';
import { subjectOf } from './subject.ts';
import { AMOUNT_OF, summedSpan, topOf } from './top.ts';
import { whole } from './traffic-sum.ts';

type Asked = Input<typeof analytics.breakdown>;
type Breakdown = Output<typeof analytics.breakdown>;
type Value = (row: TrafficRow) => number;
interface Series {
  total: number;
  series: number[];
}

/** Throws ANALYTICS_PERIOD_INVALID, and ANALYTICS_QUERY_INVALID for what is not counted. */
export async function readBreakdown(runtime: Pick<Runtime, 'pools'>, input: Asked): Promise<Breakdown> {
  const { by, siteId, clusterId, metric = 'requests', statusClass, range, from, to, limit = 10 } = input;
  const byBytes = metric === 'bytesSent';
  if ((byBytes && (by === 'status' || statusClass !== undefined)) || (by === 'node' && siteId !== undefined)) {
    fail('ANALYTICS_QUERY_INVALID');
  }
  const span = periodOf({ range, from, to }, Date.now());
  const read = (kind: TrafficKind, ids: readonly string[]) =>
    trafficRows(runtime.pools.api, { kind, ids, seconds: levelOf(span), from: span.from, to: span.to });
  const { kind, id } = subjectOf({ siteId, clusterId });
  const all = await read(kind, [id]);
  const value = readerOf(metric, statusClass);
  const { total, series: totalSeries } = seriesOf(span, all, value);
  const items =
    by === 'status'
      ? statusItems(span, all, statusClass).slice(0, limit)
      : await subjectItems(
          runtime,
          span,
          { by, siteId, clusterId, value, limit, amount: amountOf(metric, statusClass) },
          read,
        );
  return {
    ...presentSpan(span),
    times: startsOf(span).map((start) => new Date(start).toISOString()),
    items,
    total,
    totalSeries,
  };
}

function statusItems(span: Span, rows: readonly TrafficRow[], statusClass: number | undefined): Breakdown['items'] {
  const prefix = `s:${statusClass ?? ''}`;
  const keys = new Set(
    rows.flatMap(({ figures }) => Object.keys(figures ?? {})).filter((key) => key.startsWith(prefix)),
  );
  return [...keys]
    .map((key) => ({
      id: key.slice(2),
      name: key.slice(2),
      parent: null,
      ...seriesOf(span, rows, ({ figures }) => figures?.[key] ?? 0),
    }))
    .sort((a, b) => b.total - a.total || a.id.localeCompare(b.id));
}

interface SubjectsAsked {
  by: 'site' | 'node';
  siteId: string | undefined;
  clusterId: string | undefined;
  value: Value;
  amount: Amount;
  limit: number;
}

async function subjectItems(
  runtime: Pick<Runtime, 'pools'>,
  span: Span,
  { by, siteId, clusterId, value, amount, limit }: SubjectsAsked,
  read: (kind: TrafficKind, ids: readonly string[]) => Promise<TrafficRow[]>,
): Promise<Breakdown['items']> {
  const summed = await summedSpan(runtime, by, span);
  const { items } = await topOf(runtime, by, {
    ...summed,
    by: amount,
    limit,
    ...(siteId && { id: siteId }),
    ...(clusterId && { clusterId }),
  });
  const rows = await read(
    by,
    items.map(({ id }) => id),
  );
  const rowsOf = Map.groupBy(rows, ({ id }) => id);
  return items
    .map(({ id, name, clusterName }) => ({
      id,
      name,
      parent: clusterName,
      ...seriesOf(span, rowsOf.get(id) ?? [], value),
    }))
    .sort((a, b) => b.total - a.total || a.id.localeCompare(b.id));
}

function seriesOf(span: Span, rows: readonly TrafficRow[], value: Value): Series {
  const ms = span.bucketSeconds * 1000;
  const series = startsOf(span).map(() => 0);
  for (const row of rows) series[Math.floor((row.start - span.from) / ms)]! += value(row);
  return { total: whole(series.reduce((sum, n) => sum + n, 0)), series: series.map(whole) };
}

function amountOf(metric: keyof typeof AMOUNT_OF, statusClass: number | undefined): Amount {
  return statusClass === undefined ? AMOUNT_OF[metric] : (`s${statusClass}` as Amount);
}

/** Of rows with figures the class is what they say: minutes that are in no sum yet have nothing else. */
function readerOf(metric: keyof typeof AMOUNT_OF, statusClass: number | undefined): Value {
  if (statusClass === undefined) return (row) => row[metric];
  const prefix = `s:${statusClass}`;
  return ({ figures, classes }) => {
    if (!figures) return classes[statusClass - 1]!;
    return Object.entries(figures).reduce((sum, [key, n]) => (key.startsWith(prefix) ? sum + n : sum), 0);
  };
}
