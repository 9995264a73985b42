// Tells the console every 5 s how the sites fare that it watches, while it watches any. A report is of one configuration
// and one process of the data plane: it ends early where another configuration begins. One that is lost is not repeated,
// and the next one goes on from there.
import { create } from '@bufbuild/protobuf';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import {
  type NamedCount,
  type ReportVitalsRequest,
  type Vitals,
  VitalsSchema,
  type VitalWatch,
} from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import { samePosition } from '../config/config-store.ts';

const EVERY_MS = 5_000;
/** After a change all nodes report together, and should not go on so: the next report comes earlier by up to this much. */
const SPREAD = 0.6;
const CALL_MS = 4_000;
/** Between readings: many changes in a row are told together. */
const MIN_GAP_MS = 1_000;
/** A death of longer ago has nothing to do with what changes now. */
const DEATH_MS = 60_000;
const MAX_SITES = 100;
const MAX_SECONDS = 86_400;

export interface VitalReporterOptions {
  client: Pick<EdgeClient, 'getVitals'>;
  channel: () => Pick<NodeChannel, 'reportVitals'> | undefined;
  log: Log;
  /** For tests. */
  everyMs?: number;
}

/** What was read last: differences begin there. */
interface Reading {
  /** Milliseconds of the monotonic clock. */
  at: number;
  instance: string;
  position: ConfigPosition;
  asked: ReadonlySet<string>;
  vitals: ReadonlyMap<string, Vitals>;
}

export class VitalReporter {
  private readonly options: VitalReporterOptions;
  private siteIds: readonly string[] = [];
  private until = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private reporting: Promise<void> | undefined;
  private again = false;
  private stopped = false;
  private last: Reading | undefined;
  private problem = '';
  /** What runs, by which process, and the entries that failed before it and fail with it. */
  private position: ConfigPosition | undefined;
  private instance = '';
  private failedBefore: ReadonlySet<string> = new Set();
  private failedNow: ReadonlySet<string> = new Set();
  /** When a process of what runs was found dead, which nobody was told yet. */
  private diedAt = Number.NEGATIVE_INFINITY;

  constructor(options: VitalReporterOptions) {
    this.options = options;
  }

  /** What the console watches from now on. */
  watch(watch: Pick<VitalWatch, 'siteIds' | 'seconds'> | undefined): void {
    const seconds = Math.min(watch?.seconds ?? 0, MAX_SECONDS);
    this.until = performance.now() + seconds * 1000;
    if (!watch || seconds === 0) {
      this.end();
      return;
    }
    const { last } = this;
    this.siteIds = watch.siteIds.slice(0, MAX_SITES);
    // Figures of a site are differences, so the sooner it is read for the first time, the better.
    if (!last || this.siteIds.some((id) => !last.asked.has(id))) this.soon();
  }

  /** The data plane runs this configuration now; or another process of it runs the same. */
  onApplied(position: ConfigPosition, failed: readonly FailedEntry[], instance: string): void {
    const known = this.position !== undefined && samePosition(this.position, position);
    if (!known) {
      // What failed when the agent started is no news.
      this.failedBefore = this.position ? this.failedNow : new Set(failed.map(failureKey));
      this.diedAt = Number.NEGATIVE_INFINITY;
    } else if (this.instance !== '' && instance !== '' && instance !== this.instance) {
      this.diedAt = performance.now();
    }
    this.position = position;
    this.failedNow = new Set(failed.map(failureKey));
    if (instance !== '') this.instance = instance;
    if (this.isWatched) this.soon();
  }

  stop(): void {
    this.stopped = true;
    this.end();
  }

