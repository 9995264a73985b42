// Names of streams in Redis and the partition of a cluster.
import { createHash } from 'node:crypto';

/** Clusters are dealt to this many partitions, each worked by one owner. */
export const PARTITION_COUNT = 64;

/** Partition of a cluster: the first 4 bytes of SHA-256 of its id, modulo 64. */
export function partitionOf(clusterId: string): number {
  return createHash('sha256').update(clusterId).digest().readUInt32BE(0) % PARTITION_COUNT;
}

/** Channel on which relays are woken after a commit; they poll as well. */
export function wakeChannel(prefix: string): string {
  return `${prefix}svc:wake`;
}

/** "Look again at X" for the owner of a partition. */
export function workStream(prefix: string, feed: string, partition: number): string {
  return `${prefix}svc:work:${feed}:${partition}`;
}

/** Messages that failed too often, kept for people. */
export function deadLetterStream(prefix: string): string {
  return `${prefix}svc:dead`;
}

/** Encoded batches of one cluster, one history; sealed (fanout-stream.ts), unlike those of releases before. */
export function fanoutStream(prefix: string, clusterId: string, feed: string, epoch: bigint | string): string {
  return `${prefix}svc:fan2:${clusterId}:${feed}:${epoch}`;
}

/** What changes, for the Web UI: one stream for all clusters. */
export function liveStream(prefix: string): string {
  return `${prefix}svc:live`;
}

/** Where a batch lies that is too large for its stream. */
export function batchKey(stream: string, to: bigint): string {
  return `${stream}:${to}`;
}
