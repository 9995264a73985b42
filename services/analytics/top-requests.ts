import type { Input, Output } from '../../contract/procedure.ts';
import type { analytics } from '../../contract/resources/analytics.ts';
import { listSecondsOf, type TopListName, topKeys } from '../../models/traffic/top-list.ts';
import { nodesWithout } from '../../models/traffic/traffic-nodes.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { periodOf, presentSpan, type Span } from './span.ts';
import { type Subject, subjectOf } from './subject.ts';
import { whole } from './traffic-sum.ts';

const LIST_OF = { url: 'url', ip: 'address' } as const;

/** Throws ANALYTICS_PERIOD_INVALID and ANALYTICS_QUERY_INVALID. */
export async function readTopRequests(
  { pools }: Pick<Runtime, 'pools'>,
  { by = 'url', siteId, clusterId, limit = 10, ...asked }: Input<typeof analytics.topRequests>,
): Promise<Output<typeof analytics.topRequests>> {
  const span = periodOf(asked, Date.now());
  const subject = subjectOf({ siteId, clusterId });
  const [items, unsupportedNodes] = await Promise.all([
    listedKeys({ pools }, { list: LIST_OF[by], span, subject, limit }),
    nodesWithout(pools.api, 'top-lists-v1', subject),
  ]);
  const { range, from, to } = presentSpan({ ...span, ...listsOf(span) });
  return { range, from, to, items: items.map(({ key, ...counts }) => ({ value: key, ...counts })), unsupportedNodes };
}

/** Whole lists that a span touches. */
function listsOf({ from, to }: Pick<Span, 'from' | 'to'>) {
  const seconds = listSecondsOf({ from, to }, Date.now());
  const ms = seconds * 1000;
  return { seconds, from: Math.floor(from / ms) * ms, to: Math.ceil(to / ms) * ms };
}

/** Keys of a list with the most requests in a span. */
export async function listedKeys(
  { pools }: Pick<Runtime, 'pools'>,
  { list, span, subject, limit }: { list: TopListName; span: Span; subject: Subject; limit: number },
): Promise<{ key: string; requests: number; bytesSent: number }[]> {
  const keys = await topKeys(pools.api, { subject: subject.id, list, ...listsOf(span), limit });
  return keys.map(({ key, requests, bytesSent }) => ({ key, requests: whole(requests), bytesSent: whole(bytesSent) }));
}
