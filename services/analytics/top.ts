import { ContractError } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { analytics } from '../../contract/resources/analytics.ts';
import { summedUntil, type TopAsked, type TopRow, topTraffic } from '../../models/traffic/traffic-top.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { periodOf } from './span.ts';
import { whole } from './traffic-sum.ts';

const WINDOW_MS = 300_000;
/** Below the time that a call may take: what is given up is given up here. */
const STATEMENT_MS = 8_000;
/** PostgreSQL: a statement took longer than it may. */
const CANCELED = '57014';

export const AMOUNT_OF = { requests: 'requests', bytesSent: 'bytes_sent' } as const;

/** Throws ANALYTICS_PERIOD_INVALID, and SERVICE_UNAVAILABLE where summing takes too long. */
export async function readTop(
  runtime: Pick<Runtime, 'pools'>,
  kind: 'site' | 'node',
  { metric = 'requests', limit = 5, clusterId, ...asked }: Input<typeof analytics.topSites>,
): Promise<Output<typeof analytics.topSites>> {
  const span = await summedSpan(runtime, kind, periodOf(asked, Date.now()));
  const { items, total } = await topOf(runtime, kind, {
    ...span,
    by: AMOUNT_OF[metric],
    limit,
    ...(clusterId !== undefined && { clusterId }),
  });
  return {
    items: items.map(({ clusterId, clusterName, ...item }) => ({
      ...item,
      parentId: clusterId,
      parentName: clusterName,
      requests: whole(item.requests),
      bytesSent: whole(item.bytesSent),
      cacheHits: whole(item.cacheHits),
      cacheMisses: whole(item.cacheMisses),
    })),
    total,
  };
}

/** Throws SERVICE_UNAVAILABLE where summing takes too long. */
export async function topOf(
  { pools }: Pick<Runtime, 'pools'>,
  kind: 'site' | 'node',
  asked: Omit<TopAsked, 'kind'>,
): Promise<{ items: TopRow[]; total: number }> {
  try {
    return await pools.api.transaction(async (trx) => {
      await trx.raw(`set local statement_timeout = ${STATEMENT_MS}`);
      return topTraffic(trx, { kind, ...asked });
    });
  } catch (error) {
    if ((error as { code?: string }).code !== CANCELED) throw error;
    throw new ContractError('SERVICE_UNAVAILABLE', { retryAfterSeconds: 10 }, error);
  }
}

/** The whole windows of a range; of sites up to where they are summed. */
export async function summedSpan(
  { pools }: Pick<Runtime, 'pools'>,
  kind: 'site' | 'node',
  { from, to }: { from: number; to: number },
): Promise<{ from: number; to: number }> {
  const first = Math.floor(from / WINDOW_MS) * WINDOW_MS;
  const last = Math.ceil(to / WINDOW_MS) * WINDOW_MS;
  return { from: first, to: kind === 'node' ? last : Math.max(first, Math.min(last, await summedUntil(pools.api))) };
}
