import type { Input, Output } from '../../contract/procedure.ts';
import {
  type analytics,
  BROWSERS,
  DEVICES,
  HTTP_VERSIONS,
  SYSTEMS,
  TLS_VERSIONS,
} from '../../contract/resources/analytics.ts';
import { nodesWithout } from '../../models/traffic/traffic-nodes.ts';
import { trafficRows } from '../../models/traffic/traffic-series.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { levelOf, periodOf, presentSpan } from './span.ts';
import { TrafficSum, whole } from './traffic-sum.ts';

export async function readDimensions(
  { pools }: Pick<Runtime, 'pools'>,
  { siteId, ...asked }: Input<typeof analytics.dimensions>,
): Promise<Output<typeof analytics.dimensions>> {
  const span = periodOf(asked, Date.now());
  const subject = siteId === undefined ? { kind: 'all' as const, ids: [''] } : { kind: 'site' as const, ids: [siteId] };
  const [rows, unsupportedNodes] = await Promise.all([
    trafficRows(pools.api, { ...subject, seconds: levelOf(span), from: span.from, to: span.to }),
    nodesWithout(pools.api, 'statistics-v1', siteId ?? null),
  ]);
  const sum = new TrafficSum();
  for (const row of rows) sum.add(row);
  const { bucketSeconds: _, ...shown } = presentSpan(span);
  const { challengesIssued, challengesPassed } = sum.counts();
  return {
    ...shown,
    requests: whole(sum.requests),
    browsers: shares(sum, 'browser.', BROWSERS),
    systems: shares(sum, 'os.', SYSTEMS),
    devices: shares(sum, 'device.', DEVICES),
    httpVersions: shares(sum, 'http.', HTTP_VERSIONS),
    tlsVersions: shares(sum, 'tls.', TLS_VERSIONS),
    blockReasons: sum.named('blocked.'),
    challenges: { issued: challengesIssued, passed: challengesPassed },
    unsupportedNodes,
  };
}

/** Names come from nodes: those that no node of ours has are left out. */
function shares<T extends string>(
  sum: TrafficSum,
  prefix: string,
  names: readonly T[],
): { name: T; requests: number }[] {
  const known: ReadonlySet<string> = new Set(names);
  return sum.named(prefix).filter((item): item is { name: T; requests: number } => known.has(item.name));
}
