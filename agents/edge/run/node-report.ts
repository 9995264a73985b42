// What a node says about itself: to the console in heartbeats, to people in the status file.
import { create } from '@bufbuild/protobuf';
import type { BanState, GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { BanStatusSchema } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { SessionTicketKeys } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { type GeoIpDatabase, type HeartbeatRequest, NodeInfoSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeIdentity } from '../../kit/channel-client.ts';
import { interfaceAddresses, machineInfo } from '../../kit/machine.ts';
import type { SystemMetrics } from '../../kit/system-metrics.ts';
import type { AcmeAnswers } from '../acme/acme-answers.ts';
import type { BanFeed } from '../bans/ban-feed.ts';
import type { BanStore } from '../bans/ban-store.ts';
import type { DataPlane } from '../caddy/data-plane.ts';
import type { Certificates } from '../certificates/certificates.ts';
import type { ConfigFeed } from '../config/config-feed.ts';
import type { ConfigStore } from '../config/config-store.ts';
import type { SharedKeys } from '../keys/shared-keys.ts';
import type { SkippedMessages } from '../lib/skipped-messages.ts';
import type { KernelBans } from '../nft/kernel-bans.ts';
import type { Protection } from '../security/protection.ts';
import { AGENT_VERSION } from '../version.ts';
import type { NodeCapabilities } from './node-capabilities.ts';

const MAX_MESSAGE = 500;
const MAX_UNAPPLIED = 100;

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

/** The parts of a running agent that reports are made of. */
export interface NodeView {
  identity: NodeIdentity;
  nftTable: string;
  banCapacity: number;
  proxyPeers: readonly string[];
  connected: boolean;
  channelProblem: string;
  config: ConfigStore;
  bans: BanStore;
  configFeed: ConfigFeed;
  banFeed: BanFeed;
  dataPlane: DataPlane;
  protection: Protection;
  ticketKeys: SharedKeys<SessionTicketKeys>;
  acme: AcmeAnswers;
  certificates: Certificates;
  capabilities: NodeCapabilities;
  kernel: KernelBans | undefined;
  kernelProblem: string;
  /** Events of the console that cannot be decoded. */
  skippedEvents: SkippedMessages;
  metrics: SystemMetrics;
  /** Unix seconds. */
  certificateNotAfter: number;
  /** Unset until the data plane has said what it runs. */
  appliedConfig: ConfigPosition | undefined;
  failed: FailedEntry[];
  banState: BanState | undefined;
}

/** Capabilities of this node at this moment. */
export function nodeFeatures(node: Pick<NodeView, 'capabilities' | 'kernel'>): ReadonlySet<string> {
  return node.capabilities.names(node.kernel?.message === '');
}

export function buildHeartbeat(node: NodeView): Omit<Partial<HeartbeatRequest>, '$typeName' | '$unknown'> {
  const bans = node.banState;
  return {
    info: create(NodeInfoSchema, {
      ...machineInfo(),
      agentVersion: AGENT_VERSION,
      engine: 'caddy',
      engineVersion: node.dataPlane.status?.version ?? '',
      ipAddresses: interfaceAddresses(),
      features: [...nodeFeatures(node)],
      proxyPeersUnset: node.proxyPeers.length === 0,
      ...(node.dataPlane.status?.geoip ? { geoip: node.dataPlane.status.geoip } : {}),
    }),
    ...(node.appliedConfig ? { config: node.appliedConfig } : {}),
    failed: node.failed,
    bans: create(BanStatusSchema, {
      ...(bans?.position ? { position: bans.position } : {}),
      entries: bans?.entries ?? 0n,
      capacity: bans?.capacity ?? BigInt(node.banCapacity),
      unappliedIds: bans?.unappliedIds.slice(0, MAX_UNAPPLIED) ?? [],
      unapplied: bans?.unapplied ?? 0n,
      autoEvicted: bans?.autoEvicted ?? 0n,
      ...(node.kernel ? { kernelEntries: BigInt(node.kernel.entries) } : {}),
    }),
    metrics: node.metrics.read(node.dataPlane.status?.activeConnections ?? 0n),
    dataPlaneHealthy: node.dataPlane.healthy,
    message: nodeMessage(node),
    certificateNotAfter: BigInt(node.certificateNotAfter),
    dataPlaneInstance: node.dataPlane.status?.instanceId ?? '',
    challengeKeysVersion: node.protection.keysVersion,
    sessionTicketKeysVersion: node.ticketKeys.version,
    ...(node.acme.applied ? { acme: node.acme.applied } : {}),
  };
}

/** Ports that are to be listened on and are not. */
function portProblems(node: NodeView): string {
  const { problems } = describePorts(node.dataPlane.status) ?? { problems: [] };
  return problems.map(({ port, reason }) => `port ${port}: ${reason}`).join('; ');
}

/** What the data plane listens on; null while it is silent. */
export function describePorts(status: GetStatusResponse | undefined): PortsView | null {
  if (!status) return null;
  return {
    open: status.ports,
    problems: status.portProblems.map(({ port, udp, reason }) => ({ port: `${port}${udp ? '/udp' : ''}`, reason })),
  };
}

/** All that is wrong, what matters most first, at most 500 characters; "" when all is well. */
function nodeMessage(node: NodeView): string {
  const parts = [
    node.dataPlane.message,
    portProblems(node),
    node.configFeed.message,
    node.banFeed.message,
    node.config.problem,
    node.bans.problem,
    node.certificates.message,
    node.protection.message,
    node.ticketKeys.message,
    node.acme.message,
    node.skippedEvents.message,
    node.kernel?.message ?? '',
    // Lasts as long as the kernel stays what it is, so what comes and goes stands before it.
    node.dataPlane.status?.confinementProblem ?? '',
  ];
  return parts
    .filter((part) => part !== '')
    .join('; ')
    .slice(0, MAX_MESSAGE);
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

/** Content of the status file. */
export function describeNode(node: NodeView): Record<string, unknown> {
  const { identity, nftTable } = node;
  return {
    node: {
      id: identity.nodeId,
      name: identity.nodeName,
      clusterId: identity.clusterId,
      serverUrl: identity.serverUrl,
    },
    agent: {
      version: AGENT_VERSION,
      pid: process.pid,
      certificateNotAfter: new Date(node.certificateNotAfter * 1000).toISOString(),
    },
    console: { connected: node.connected, problem: node.channelProblem },
    config: {
      epoch: node.config.position.epoch.toString(),
      revision: node.config.position.revision.toString(),
      appliedRevision: (node.appliedConfig?.revision ?? 0n).toString(),
      entries: node.config.size,
      failed: node.failed.length,
      held: Number(node.dataPlane.status?.held ?? 0n),
      missingFeatures: node.configFeed.missing,
    },
    bans: {
      epoch: node.bans.position.epoch.toString(),
      sequence: node.bans.position.sequence.toString(),
      appliedSequence: (node.banState?.position?.sequence ?? 0n).toString(),
      entries: node.bans.size,
      unapplied: Number(node.banState?.unapplied ?? 0n),
    },
    protection: node.protection.view,
    certificates: node.certificates.view,
    kernel: node.kernel
      ? { table: nftTable, entries: node.kernel.entries, problem: node.kernel.message }
      : { table: null, entries: 0, problem: node.kernelProblem },
    dataPlane: {
      healthy: node.dataPlane.healthy,
      instance: node.dataPlane.status?.instanceId ?? null,
      version: node.dataPlane.status?.version ?? null,
      sites: Number(node.dataPlane.status?.sites ?? 0n),
      connections: describeConnections(node.dataPlane.status),
      ports: describePorts(node.dataPlane.status),
      geoip: describeGeoip(node.dataPlane.status),
    },
    features: [...nodeFeatures(node)],
    lastError: nodeMessage(node),
  };
}
