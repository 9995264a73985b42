// What a node reports and shows of its data plane.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { GeoIpDatabase } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeReport } from '../lib/node-report.ts';
import type { DataPlane } from './data-plane.ts';

/** Client connections of the data plane. Counts are by the name of the limit. */
export interface ConnectionsView {
  open: number;
  /** Of them without the head of a request so far. */
  waiting: number;
  limit: number;
  accepted: number;
  refused: Record<string, number>;
  evicted: Record<string, number>;
  http2Errors: Record<string, number>;
  http3Errors: Record<string, number>;
}

/** Ports of the data plane. */
export interface PortsView {
  /** By TCP. */
  open: number[];
  problems: { port: string; reason: string }[];
}

/** A GeoIP database of the data plane. */
export interface GeoipView {
  state: 'ready' | 'unavailable';
  builtAt: string | null;
  /** Why there is none, or why a newer file was not taken. */
  problem: string;
}

export function reportDataPlane(
  report: NodeReport,
  { status, healthy, message }: Pick<DataPlane, 'status' | 'healthy' | 'message'>,
): void {
  Object.assign(report.info, {
    engine: 'caddy',
    engineVersion: status?.version ?? '',
    ...(status?.geoip ? { geoip: status.geoip } : {}),
  });
  report.heartbeat.dataPlaneHealthy = healthy;
  report.heartbeat.dataPlaneInstance = status?.instanceId ?? '';
  report.shown.dataPlane = {
    healthy,
    instance: status?.instanceId ?? null,
    version: status?.version ?? null,
    sites: Number(status?.sites ?? 0n),
    connections: describeConnections(status),
    ports: describePorts(status),
    geoip: describeGeoip(status),
  };
  report.problem('serving', message);
  for (const { port, reason } of describePorts(status)?.problems ?? [])
    report.problem('serving', `port ${port}: ${reason}`);
  report.problem('lasting', status?.confinementProblem ?? '');
}

/** What the data plane listens on; null while it is silent. */
export function describePorts(status: GetStatusResponse | undefined): PortsView | null {
  if (!status) return null;
  return {
    open: status.ports,
    problems: status.portProblems.map(({ port, udp, reason }) => ({ port: `${port}${udp ? '/udp' : ''}`, reason })),
  };
}

/** Client connections and what their limits did since the data plane started; null while it is silent. */
export function describeConnections(status: GetStatusResponse | undefined): ConnectionsView | null {
  const connections = status?.connections;
  if (!status || !connections) return null;
  const counts = (byReason: Record<string, bigint>) =>
    Object.fromEntries(Object.entries(byReason).map(([reason, count]) => [reason, Number(count)]));
  return {
    open: Number(status.activeConnections),
    waiting: Number(connections.waiting),
    limit: Number(connections.limit),
    accepted: Number(connections.accepted),
    refused: counts(connections.refused),
    evicted: counts(connections.evicted),
    http2Errors: counts(connections.http2Errors),
    http3Errors: counts(connections.http3Errors),
  };
}

/** Which databases the data plane has; null while it is silent. */
function describeGeoip(status: GetStatusResponse | undefined): Record<'country' | 'asn', GeoipView> | null {
  const geoip = status?.geoip;
  if (!geoip) return null;
  const view = (database: GeoIpDatabase | undefined): GeoipView => ({
    state: database?.ready ? 'ready' : 'unavailable',
    builtAt: database?.builtAt ? new Date(Number(database.builtAt) * 1000).toISOString() : null,
    problem: database?.problem ?? '',
  });
  return { country: view(geoip.country), asn: view(geoip.asn) };
}
