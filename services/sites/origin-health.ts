import { fail } from '../../contract/errors.ts';
import type { OriginFailure } from '../../contract/origin-failures.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { MAX_HEALTH_ENTRIES, type originHealth } from '../../contract/resources/origin-health.ts';
import type { Origin } from '../../contract/resources/site-origins.ts';
import { type NodeReport, originReports, type ReportedOrigin } from '../../models/sites/origin-health.ts';
import { originIds } from '../../models/sites/site.entry.ts';
import { siteById } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { trafficOf } from './origin-traffic.ts';

type Health = Output<typeof originHealth.originHealth>['items'][number];
type Entry = Health['nodes'][number];

/** Throws SITE_NOT_FOUND. */
export async function originHealthOf(
  { pools }: Runtime,
  { id }: Input<typeof originHealth.originHealth>,
): Promise<Output<typeof originHealth.originHealth>> {
  const site = (await siteById(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const { reports, activeNodes } = await originReports(pools.api, site.clusterId, id);
  const checked = site.enabled && site.originSettings.activeHealthCheck.enabled;
  const ids = originIds(site.origins);
  const items = site.origins.map((origin, index): Health => {
    const entries = reports.flatMap((report) => entriesOf(report, ids[index]!, origin, checked));
    const down = entries.filter(({ healthy }) => !healthy);
    const up = entries.filter(({ healthy }) => healthy);
    const traffic = reports.flatMap((report) => report.traffic.filter(({ originId }) => originId === ids[index]));
    const { address, scheme, port, backup, group } = origin;
    return {
      address,
      scheme,
      port,
      backup,
      group,
      downNodes: new Set(down.map(({ nodeId }) => nodeId)).size,
      onlineNodes: reports.length,
      totalNodes: activeNodes,
      ...latestFailure(entries),
      traffic: trafficOf(traffic),
      nodes: [...down, ...up].slice(0, MAX_HEALTH_ENTRIES),
    };
  });
  return { items, total: items.length };
}

/** What one node says of an origin; of one that a cut report does not name, nothing is known. */
function entriesOf(report: NodeReport, originId: string, origin: Origin, checked: boolean): Entry[] {
  const sources = [false, ...(checked && report.checks ? [true] : [])];
  return sources.flatMap((active): Entry[] => {
    const told = report.origins.find((one) => one.originId === originId && one.active === active);
    return told || !report.cut ? [entryOf(report, active, told, origin)] : [];
  });
}

function entryOf(report: NodeReport, active: boolean, told: ReportedOrigin | undefined, origin: Origin): Entry {
  return {
    nodeId: report.nodeId,
    nodeName: report.nodeName,
    source: active ? 'active' : 'passive',
    healthy: told?.healthy ?? true,
    consecutiveFailures: told?.failures ?? 0,
    ...failureOf(told, origin),
    downSince: timestamp(told?.sinceMs),
    downUntil: timestamp(told?.untilMs),
    lastCheckAt: timestamp(told?.checkedMs),
    checkIntervalSeconds: told?.interval ?? null,
    reportedAt: report.reportedAt.toISOString(),
  };
}

type Failure = Pick<Entry, 'lastError' | 'lastErrorCode' | 'lastErrorParams' | 'lastFailureAt'>;

const NO_FAILURE: Failure = { lastError: null, lastErrorCode: null, lastErrorParams: {}, lastFailureAt: null };

function failureOf(told: ReportedOrigin | undefined, { address }: Origin): Failure {
  if (!told?.error) return NO_FAILURE;
  const failure = FAILURES[told.error](address, told.status);
  return {
    lastError: failure.text,
    lastErrorCode: told.error,
    lastErrorParams: failure.params,
    lastFailureAt: timestamp(told.failedMs),
  };
}

type Words = (address: string, status: number | null) => { text: string; params: Entry['lastErrorParams'] };

const FAILURES: Record<OriginFailure, Words> = {
  connect_failed: () => ({ text: 'No connection, or no valid HTTP response.', params: {} }),
  timeout: () => ({ text: 'No response in time.', params: {} }),
  upstream_status: (_, status) =>
    status === null
      ? { text: 'A response with an error status.', params: {} }
      : { text: `A response with status ${status}.`, params: { status } },
  dns_failed: (host) => ({ text: `DNS has no address for ${host}.`, params: { host } }),
  address_forbidden: (address) => ({ text: `${address} is a special-purpose address.`, params: { address } }),
  tls_failed: () => ({ text: 'The TLS handshake failed, or the certificate is not valid.', params: {} }),
};

/** That of an unhealthy entry, else of any. */
function latestFailure(entries: readonly Entry[]): Failure {
  const ranked = entries
    .filter(({ lastFailureAt }) => lastFailureAt !== null)
    .sort((a, b) => Number(a.healthy) - Number(b.healthy) || b.lastFailureAt!.localeCompare(a.lastFailureAt!));
  if (ranked.length === 0) return NO_FAILURE;
  const { lastError, lastErrorCode, lastErrorParams, lastFailureAt } = ranked[0]!;
  return { lastError, lastErrorCode, lastErrorParams, lastFailureAt };
}

function timestamp(ms: number | null | undefined): string | null {
  return ms == null ? null : new Date(ms).toISOString();
}
