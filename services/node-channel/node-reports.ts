// What nodes report, collected and written in sets: everything of a heartbeat at most once a second, positions that
// people wait for (did my change arrive?) within 50 ms. Each report is stamped when it arrives here.

import { type NodeAddressEntry, replaceNodeAddresses, storedNodeAddresses } from '../../models/nodes/node-address.ts';
import { keepMetrics } from '../../models/nodes/node-metrics.ts';
import { writePositions } from '../../models/nodes/node-position.ts';
import {
  type BeatRow,
  type PlaceRow,
  type PositionRow,
  replaceUnapplied,
  writeAuthErrors,
  writeBeats,
} from '../../models/nodes/node-state.ts';
import type { Feed } from '../../runtime/feeds.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { wakeChannel } from '../../runtime/stream-names.ts';
import type { NodeIdentity } from './identity.ts';

const POSITION_MS = 40;
const BEAT_MS = 1000;
/** A node that was over its budget shows it this long. */
const OVER_BUDGET_MS = 60_000;
/** After an Applied, a heartbeat that was on its way before does not take the position back. */
const OVERTAKEN_MS = 5_000;

interface LastKnown {
  /** Counts heartbeats: one that was overtaken while it waited writes nothing. */
  beat: number;
  position: PositionRow;
  appliedAt: number;
  /** Null: not read yet. */
  addresses: string | null;
  unapplied: string;
}

export interface Beat extends Omit<BeatRow, 'lastSeenAt' | 'authError'> {
  addresses: NodeAddressEntry[];
  unappliedIds: string[];
}

type Kind = 'positions' | 'heartbeats' | 'refusals';

