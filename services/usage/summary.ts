// Usage as a page shows it.
import { ContractError } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { UsagePoint as Point, usage } from '../../contract/resources/usage.ts';
import { usageGaps } from '../../models/usage/usage-gap.ts';
import { DAY_SECONDS, HOUR_SECONDS, WINDOW_SECONDS } from '../../models/usage/usage-totals.ts';
import { type UsagePoint, type UsageSpan, usageBySite, usagePoints } from '../../models/usage/usage-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isoOf, summedRange } from './range.ts';

const MOST_POINTS = 400;
/** Below the time that a call may take: what is given up is given up here. */
const STATEMENT_MS = 8_000;
/** PostgreSQL: a statement took longer than it may. */
const CANCELED = '57014';

const SUMS = ['requests', 'bytesSent', 'bytesReceived'] as const;
const NOTHING = { requests: '0', bytesSent: '0', bytesReceived: '0' };

/** Throws USAGE_RANGE_INVALID. */
export async function usageSummary(
  { pools }: Pick<Runtime, 'pools'>,
  input: Input<typeof usage.summary>,
): Promise<Output<typeof usage.summary>> {
  const range = summedRange(input);
  const bucketSeconds = bucketOf(range);
  const { points, completeUntil } = await usagePoints(pools.api, range, input.siteId ?? null, bucketSeconds);
  const totals = Object.fromEntries(
    SUMS.map((name) => [name, String(points.reduce((sum, point) => sum + BigInt(point[name]), 0n))]),
  ) as typeof NOTHING;
  return { bucketSeconds, points: filled(points, range, bucketSeconds), totals, completeUntil: isoOf(completeUntil) };
}

/** Seconds of the shortest step that makes at most 400 points; of days there are never more. */
export function bucketOf({ from, to }: UsageSpan): number {
  const fitting = [WINDOW_SECONDS, HOUR_SECONDS].find((seconds) => to - from <= MOST_POINTS * seconds * 1000);
  return fitting ?? DAY_SECONDS;
}

/** A point for each step that the range touches. */
function filled(points: readonly UsagePoint[], { from, to }: UsageSpan, bucketSeconds: number): Point[] {
  const ms = bucketSeconds * 1000;
  const byStart = new Map(points.map((point) => [point.start, point]));
  const all: Point[] = [];
  for (let start = Math.floor(from / ms) * ms; start < to; start += ms) {
    all.push({ ...(byStart.get(start) ?? NOTHING), start: isoOf(start) });
  }
  return all;
}

/** Throws USAGE_RANGE_INVALID, and SERVICE_UNAVAILABLE where summing every site of a long range takes too long. */
export async function listUsageSites(
  { pools }: Pick<Runtime, 'pools'>,
  input: Input<typeof usage.sites>,
): Promise<Output<typeof usage.sites>> {
  const range = summedRange(input);
  try {
    return await pools.api.transaction(async (trx) => {
      await trx.raw(`set local statement_timeout = ${STATEMENT_MS}`);
      return usageBySite(trx, range, input, pageOf(input));
    });
  } catch (error) {
    if ((error as { code?: string }).code !== CANCELED) throw error;
    throw new ContractError('SERVICE_UNAVAILABLE', { retryAfterSeconds: 10 }, error);
  }
}

/** Throws USAGE_RANGE_INVALID. */
export async function listUsageGaps(
  { pools }: Pick<Runtime, 'pools'>,
  input: Input<typeof usage.gaps>,
): Promise<Output<typeof usage.gaps>> {
  const { items, total } = await usageGaps(pools.api, summedRange(input), input.siteId ?? null, pageOf(input));
  return {
    items: items.map(({ from, to, recordedAt, ...gap }) => ({
      ...gap,
      from: from.toISOString(),
      to: to.toISOString(),
      recordedAt: recordedAt.toISOString(),
    })),
    total,
  };
}
