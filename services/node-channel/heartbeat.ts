// A heartbeat's content, bounded and in the contract's shape. Nodes are authenticated, not trusted: every text and
// list is cut, every address parsed.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Capability } from '../../contract/capabilities.ts';
import { trackColumn } from '../../models/config/config-history.ts';
import type { NodeAddressEntry } from '../../models/nodes/node-address.ts';
import { MAX_FAILED_ENTRIES, type PlaceRow, type PositionRow } from '../../models/nodes/node-state.ts';
import type { BanStatus } from '../../proto/gen/svc/node/v1/bans_pb.js';
import type { FailedEntry } from '../../proto/gen/svc/node/v1/config_pb.js';
import type {
  CacheUsage,
  GeoIpDatabase,
  HeartbeatRequest,
  Metrics,
  NodeInfo,
  Reached,
} from '../../proto/gen/svc/node/v1/node_pb.js';
import { type PositionReport, unmarked } from '../../runtime/feed-wire.ts';
import type { Feed } from '../../runtime/feeds.ts';
import { readFailingSites } from './failing-sites.ts';
import type { NodeIdentity } from './identity.ts';
import type { Beat } from './node-reports.ts';
import { readOriginHealth } from './origin-health.ts';
import { readOriginTraffic } from './origin-traffic.ts';
import type { Step } from './propagation.ts';

const METRICS: Capability = 'metrics-v1';
const LARGEST_FIGURE = 1e9;
const MAX_ADDRESSES = 64;
const MAX_CAPABILITIES = 64;
const MAX_UNAPPLIED = 100;
const MAX_STEPS = 32;
const NOWHERE = { epoch: 0n, sequence: 0n };
const LONGEST_AGO_MS = 15_000;
const FEATURE = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** 9999-12-31: PostgreSQL does not read later years as JavaScript writes them. */
const LAST_TIME_MS = 253_402_300_799_000;

/**
 * NUL and the half of a character that a cut leaves cannot be stored, and would take down the reports of other nodes
 * that are written with this one; the rest of a text is shown as it is.
 */
export function text(value: string, maxChars: number): string {
  return value.replaceAll('\0', '').slice(0, maxChars).toWellFormed();
}

/** The capabilities a node reports, sorted. */
export function readCapabilities(info: NodeInfo | undefined): string[] {
  const names = (info?.features ?? []).slice(0, MAX_CAPABILITIES).filter((name) => FEATURE.test(name));
  return [...new Set(names)].sort();
}

export function readInfo(info: NodeInfo | undefined): object {
  return {
    hostname: text(info?.hostname ?? '', 253),
    agentVersion: text(info?.agentVersion ?? '', 64),
    os: text(info?.os ?? '', 32),
    arch: text(info?.arch ?? '', 32),
    engine: text(info?.engine ?? '', 64),
    engineVersion: text(info?.engineVersion ?? '', 64),
    ipAddresses: readAddresses(info),
    proxyPeersUnset: info?.proxyPeersUnset ?? false,
    geoip: info?.geoip ? { country: readDatabase(info.geoip.country), asn: readDatabase(info.geoip.asn) } : null,
  };
}

function readDatabase(database: GeoIpDatabase | undefined): object {
  return {
    state: database?.ready ? 'ready' : 'unavailable',
    builtAt: database?.ready && database.builtAt > 0n ? (seconds(database.builtAt)?.toISOString() ?? null) : null,
    problem: text(database?.problem ?? 'not told', 300),
  };
}

/** Canonical addresses; what is none, and zones, are dropped. */
export function readAddresses(info: NodeInfo | undefined): string[] {
  const addresses = (info?.ipAddresses ?? []).slice(0, MAX_ADDRESSES).flatMap((value) => canonicalAddress(value) ?? []);
  return [...new Set(addresses)];
}

/** An address as PostgreSQL writes it; mapped IPv4 as IPv4. Undefined for what is no address. */
export function canonicalAddress(value: string): string | undefined {
  if (isIP(value) === 0 || value.includes('%')) return undefined;
  const parsed = ipaddr.process(value);
  return parsed.toString();
}

/** Addresses that bans may not cover: what the node reports and where it comes from. */
export function addressEntries(info: NodeInfo | undefined, remoteAddress: string | null): NodeAddressEntry[] {
  const entries: NodeAddressEntry[] = readAddresses(info).map((address) => ({ address, source: 'reported' }));
  if (remoteAddress !== null) entries.push({ address: remoteAddress, source: 'remote' });
  return entries;
}

