// How long changes take to reach the nodes connected here: a batch is noted when it is pushed, each node is counted when it
// says that it has it, and the result is written once, when all have it or after a minute. A batch that takes longer than
// a second is told before, so that nobody takes it for done who reads what other processes wrote. Nothing is kept per
// node and batch; an acknowledgement costs what it acknowledges.

import type { SettledBatch } from '../../models/overview/propagation.ts';

/** Nodes that have not said so after this long do not have it. */
const LONGEST_MS = 60_000;
/** A batch under way for this long is told as such. */
const SLOW_MS = 1_000;
/** Batches waited for per cluster and feed; the oldest is given up for a further one. */
const MAX_OPEN = 512;

interface Batch {
  /** Of all batches of the process, in the order they were pushed. */
  order: number;
  from: bigint;
  to: bigint;
  /** Milliseconds. */
  pushedAt: number;
  nodes: number;
  /** As told while it was under way. */
  told: number;
  reached: number;
  lastAt: number | null;
  lastNode: string | null;
}

interface Track {
  clusterId: string;
  feed: string;
  epoch: bigint;
  /** Oldest first. */
  open: Batch[];
}

interface Place {
  epoch: bigint;
  number: bigint;
}

interface Member {
  clusterId: string;
  /** Batches pushed before it was connected are not for it. */
  joined: number;
  /** By feed: nor are those that it may not take. */
  since: Map<string, number>;
  reached: Map<string, Place>;
}

export interface Step {
  number: bigint;
  /** When it was enforced, milliseconds. */
  at: number;
}

const NOWHERE: Place = { epoch: 0n, number: -1n };

export class Propagation {
  readonly #members = new Map<string, Member>();
  readonly #membersOf = new Map<string, number>();
  readonly #tracks = new Map<string, Track>();
  /** Names of the feeds that were pushed. */
  readonly #feeds = new Set<string>();
  #settled: SettledBatch[] = [];
  #order = 0;

  /** The node has a stream here. */
  joined(nodeId: string, clusterId: string): void {
    if (this.#members.has(nodeId)) return;
    this.#members.set(nodeId, { clusterId, joined: this.#order, since: new Map(), reached: new Map() });
    this.#membersOf.set(clusterId, (this.#membersOf.get(clusterId) ?? 0) + 1);
  }

  /** The node has none any more: nothing is expected of it. */
  left(nodeId: string): void {
    const member = this.#members.get(nodeId);
    if (!member) return;
    this.#members.delete(nodeId);
    const others = this.#membersOf.get(member.clusterId)! - 1;
    if (others > 0) this.#membersOf.set(member.clusterId, others);
    else this.#membersOf.delete(member.clusterId);
    for (const feed of this.#feeds) {
      const track = this.#tracks.get(keyOf(member.clusterId, feed));
      if (!track) continue;
      for (const batch of track.open) if (awaits(batch, member, track)) batch.nodes--;
      this.#closeFinished(track);
    }
    if (others > 0) return;
    for (const feed of this.#feeds) this.#tracks.delete(keyOf(member.clusterId, feed));
  }

  /** The changes after `from` up to `to` are being sent to the cluster's nodes, but for those that may not take them. */
  pushed(
    clusterId: string,
    feed: string,
    { epoch, from, to }: { epoch: bigint; from: bigint; to: bigint },
    now: number,
    exempt: Iterable<string> = [],
  ): void {
    const order = ++this.#order;
    let nodes = this.#membersOf.get(clusterId) ?? 0;
    for (const nodeId of exempt) {
      const member = this.#members.get(nodeId);
      if (!member) continue;
      member.since.set(feed, order);
      nodes--;
    }
    if (nodes <= 0) return;
    const key = keyOf(clusterId, feed);
    let track = this.#tracks.get(key);
    if (!track || track.epoch !== epoch) {
      track = { clusterId, feed, epoch, open: [] };
      this.#feeds.add(feed);
      this.#tracks.set(key, track);
    }
    if (track.open.length >= MAX_OPEN) this.#settle(track, track.open.shift()!);
    track.open.push({ order, from, to, pushedAt: now, nodes, told: 0, reached: 0, lastAt: null, lastNode: null });
  }

  /** The node has everything up to each of the steps, oldest first. */
  reached(nodeId: string, feed: string, epoch: bigint, steps: readonly Step[], now: number): void {
    const member = this.#members.get(nodeId);
    const track = member && this.#tracks.get(keyOf(member.clusterId, feed));
    if (!track || track.epoch !== epoch) return;
    let finished = false;
    for (const { number, at } of steps) {
      for (let index = firstAfter(track, member); index < track.open.length; index++) {
        const batch = track.open[index]!;
        if (batch.to > number) break;
        if (!awaits(batch, member, track)) continue;
        batch.reached++;
        // A node is believed within what it can know.
        const when = Math.min(now, Math.max(at, batch.pushedAt));
        if (batch.lastAt === null || when > batch.lastAt) {
          batch.lastAt = when;
          batch.lastNode = nodeId;
        }
        finished ||= batch.reached >= batch.nodes;
      }
      if (number > placeOf(member, track)) member.reached.set(feed, { epoch, number });
    }
    if (finished) this.#closeFinished(track);
  }

  /** Batches that are over, because all nodes have them or the time is up, and those that have become slow. */
  take(now: number): SettledBatch[] {
    for (const track of this.#tracks.values()) {
      while (track.open.length > 0 && now - track.open[0]!.pushedAt >= LONGEST_MS)
        this.#settle(track, track.open.shift()!);
      for (const batch of track.open) {
        if (now - batch.pushedAt < SLOW_MS) break;
        if (batch.told > 0) continue;
        batch.told = batch.nodes;
        this.#tell(track, { ...batch, reached: 0, lastAt: null, lastNode: null });
      }
    }
    const settled = this.#settled;
    this.#settled = [];
    return settled;
  }

  #closeFinished(track: Track): void {
    track.open = track.open.filter((batch) => {
      if (batch.reached < batch.nodes) return true;
      if (batch.nodes > 0 || batch.told > 0) this.#settle(track, batch);
      return false;
    });
  }

  #settle(track: Track, batch: Batch): void {
    this.#tell(track, { ...batch, nodes: batch.nodes - batch.told });
  }

  #tell(
    { clusterId, feed, epoch }: Track,
    { from, to, nodes, reached, lastAt, lastNode }: Omit<Batch, 'order' | 'pushedAt' | 'told'>,
  ): void {
    this.#settled.push({ clusterId, feed, epoch, from, to, nodes, reached, lastAt, lastNode });
  }
}

function keyOf(clusterId: string, feed: string): string {
  return `${feed} ${clusterId}`;
}

/** What the node has of the track's history; -1 before it said so. */
function placeOf(member: Member, { feed, epoch }: Track): bigint {
  const place = member.reached.get(feed) ?? NOWHERE;
  return place.epoch === epoch ? place.number : NOWHERE.number;
}

/** Whether the batch is for the node and not known to be there. */
function awaits(batch: Batch, member: Member, track: Track): boolean {
  return batch.order > (member.since.get(track.feed) ?? member.joined) && batch.to > placeOf(member, track);
}

/** Index of the oldest open batch beyond what the node has. */
function firstAfter(track: Track, member: Member): number {
  const place = placeOf(member, track);
  let low = 0;
  let high = track.open.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (track.open[middle]!.to > place) high = middle;
    else low = middle + 1;
  }
  return low;
}
