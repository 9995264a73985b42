// All tails of the process: requests of sites that are shown as they end. What is watched here is told to the node channel in a
// lease that is renewed while somebody watches; what nodes report comes back by site. A reader that is slow misses rows, and is
// told how many; nothing waits for it.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { Gauge } from 'prom-client';
import { fail } from '../../../contract/errors.ts';
import { MAX_TAIL_ROWS, type TailFilter, type TailLine } from '../../../contract/resources/log-tail.ts';
import type { LogEntry } from '../../../contract/resources/logs.ts';
import {
  MAX_FILTERS,
  type TailLease,
  type TailRows,
  type TailWatch,
  tailLeasesChannel,
  tailRowsChannel,
} from '../../../runtime/log-tail.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type LiveSessions, SessionChecks } from './session-checks.ts';
import { tailMatch } from './tail-match.ts';
import { type Sink, Watcher } from './watcher.ts';

const RENEW_MS = 4_000;
const LEASE_SECONDS = 12;
const PING_MS = 15_000;
const SESSIONS_MS = 5_000;
const STALL_MS = 30_000;
const RETRY_SECONDS = 30;

export interface TailLimits {
  perSession: number;
  perProcess: number;
}

export const TAIL_LIMITS: TailLimits = { perSession: 4, perProcess: 32 };

export interface TailSearch {
  siteId: string;
  clusterId: string;
  filter: TailFilter;
}

interface Tail extends TailSearch {
  watcher: Watcher;
  matches: (entry: LogEntry) => boolean;
  second: number;
  sent: number;
  /** Rows that are missing and not told yet. */
  dropped: number;
}

export class TailHub {
  readonly #runtime: Runtime;
  readonly #limits: TailLimits;
  readonly #process = randomUUID();
  readonly #tails = new Set<Tail>();
  readonly #sessions: SessionChecks;
  readonly #timers: NodeJS.Timeout[];
  /** Made for the first tail. */
  #rows: Redis | null = null;
  #stopped = false;