export class NodeReports {
  readonly #runtime: Runtime;
  /** All but configurations. */
  readonly #feeds: readonly Feed[];
  readonly #last = new Map<string, LastKnown>();
  readonly #beats = new Map<string, BeatRow>();
  readonly #positions = new Map<string, PositionRow>();
  readonly #authErrors = new Map<string, string>();
  readonly #overBudget = new Map<string, { reason: string; until: number }>();
  #positionTimer: NodeJS.Timeout | null = null;
  #beatTimer: NodeJS.Timeout | null = null;
  /** Kinds to be written in the order they fell due: one pending write each. */
  readonly #due = new Set<Kind>();
  #writing: Promise<void> | null = null;
  #doubtful = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#feeds = [...runtime.feeds].filter(({ wire }) => wire.aim !== null);
  }

  /** Resolves once addresses and unapplied bans, where they changed, are stored: bans depend on them. */
  async heartbeat(node: NodeIdentity, beat: Beat, position: PositionRow, now: Date): Promise<void> {
    const { addresses, unappliedIds, ...row } = beat;
    this.#authErrors.delete(node.nodeId);
    this.#beats.set(node.nodeId, { ...row, lastSeenAt: now, authError: this.#budgetProblem(node.nodeId, now) });
    this.#beatTimer ??= setTimeout(() => this.#flushBeats(), BEAT_MS);
    this.#setPosition(node.nodeId, position, now.getTime() - OVERTAKEN_MS);
    const last = this.#last.get(node.nodeId)!;
    const turn = ++last.beat;
    // Read once: a thousand nodes that connect again must not line up for writing nothing.
    last.addresses ??= addressKey(await storedNodeAddresses(this.#runtime.pools.channel, node.nodeId));
    if (last.beat !== turn) return;
    if (last.addresses !== addressKey(addresses)) {
      await replaceNodeAddresses(this.#runtime.pools.api, node.nodeId, addresses);
      last.addresses = addressKey(addresses);
    }
    const unappliedKey = JSON.stringify(unappliedIds);
    if (last.beat === turn && last.unapplied !== unappliedKey) {
      await replaceUnapplied(this.#runtime.pools.channel, node.nodeId, unappliedIds);
      last.unapplied = unappliedKey;
    }
  }

  applied(node: NodeIdentity, position: PositionRow): void {
    this.#setPosition(node.nodeId, position, Number.NEGATIVE_INFINITY);
    const last = this.#last.get(node.nodeId);
    if (last) last.appliedAt = position.at.getTime();
  }

  /** Where the node is in a feed other than the configuration, as far as this process knows. */
  placeOf(nodeId: string, feed: string): PlaceRow | undefined {
    return this.#last.get(nodeId)?.position.places.get(feed);
  }

  /** The configuration that the node runs, as far as this process knows. */
  configOf(nodeId: string): PositionRow['config'] {
    return this.#last.get(nodeId)?.position.config;
  }

  /** Records why a node's certificate was refused; shown until its next heartbeat. */
  refused(nodeId: string, reason: string): void {
    this.#authErrors.set(nodeId, reason);
    this.#beatTimer ??= setTimeout(() => this.#flushBeats(), BEAT_MS);
  }

  /** Records that the node is over its budget; shown until its first heartbeat a minute later. */
  overBudget(nodeId: string, lane: string): void {
    const reason = `OVER_BUDGET_${lane.toUpperCase()}`;
    const known = this.#overBudget.has(nodeId);
    this.#overBudget.set(nodeId, { reason, until: Date.now() + OVER_BUDGET_MS });
    if (!known) this.refused(nodeId, reason);
  }

  #budgetProblem(nodeId: string, now: Date): string | null {
    const problem = this.#overBudget.get(nodeId);
    if (!problem) return null;
    if (problem.until > now.getTime()) return problem.reason;
    this.#overBudget.delete(nodeId);
    return null;
  }

  /**
   * Forgets a node that is not connected here any more: another process may store its reports now, so when it comes back
   * its first heartbeat writes everything again.
   */
  forget(nodeId: string): void {
    this.#last.delete(nodeId);
    this.#overBudget.delete(nodeId);
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    this.#flushPositions();
    this.#flushBeats();
    await this.#writing;
  }

  #setPosition(nodeId: string, position: PositionRow, overtakenSince: number): void {
    const last = this.#last.get(nodeId);
    if (!last) {
      this.#last.set(nodeId, { beat: 0, position, appliedAt: 0, addresses: null, unapplied: '' });
      this.#queuePosition(position);
      return;
    }
    const merged = mergePositions(last.position, position, last.appliedAt > overtakenSince);
    if (samePosition(last.position, merged)) return;
    last.position = merged;
    this.#queuePosition(merged);
  }

  #queuePosition(position: PositionRow): void {
    this.#positions.set(position.nodeId, position);
    this.#positionTimer ??= setTimeout(() => this.#flushPositions(), POSITION_MS);
  }

  #flushPositions(): void {
    if (this.#positionTimer) clearTimeout(this.#positionTimer);
    this.#positionTimer = null;
    this.#due.add('positions');
    this.#writing ??= this.#write();
  }

  #flushBeats(): void {
    if (this.#beatTimer) clearTimeout(this.#beatTimer);
    this.#beatTimer = null;
    this.#due.add('heartbeats').add('refusals');
    this.#writing ??= this.#write();
  }

  /**
   * One write at a time, so that a later report is never overwritten by an earlier one. What comes in meanwhile waits as
   * the newest of its node and kind, however long the database takes.
   */
  async #write(): Promise<void> {
    // Whoever calls has the promise before it ends.
    await Promise.resolve();
    for (let kind = this.#next(); kind !== undefined; kind = this.#next()) {
      try {
        await this.#writeKind(kind);
        if (this.#doubtful) this.#last.clear();
        this.#doubtful = false;
      } catch (err) {
        // The next heartbeat says it all again, and once more when the database answers: what got no answer may still
        // be done, and late.
        this.#last.clear();
        this.#doubtful = true;
        this.#runtime.log.warn({ err }, `${kind} of nodes not written`);
      }
    }
    this.#writing = null;
  }

  #next(): Kind | undefined {
    const [kind] = this.#due;
    if (kind !== undefined) this.#due.delete(kind);
    return kind;
  }

  async #writeKind(kind: Kind): Promise<void> {
    const { pools, redis } = this.#runtime;
    if (kind === 'positions') {
      const rows = taken(this.#positions);
      // People wait for these: relays are told at once.
      if (rows.length > 0 && (await writePositions(pools.channel, this.#feeds, rows))) {
        redis.publish(wakeChannel(this.#runtime.env.redisPrefix), '1').catch(() => undefined);
      }
    } else if (kind === 'heartbeats') {
      const beats = taken(this.#beats);
      if (beats.length > 0) {
        await writeBeats(pools.channel, beats);
        await keepMetrics(pools.channel, beats);
      }
    } else {
      const errors = [...this.#authErrors].map(([nodeId, reason]) => ({ nodeId, reason }));
      this.#authErrors.clear();
      if (errors.length > 0) await writeAuthErrors(pools.channel, errors);
    }
  }
}

/** What a map holds, which is empty afterwards. */
function taken<T>(map: Map<string, T>): T[] {
  const values = [...map.values()];
  map.clear();
  return values;
}

/** A feed keeps its place when the report leaves it out, or when `overtaken` and the report is behind in the same history. */
function mergePositions(last: PositionRow, next: PositionRow, overtaken: boolean): PositionRow {
  const merged = { ...next };
  const { config } = next;
  if (!config || (overtaken && last.config?.epoch === config.epoch && config.revision < last.config.revision)) {
    merged.config = last.config;
  }
  const places = new Map(next.places);
  for (const [name, before] of last.places) {
    const place = places.get(name);
    if (!place || (overtaken && isBefore(place, before))) places.set(name, before);
  }
  merged.places = places;
  return merged;
}

/** Of an earlier history, of none, or behind in the same one. */
function isBefore(a: PlaceRow, b: PlaceRow): boolean {
  return a.epoch === b.epoch ? a.sequence < b.sequence : a.epoch < b.epoch;
}

function samePosition(a: PositionRow, b: PositionRow): boolean {
  return (
    a.config?.epoch === b.config?.epoch &&
    a.config?.track === b.config?.track &&
    a.config?.revision === b.config?.revision &&
    a.config?.setHash === b.config?.setHash &&
    a.config?.failed === b.config?.failed &&
    a.places.size === b.places.size &&
    [...a.places].every(([name, place]) => samePlace(place, b.places.get(name)))
  );
}

function samePlace(a: PlaceRow, b: PlaceRow | undefined): boolean {
  return a.epoch === b?.epoch && a.sequence === b.sequence;
}

function addressKey(entries: readonly NodeAddressEntry[]): string {
  return entries
    .map(({ address, source }) => `${source} ${address}`)
    .sort()
    .join();
}
