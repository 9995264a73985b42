// All streams of live updates of the process. One subscription feeds them; what arrives within a moment is merged into
// one line, written as one and the same buffer to everybody who is up to date.
import { Gauge } from 'prom-client';
import { fail } from '../../../contract/errors.ts';
import type { LiveLine } from '../../../contract/resources/live.ts';
import { mergeHints } from '../../../pipeline/live-events.ts';
import { compareIds, type LiveEntry, LiveReader } from '../../../runtime/live-stream.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { LiveRing } from './live-ring.ts';
import { type LiveSessions, SessionChecks } from './session-checks.ts';
import { type Sink, Watcher } from './watcher.ts';

/** Lines to a watcher are at least this far apart. */
const TICK_MS = 150;
const PING_MS = 15_000;
/** Sessions are looked at again this often; at once when one is known to have ended. */
const SESSIONS_MS = 5_000;
/** A cursor of another process can be ahead of this one for a moment. */
const AHEAD_MS = 1_000;
/** Before every place: whoever has it must be told to read again. */
const NOWHERE = '0-0';
/** A connection that takes nothing for this long is closed. */
const STALL_MS = 30_000;

export interface LiveLimits {
  /** A browser needs one; tabs that cannot share need a few. */
  perSession: number;
  perProcess: number;
}

export const LIVE_LIMITS: LiveLimits = { perSession: 8, perProcess: 1_000 };
const RETRY_SECONDS = 30;

