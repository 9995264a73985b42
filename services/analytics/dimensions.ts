import type { Input, Output } from '../../contract/procedure.ts';
import {
  type analytics,
  BROWSERS,
  DEVICES,
  HTTP_VERSIONS,
  SYSTEMS,
  TLS_VERSIONS,
} from '../../contract/resources/analytics.ts';
import { LISTED, type TopListName } from '../../models/traffic/top-list.ts';
import { nodesWithout } from '../../models/traffic/traffic-nodes.ts';
import { trafficRows } from '../../models/traffic/traffic-series.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { levelOf, periodOf, presentSpan } from './span.ts';
import { subjectOf } from './subject.ts';
import { listedKeys } from './top-requests.ts';
import { TrafficSum, whole } from './traffic-sum.ts';

const MOST_COUNTRIES = 250;
/** Networks whose name changed have several keys. */
const MOST_NETWORK_KEYS = 2 * LISTED;

export async function readDimensions(
  { pools }: Pick<Runtime, 'pools'>,
  { siteId, clusterId, ...asked }: Input<typeof analytics.dimensions>,
): Promise<Output<typeof analytics.dimensions>> {
  const span = periodOf(asked, Date.now());
  const subject = subjectOf({ siteId, clusterId });
  const listed = (list: TopListName, limit: number) => listedKeys({ pools }, { list, span, subject, limit });
  const [rows, unsupportedNodes, unlistedNodes, countries, networks, referrers] = await Promise.all([
    trafficRows(pools.api, {
      kind: subject.kind,
      ids: [subject.id],
      seconds: levelOf(span),
      from: span.from,
      to: span.to,
    }),
    nodesWithout(pools.api, 'statistics-v1', subject),
    nodesWithout(pools.api, 'top-lists-v1', subject),
    listed('country', MOST_COUNTRIES),
    listed('network', MOST_NETWORK_KEYS),
    listed('referrer', LISTED),
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
    countries: countries.map(({ key, ...counts }) => ({ country: key, ...counts })),
    networks: networksOf(networks),
    referrers: referrers.map(({ key, ...counts }) => ({ host: key, ...counts })),
    unsupportedNodes,
    unlistedNodes,
  };
}

/** A network once, by the name that it had most often. */
function networksOf(keys: Awaited<ReturnType<typeof listedKeys>>): Output<typeof analytics.dimensions>['networks'] {
  const networks = new Map<number, Output<typeof analytics.dimensions>['networks'][number]>();
  for (const { key, requests, bytesSent } of keys) {
    const [number] = key.split(' ', 1);
    const asn = Number(number);
    const network = networks.get(asn);
    if (network) {
      network.requests += requests;
      network.bytesSent += bytesSent;
    } else networks.set(asn, { asn, name: key.slice(number!.length + 1), requests, bytesSent });
  }
  return [...networks.values()].sort((a, b) => b.requests - a.requests || a.asn - b.asn).slice(0, LISTED);
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
