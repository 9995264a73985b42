// How processes know of each other: each tells every half second that it lives, and is dropped after two seconds of
// silence. The stock discoverer counts in whole seconds, varies its interval by half a second either way, and goes on
// sending while Redis is away.
import { Discoverers } from 'moleculer';

/** Between two heartbeats of a process. */
export const HEARTBEAT_MS = 500;
/** Of silence, until calls to a process are given up and no new one goes there. */
export const SILENCE_MS = 2_000;

const CHECK_MS = 250;
/** A check that comes later than this tells of this process, not of the others: their heartbeats wait to be read. */
const LATE_MS = 4 * CHECK_MS;
const OFFLINE_CHECK_MS = 60_000;

interface Peer {
  id: string;
  local: boolean;
  available: boolean;
}

interface Stock {
  registry: { nodes: { toArray(): Peer[]; disconnected(id: string, unexpected: boolean): void } };
  transit: { tx: { connected: boolean } } | null;
  logger: { warn(message: string): void };
  heartbeatTimer: NodeJS.Timeout | null;
  checkNodesTimer: NodeJS.Timeout | null;
  offlineTimer: NodeJS.Timeout | null;
  stopHeartbeatTimers(): void;
  sendHeartbeat(): Promise<void>;
  checkOfflineNodes(): void;
  heartbeatReceived(id: string, payload: unknown): void;
  processRemoteNodeInfo(id: string, payload: unknown): unknown;
}

export class Heartbeats extends (Discoverers.Local as unknown as new () => Stock) {
  readonly #heardAt = new Map<string, number>();
  #checkedAt = 0;

  startHeartbeatTimers(): void {
    this.stopHeartbeatTimers();
    this.#checkedAt = performance.now();
    this.heartbeatTimer = setInterval(() => void this.beat(), HEARTBEAT_MS).unref();
    this.checkNodesTimer = setInterval(() => this.checkRemoteNodes(), CHECK_MS).unref();
    this.offlineTimer = setInterval(() => this.checkOfflineNodes(), OFFLINE_CHECK_MS).unref();
  }

  async beat(): Promise<void> {
    if (this.transit?.tx.connected) await this.sendHeartbeat();
  }

  override heartbeatReceived(id: string, payload: unknown): void {
    this.#heardAt.set(id, performance.now());
    super.heartbeatReceived(id, payload);
  }

  override processRemoteNodeInfo(id: string, payload: unknown): unknown {
    this.#heardAt.set(id, performance.now());
    return super.processRemoteNodeInfo(id, payload);
  }

  checkRemoteNodes(): void {
    const now = performance.now();
    const late = now - this.#checkedAt > LATE_MS;
    this.#checkedAt = now;
    const peers = this.registry.nodes.toArray().filter(({ local }) => !local);
    const known = new Set(peers.map(({ id }) => id));
    for (const id of this.#heardAt.keys()) if (!known.has(id)) this.#heardAt.delete(id);
    for (const { id, available } of peers) {
      if (!available) continue;
      const heardAt = this.#heardAt.get(id);
      if (late || heardAt === undefined) this.#heardAt.set(id, now);
      else if (now - heardAt > SILENCE_MS) {
        this.logger.warn(`process ${id} is silent`);
        this.registry.nodes.disconnected(id, true);
      }
    }
  }
}