export class LiveHub {
  // Ids alone travel here; whoever wants what they mean has to show a session.
  readonly #sessions: SessionChecks;
  readonly #limits: LiveLimits;
  readonly #reader: LiveReader;
  readonly #watchers = new Set<Watcher>();
  readonly #timers: NodeJS.Timeout[];
  /** Null: the process has no place in the stream yet. */
  #ring: LiveRing | null = null;
  /** Everything up to here was told to whoever is up to date. */
  #told = '';
  #toldAt = 0;
  #tick: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(runtime: Runtime, liveSessions: LiveSessions, limits: LiveLimits = LIVE_LIMITS) {
    this.#sessions = new SessionChecks({
      liveSessions,
      watchers: () => this.#watchers,
      over: SESSION_OVER,
      log: runtime.log,
    });
    this.#limits = limits;
    this.#reader = new LiveReader(runtime, {
      onPlace: (head, kept) => this.#place(head, kept),
      onEntries: (entries) => this.#arrive(entries),
      onLost: () => this.#pause(),
    });
    this.#reader.start();
    this.#timers = [
      setInterval(() => this.#ping(), PING_MS),
      setInterval(() => void this.checkSessions(), SESSIONS_MS),
    ];
    // Before the listener closes, which waits for open answers.
    runtime.stopping.addEventListener('abort', () => this.#endAll(), { once: true });
    measure(runtime, () => this.#watchers.size);
  }

  /** Throws LIVE_STREAM_LIMIT, or SERVICE_UNAVAILABLE while the process stops. */
  admit(token: string): void {
    if (this.#stopped) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    const { perSession, perProcess } = this.#limits;
    const retryAfterSeconds = RETRY_SECONDS;
    if (this.#watchers.size >= perProcess) fail('LIVE_STREAM_LIMIT', { limit: perProcess, retryAfterSeconds });
    let own = 0;
    for (const watcher of this.#watchers) if (watcher.token === token) own++;
    if (own >= perSession) fail('LIVE_STREAM_LIMIT', { limit: perSession, retryAfterSeconds });
  }

  /** Sends lines to the sink until one side ends it. `recentSeconds`: without a cursor, begins that long before. */
  open(token: string, cursor: string | null, sink: Sink, recentSeconds = 0): void {
    const recent = recentSeconds > 0 ? (this.#ring?.before(Date.now() - recentSeconds * 1000) ?? null) : null;
    const watcher = new Watcher(token, cursor ?? recent, sink, () => this.#catchUp(watcher));
    this.#watchers.add(watcher);
    sink.on('close', () => this.#watchers.delete(watcher));
    if (sink.destroyed) this.#watchers.delete(watcher);
    else if (this.#stopped) watcher.end(STOPPING);
    else this.#catchUp(watcher);
    if (cursor === null || watcher.started) return;
    // By the timer alone: it may fire a little before its time, and nothing else may happen after it.
    setTimeout(() => {
      watcher.patient = false;
      this.#catchUp(watcher);
    }, AHEAD_MS).unref();
  }

  async stop(): Promise<void> {
    this.#endAll();
    for (const timer of this.#timers) clearInterval(timer);
    if (this.#tick) clearTimeout(this.#tick);
    await this.#reader.stop();
    await this.#sessions.stop();
  }

  /** Ends the streams of sessions that are over. */
  checkSessions(): Promise<void> {
    return this.#sessions.check();
  }

  /** A place in the stream: the first, or another after what was before is lost. */
  #place(head: string, kept: readonly LiveEntry[]): void {
    const again = this.#ring !== null;
    this.#ring = new LiveRing(head, kept);
    this.#told = head;
    for (const watcher of this.#watchers) {
      // What happened between the two places is not known.
      if (again && watcher.started) this.#reset(watcher);
      else this.#catchUp(watcher);
    }
  }

  /** Pages ask by themselves meanwhile. */
  #pause(): void {
    if (this.#tick) {
      clearTimeout(this.#tick);
      this.#tell();
    }
    for (const watcher of this.#watchers) if (watcher.started && watcher.ready) watcher.send(PAUSE);
  }

  #arrive(entries: readonly LiveEntry[]): void {
    this.#ring!.append(entries);
    this.#tick ??= setTimeout(() => this.#tell(), Math.max(0, this.#toldAt + TICK_MS - performance.now()));
  }

  #tell(): void {
    this.#tick = null;
    const { head } = this.#ring!;
    const before = this.#told;
    if (head === before) return;
    const line = this.#lineOf(before);
    this.#told = head;
    this.#toldAt = performance.now();
    for (const watcher of this.#watchers) {
      if (!watcher.ready) continue;
      if (line === 'lost' || watcher.cursor !== before || !watcher.started) this.#catchUp(watcher);
      else {
        if (line) watcher.send(line);
        watcher.cursor = head;
      }
    }
  }

  /** What came after the cursor, as one line; null for nothing that this version knows. */
  #lineOf(cursor: string): Buffer | null | 'lost' {
    const { head } = this.#ring!;
    const hints = this.#ring!.between(cursor, head);
    if (hints === 'lost') return hints;
    const events = mergeHints(hints);
    return events.length > 0 ? encode({ type: 'events', cursor: head, events }) : null;
  }

  /** Brings a watcher to where the others are: by what it missed, or by telling that this cannot be told. */
  #catchUp(watcher: Watcher): void {
    if (!this.#ring || !watcher.ready) return;
    const from = watcher.cursor ?? this.#told;
    const ahead = compareIds(from, this.#ring.head) > 0;
    if (ahead && watcher.patient) return;
    const hints = this.#ring.between(from, this.#told);
    if (hints === 'lost') {
      this.#reset(watcher);
      return;
    }
    const events = mergeHints(hints);
    const lines: LiveLine[] = [];
    if (!watcher.started) lines.push({ type: 'start', cursor: from });
    if (events.length > 0) lines.push({ type: 'events', cursor: this.#told, events });
    watcher.started = true;
    if (compareIds(from, this.#told) < 0) watcher.cursor = this.#told;
    else watcher.cursor = from;
    if (lines.length > 0) watcher.send(encode(...lines));
  }

  #reset(watcher: Watcher): void {
    // A reader that takes nothing is told once it does.
    if (!watcher.ready) {
      watcher.cursor = NOWHERE;
      return;
    }
    watcher.started = true;
    watcher.cursor = this.#told;
    watcher.send(encode({ type: 'reset', cursor: this.#told }));
  }

  #ping(): void {
    for (const watcher of this.#watchers) {
      if (watcher.stalled(STALL_MS)) watcher.drop();
      else if (watcher.ready) watcher.send(PING);
    }
  }

  #endAll(): void {
    this.#stopped = true;
    for (const watcher of this.#watchers) watcher.end(STOPPING);
  }
}

function encode(...lines: LiveLine[]): Buffer {
  return Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

const PAUSE = encode({ type: 'pause' });
const PING = encode({ type: 'ping' });
const SESSION_OVER = encode({ type: 'end', reason: 'session' });
const STOPPING = encode({ type: 'end', reason: 'stopping' });

function measure({ metrics }: Runtime, count: () => number): void {
  new Gauge({
    name: 'svc_live_streams',
    help: 'Open pages that follow live updates',
    registers: [metrics],
    collect() {
      this.set(count());
    },
  });
}