  constructor(runtime: Runtime, liveSessions: LiveSessions, limits: TailLimits = TAIL_LIMITS) {
    this.#runtime = runtime;
    this.#limits = limits;
    this.#sessions = new SessionChecks({
      liveSessions,
      watchers: () => [...this.#tails].map(({ watcher }) => watcher),
      over: SESSION_OVER,
      log: runtime.log,
    });
    this.#timers = [
      setInterval(() => this.#renew(), RENEW_MS),
      setInterval(() => this.#ping(), PING_MS),
      setInterval(() => void this.checkSessions(), SESSIONS_MS),
    ];
    runtime.stopping.addEventListener('abort', () => this.#endAll(), { once: true });
    measure(runtime, () => this.#tails.size);
  }

  /** Throws LIVE_STREAM_LIMIT, or SERVICE_UNAVAILABLE while the process stops. */
  admit(token: string): void {
    if (this.#stopped) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    const { perSession, perProcess } = this.#limits;
    const retryAfterSeconds = RETRY_SECONDS;
    if (this.#tails.size >= perProcess) fail('LIVE_STREAM_LIMIT', { limit: perProcess, retryAfterSeconds });
    const own = [...this.#tails].filter(({ watcher }) => watcher.token === token).length;
    if (own >= perSession) fail('LIVE_STREAM_LIMIT', { limit: perSession, retryAfterSeconds });
  }

  /** Sends rows to the sink until one side ends it. */
  async open(token: string, search: TailSearch, sink: Sink): Promise<void> {
    const watcher = new Watcher(token, null, sink, () => this.#tell(tail, []));
    const tail: Tail = { ...search, watcher, matches: tailMatch(search.filter), second: 0, sent: 0, dropped: 0 };
    this.#tails.add(tail);
    sink.on('close', () => this.#forget(tail));
    if (sink.destroyed) return this.#forget(tail);
    if (this.#stopped) return watcher.end(STOPPING);
    const rows = this.#receiver();
    await rows.subscribe(tailRowsChannel(this.#runtime, search.siteId)).catch(() => undefined);
    this.#renew();
    if (watcher.ready) watcher.send(rows.status === 'ready' ? START : PAUSE);
  }

  async stop(): Promise<void> {
    this.#endAll();
    for (const timer of this.#timers) clearInterval(timer);
    this.#rows?.disconnect();
    await this.#sessions.stop();
  }

  /** Ends the tails of sessions that are over. */
  checkSessions(): Promise<void> {
    return this.#sessions.check();
  }

  #receiver(): Redis {
    if (this.#rows) return this.#rows;
    const rows = this.#runtime.newRedis();
    rows.on('message', (channel: string, message: string) => this.#arrive(channel, JSON.parse(message) as TailRows));
    rows.on('close', () => {
      for (const { watcher } of this.#tails) if (watcher.ready) watcher.send(PAUSE);
    });
    // It subscribes again by itself.
    rows.on('ready', () => this.#renew());
    this.#rows = rows;
    return rows;
  }

  #arrive(channel: string, { entries, dropped }: TailRows): void {
    for (const tail of this.#tails) {
      if (tailRowsChannel(this.#runtime, tail.siteId) !== channel) continue;
      tail.dropped += dropped;
      this.#tell(tail, entries.filter(tail.matches));
    }
  }

  #tell(tail: Tail, entries: LogEntry[]): void {
    const second = Math.floor(Date.now() / 1000);
    if (second !== tail.second) Object.assign(tail, { second, sent: 0 });
    const room = tail.watcher.ready ? MAX_TAIL_ROWS - tail.sent : 0;
    const kept = entries.slice(0, room);
    tail.dropped += entries.length - kept.length;
    tail.sent += kept.length;
    if (!tail.watcher.ready || (kept.length === 0 && tail.dropped === 0)) return;
    const line = encode({ type: 'rows', entries: kept, dropped: tail.dropped });
    tail.dropped = 0;
    tail.watcher.send(line);
  }

  /** Tells the node channel what is watched here, for so long. */
  #renew(): void {
    if (this.#tails.size > 0) this.#lease(LEASE_SECONDS);
  }

  #lease(seconds: number): void {
    const watches = new Map<string, TailWatch>();
    for (const { siteId, clusterId, filter } of this.#tails) {
      const watch = watches.get(siteId) ?? { siteId, clusterId, filters: [] };
      watch.filters.push(filter);
      watches.set(siteId, watch);
    }
    for (const watch of watches.values()) {
      const isAll = watch.filters.some((filter) => Object.keys(filter).length === 0);
      if (isAll || watch.filters.length > MAX_FILTERS) watch.filters = [];
    }
    const lease: TailLease = { process: this.#process, seconds, watches: [...watches.values()] };
    this.#runtime.redis
      .publish(tailLeasesChannel(this.#runtime), JSON.stringify(lease))
      .catch((err) => this.#runtime.log.debug({ err }, 'watched sites not told'));
  }

  #forget(tail: Tail): void {
    if (!this.#tails.delete(tail)) return;
    this.#lease(LEASE_SECONDS);
    const isWatched = [...this.#tails].some(({ siteId }) => siteId === tail.siteId);
    if (!isWatched) this.#rows?.unsubscribe(tailRowsChannel(this.#runtime, tail.siteId)).catch(() => undefined);
  }

  #ping(): void {
    for (const { watcher } of this.#tails) {
      if (watcher.stalled(STALL_MS)) watcher.drop();
      else if (watcher.ready) watcher.send(PING);
    }
  }

  #endAll(): void {
    this.#stopped = true;
    for (const { watcher } of this.#tails) watcher.end(STOPPING);
  }
}

function encode(line: TailLine): Buffer {
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

const START = encode({ type: 'start' });
const PAUSE = encode({ type: 'pause' });
const PING = encode({ type: 'ping' });
const SESSION_OVER = encode({ type: 'end', reason: 'session' });
const STOPPING = encode({ type: 'end', reason: 'stopping' });

function measure({ metrics }: Runtime, count: () => number): void {
  new Gauge({
    name: 'svc_log_tails',
    help: 'Open pages that show requests as they end.',
    registers: [metrics],
    collect() {
      this.set(count());
    },
  });
}