  /** Reads, and tells what differs from the reading before. Never rejects. */
  async report(): Promise<void> {
    const { channel, client } = this.options;
    if (!this.isWatched || !channel()) {
      this.end();
      return;
    }
    try {
      const asked = [...this.siteIds];
      const answer = await client.getVitals(asked);
      const { config, instanceId } = answer;
      if (!config || !this.isWatched) return;
      const before = this.last;
      const now: Reading = {
        at: performance.now(),
        instance: instanceId,
        position: config,
        asked: new Set(asked),
        vitals: new Map(answer.vitals.map((vitals) => [vitals.siteId, vitals])),
      };
      this.last = now;
      const request = this.difference(before, now);
      if (request) await this.send(request);
      this.problem = '';
    } catch (error) {
      const problem = errorText(error);
      if (this.problem !== problem) this.options.log.debug('figures of watched sites not reported', { problem });
      this.problem = problem;
    }
  }

  private get isWatched(): boolean {
    return !this.stopped && performance.now() < this.until;
  }

  private end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.last = undefined;
  }

  /** Reports at once, or a second after the reading before, and then at intervals. */
  private soon(): void {
    if (this.reporting) this.again = true;
    else this.schedule((this.last?.at ?? Number.NEGATIVE_INFINITY) + MIN_GAP_MS - performance.now(), true);
  }

  private schedule(delayMs: number, together: boolean): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(() => this.run(together), Math.max(0, delayMs));
  }

  private run(together: boolean): void {
    this.again = false;
    this.reporting = this.report().finally(() => {
      this.reporting = undefined;
      const { everyMs = EVERY_MS } = this.options;
      if (this.again) this.soon();
      else if (this.isWatched) this.schedule(everyMs * (1 - (together ? SPREAD * Math.random() : 0)), false);
    });
  }

  private difference(before: Reading | undefined, now: Reading): Partial<ReportVitalsRequest> | undefined {
    const another = before !== undefined && before.instance !== now.instance;
    const died = now.at - this.diedAt < DEATH_MS;
    const restarted = another || died || (this.instance !== '' && this.instance !== now.instance);
    this.diedAt = Number.NEGATIVE_INFINITY;
    this.instance = now.instance;
    if (!before && !restarted) return undefined;
    // A new process has counted from 0, with what it runs.
    const position = before && !another ? before.position : now.position;
    const vitals = before
      ? [...now.vitals.values()].flatMap((figures) => {
          const asked = figures.siteId === '' || before.asked.has(figures.siteId);
          return asked ? subtract(figures, another ? undefined : before.vitals.get(figures.siteId)) : [];
        })
      : [];
    return {
      dataPlaneInstance: now.instance,
      coveredMs: before ? Math.min(Math.round(now.at - before.at), 2 ** 32 - 1) : 0,
      config: position,
      vitals,
      failed: this.position && samePosition(this.position, position) ? this.newlyFailed : 0,
      restarted,
    };
  }

  private get newlyFailed(): number {
    return [...this.failedNow].filter((key) => !this.failedBefore.has(key)).length;
  }

  private async send(request: Partial<ReportVitalsRequest>): Promise<void> {
    const { $typeName: _, $unknown: __, ...message } = request;
    const watch = await this.options.channel()?.reportVitals(message, { timeoutMs: CALL_MS });
    if (watch) this.watch(watch);
  }
}

function failureKey({ kind, id, receivedHash }: FailedEntry): string {
  return `${kind}/${id} ${Buffer.from(receivedHash).toString('hex')}`;
}

/** What was counted since; all of it where the figures are younger. */
function subtract(now: Vitals, before: Vitals | undefined): Vitals[] {
  const since =
    before && before.requests <= now.requests && before.originErrors <= now.originErrors ? before : undefined;
  const known = new Map((since?.edgeErrors ?? []).map(({ name, count }: NamedCount) => [name, count]));
  const edgeErrors = now.edgeErrors.flatMap(({ name, count }) => {
    const more = count - (known.get(name) ?? 0n);
    return more > 0n ? [{ name, count: more }] : [];
  });
  return [
    create(VitalsSchema, {
      siteId: now.siteId,
      requests: now.requests - (since?.requests ?? 0n),
      originErrors: now.originErrors - (since?.originErrors ?? 0n),
      edgeErrors,
    }),
  ];
}
