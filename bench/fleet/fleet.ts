// A fleet of simulated nodes in this process: enrolled through the real channel, with real certificates and streams.
import { performance } from 'node:perf_hooks';
import { CAPABILITIES } from '../../contract/capabilities.ts';
import { Arrivals } from './arrivals.ts';
import type { Identity } from './connection.ts';
import { createDecoder } from './decode.ts';
import { enrollNodes, type Token } from './enroll-nodes.ts';
import { FullStore, LightStore } from './node-store.ts';
import { SimulatedNode } from './simulated-node.ts';

export interface FleetOptions {
  nodes: number;
  /** https://host:port of the node channel. */
  serverUrl: string;
  /** A one-time token for the node with this index. */
  newToken(index: number): Promise<Token>;
  /** Capabilities the nodes report. Default: those of an older release. */
  features?: readonly string[];
  /** Nodes keep entries and bans and check set hashes. Default false: positions only. */
  full?: boolean;
  heartbeatMs?: number;
  /** Longest pause before a node connects again, ms. */
  reconnectMs?: number;
  /** Nodes hold nothing of before their first target: for a fleet that joins a large cluster. Default false. */
  joinsAtHead?: boolean;
  /** Waits until every node has received its first target. Default true. */
  waitConnected?: boolean;
}

export interface Fleet {
  nodes: SimulatedNode[];
  /** In parallel with the nodes. */
  identities: readonly Identity[];
  /** Per node: when it had ban number `sequence`, Unix ms with fractions; undefined where it has not. */
  received(sequence: bigint | string): (number | undefined)[];
  /** The same for revisions. */
  receivedRevision(revision: bigint | string): (number | undefined)[];
  /** The same for what certificate authorities are answered. */
  receivedAcme(sequence: bigint | string): (number | undefined)[];
  /** The same for purges. */
  receivedPurges(sequence: bigint | string): (number | undefined)[];
  /** Resolves once every node (or the given ones) has reached it; throws after `timeoutMs`. */
  waitForBans(sequence: bigint | string, timeoutMs?: number, nodes?: readonly SimulatedNode[]): Promise<void>;
  waitForRevision(revision: bigint | string, timeoutMs?: number, nodes?: readonly SimulatedNode[]): Promise<void>;
  waitForAcme(sequence: bigint | string, timeoutMs?: number): Promise<void>;
  waitForPurges(sequence: bigint | string, timeoutMs?: number): Promise<void>;
  /** Share of time this process was busy since the start, 0 to 1. */
  busy(): number;
  stop(): Promise<void>;
}

const DEFAULT_FEATURES = ['bans-v1', 'challenge-v1', 'client-ip-v1', 'domains-v2', 'metrics-v1', 'unknown-host-v1'];
/** Capabilities of a node of this release: it gets whatever an installation needs of its nodes. */
export const ALL_FEATURES: readonly string[] = Object.keys(CAPABILITIES);
const CONNECT_MS = 60_000;
/** Nodes that connect at once: more only queue handshakes. */
const CONNECT_STEP = 25;

/** Milliseconds of the system clock with fractions, comparable between processes of one machine. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const features = options.features ?? DEFAULT_FEATURES;
  const identities = await enrollNodes(options.nodes, options.serverUrl, options.newToken, features);
  const bans = new Arrivals(options.nodes);
  const revisions = new Arrivals(options.nodes);
  const acme = new Arrivals(options.nodes);
  const purges = new Arrivals(options.nodes);
  const decode = createDecoder();
  const startedAt = performance.eventLoopUtilization();
  const nodes = identities.map(
    (identity, index) =>
      new SimulatedNode({
        index,
        serverUrl: options.serverUrl,
        identity,
        features,
        store: options.full ? new FullStore() : new LightStore(),
        heartbeatMs: options.heartbeatMs ?? 15_000,
        reconnectMs: options.reconnectMs ?? 30_000,
        joinsAtHead: options.joinsAtHead ?? false,
        decode,
        onBans: (node, sequence) => bans.record(node, sequence, clockMs()),
        onConfig: (node, revision) => revisions.record(node, revision, clockMs()),
        onAcme: (node, sequence) => acme.record(node, sequence, clockMs()),
        onPurges: (node, sequence) => purges.record(node, sequence, clockMs()),
      }),
  );
  const fleet: Fleet = {
    nodes,
    identities,
    received: (sequence) => bans.reached(BigInt(sequence)),
    receivedRevision: (revision) => revisions.reached(BigInt(revision)),
    receivedAcme: (sequence) => acme.reached(BigInt(sequence)),
    receivedPurges: (sequence) => purges.reached(BigInt(sequence)),
    waitForBans: (sequence, timeoutMs, some = nodes) =>
      until(
        () => some.every((node) => node.bans.sequence >= BigInt(sequence)),
        timeoutMs,
        () => `ban number ${sequence}${laggards(some, ({ bans }) => bans.sequence, BigInt(sequence))}`,
      ),
    waitForRevision: (revision, timeoutMs, some = nodes) =>
      until(
        () => some.every((node) => node.config.revision >= BigInt(revision)),
        timeoutMs,
        () => `revision ${revision}${laggards(some, ({ config }) => config.revision, BigInt(revision))}`,
      ),
    waitForAcme: (sequence, timeoutMs) =>
      until(
        () => nodes.every((node) => node.acme.sequence >= BigInt(sequence)),
        timeoutMs,
        () => `answer number ${sequence}${laggards(nodes, ({ acme }) => acme.sequence, BigInt(sequence))}`,
      ),
    waitForPurges: (sequence, timeoutMs) =>
      until(
        () => nodes.every((node) => node.purges.sequence >= BigInt(sequence)),
        timeoutMs,
        () => `purge number ${sequence}${laggards(nodes, ({ purges }) => purges.sequence, BigInt(sequence))}`,
      ),
    busy: () => performance.eventLoopUtilization(startedAt).utilization,
    stop: async () => {
      for (const node of nodes) node.stop();
      // Sessions close in the next turns of the loop.
      await new Promise((resolve) => setTimeout(resolve, 50));
    },
  };
  try {
    for (let from = 0; from < nodes.length; from += CONNECT_STEP) {
      const step = nodes.slice(from, from + CONNECT_STEP);
      for (const node of step) node.start();
      if (options.waitConnected !== false) {
        await until(
          () => step.every((node) => node.counts.targets > 0),
          CONNECT_MS,
          () => 'the first target of every node',
        );
      }
    }
    return fleet;
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

/** Says which nodes are behind, and what they are like. */
function laggards(nodes: readonly SimulatedNode[], at: (node: SimulatedNode) => bigint, wanted: bigint): string {
  const behind = nodes.filter((node) => at(node) < wanted);
  const shown = behind
    .slice(0, 3)
    .map(
      (node) =>
        `node ${node.index} at ${at(node)}, ${node.connected ? '' : 'not '}connected, ${JSON.stringify(node.counts)}, last pull ${node.pullRefusal?.message ?? 'not refused'}`,
    );
  return ` (${behind.length} of ${nodes.length} nodes are behind: ${shown.join('; ')})`;
}

async function until(condition: () => boolean, timeoutMs: number | undefined, what: () => string): Promise<void> {
  const limitMs = timeoutMs ?? 30_000;
  const deadline = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what()} was not reached within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