export function readBeat(
  node: NodeIdentity,
  request: HeartbeatRequest,
  remoteAddress: string | null,
  now: Date,
): Omit<Beat, 'missingFeatures'> {
  const features = readCapabilities(request.info);
  return {
    nodeId: node.nodeId,
    info: readInfo(request.info),
    features,
    metrics: request.metrics && features.includes(METRICS) ? readMetrics(request.metrics, now) : null,
    banStatus: request.bans ? readBanStatus(request.bans, now) : null,
    remoteAddress,
    dataPlaneHealthy: request.dataPlaneHealthy,
    dataPlaneInstance: text(request.dataPlaneInstance, 64),
    message: text(request.message, 500),
    challengeKeysVersion: String(bounded(request.challengeKeysVersion)),
    sessionTicketKeysVersion: String(bounded(request.sessionTicketKeysVersion)),
    certificateNotAfter: request.certificateNotAfter > 0n ? seconds(request.certificateNotAfter) : null,
    failingSites: readFailingSites(request.failingSites),
    originHealth: readOriginHealth(request.originHealth),
    originTraffic: readOriginTraffic(request.originTraffic),
    cacheUsage: request.cache ? readCacheUsage(request.cache, now) : null,
    addresses: addressEntries(request.info, remoteAddress),
    unappliedIds: unappliedIds(request.bans),
  };
}

/**
 * Where a report says that the node is. `isFull`: it says it of every feed, so that one that is missing is at 0 where that
 * means something.
 */
export function readPosition(
  { nodeId, features }: Pick<NodeIdentity, 'nodeId' | 'features'>,
  at: Date,
  report: PositionReport & { failed: readonly FailedEntry[] },
  feeds: Iterable<Feed>,
  isFull: boolean,
): PositionRow {
  const { config, failed } = report;
  const places: [string, PlaceRow][] = [];
  for (const { name, wire } of feeds) {
    if (wire.aim === null || (wire.needs !== null && !features.has(wire.needs))) continue;
    const place = wire.told(report) ?? (isFull && wire.silenceIsNothing ? unmarked(NOWHERE) : undefined);
    if (place) places.push([name, { at, epoch: bounded(place.epoch), sequence: bounded(place.sequence) }]);
  }
  return {
    nodeId,
    at,
    config: config && {
      at,
      epoch: bounded(config.epoch),
      track: trackColumn(config.track),
      revision: bounded(config.revision),
      setHash: Buffer.from(config.setHash.subarray(0, 32)).toString('hex'),
      failed: JSON.stringify(failed.slice(0, MAX_FAILED_ENTRIES).map(readFailed)),
    },
    places: new Map(places),
  };
}

/**
 * When a node reached what it tells of a feed, oldest first; the position itself at `now` where it gives no steps. How
 * long ago is believed up to the longest pause before a report.
 */
export function readSteps(number: bigint, steps: readonly Reached[], now: number): Step[] {
  const read = steps
    .slice(-MAX_STEPS)
    .filter((step) => step.number <= number)
    .map((step) => ({ number: step.number, at: now - Math.min(step.agoMicros / 1000, LONGEST_AGO_MS) }));
  if (read.at(-1)?.number !== number) read.push({ number, at: now });
  return read;
}

function readFailed(entry: FailedEntry): object {
  return {
    kind: text(entry.kind, 64),
    id: text(entry.id, 200),
    received: Buffer.from(entry.receivedHash.subarray(0, 32)).toString('hex'),
    running: entry.runningHash.length > 0,
    reason: text(entry.reason, 500),
  };
}

function readMetrics(metrics: Metrics, now: Date): object {
  return {
    cpuPercent: finite(metrics.cpuPercent),
    load1: finite(metrics.load1),
    load5: finite(metrics.load5),
    load15: finite(metrics.load15),
    memoryUsedBytes: count(metrics.memoryUsedBytes),
    memoryTotalBytes: count(metrics.memoryTotalBytes),
    egressBps: count(metrics.egressBps),
    activeConnections: count(metrics.activeConnections),
    reportedAt: now.toISOString(),
  };
}

function readBanStatus(status: BanStatus, now: Date): object {
  return {
    epoch: String(bounded(status.position?.epoch ?? 0n)),
    appliedSequence: String(bounded(status.position?.sequence ?? 0n)),
    entries: count(status.entries),
    capacity: count(status.capacity),
    unapplied: count(status.unapplied),
    unappliedIds: unappliedIds(status),
    kernelEntries: status.kernelEntries === undefined ? null : count(status.kernelEntries),
    autoEvicted: count(status.autoEvicted),
    reportedAt: now.toISOString(),
  };
}

function readCacheUsage({ usedBytes, maxBytes }: CacheUsage, now: Date): object {
  return { usedBytes: count(usedBytes), maxBytes: count(maxBytes), measuredAt: now.toISOString() };
}

function unappliedIds(status: BanStatus | undefined): string[] {
  const ids = (status?.unappliedIds ?? []).slice(0, MAX_UNAPPLIED).map((id) => text(id, 128));
  return [...new Set(ids)].sort();
}

/** Not below 0, and small enough to be summed. */
function finite(value: number): number {
  return Number.isFinite(value) ? Math.min(LARGEST_FIGURE, Math.max(0, value)) : 0;
}

function count(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}

/** Within PostgreSQL's bigint. */
function bounded(value: bigint): bigint {
  const max = 2n ** 63n - 1n;
  return value > max ? max : value;
}

function seconds(value: bigint): Date | null {
  const ms = Number(value) * 1000;
  return ms <= LAST_TIME_MS ? new Date(ms) : null;
}
