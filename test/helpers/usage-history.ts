// Random histories of nodes that report usage, and what the specification makes of them.
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { ReportStatsRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { StatsIngest } from '../../services/node-channel/stats-ingest.ts';

const WINDOW_S = 300;

export type Step =
  | { what: 'count'; node: number; site: number; minute: number; requests: number; bytes: number }
  | { what: 'drain' | 'send' | 'lose' | 'jump' | 'drop' | 'enroll'; node: number }
  | { what: 'roll_up' | 'compact' };

const node = fc.nat({ max: 2 });
const count = fc.record({
  what: fc.constant('count' as const),
  node,
  site: fc.nat({ max: 1 }),
  // Of a few windows: what comes late meets what is there.
  minute: fc.nat({ max: 19 }),
  requests: fc.nat({ max: 1000 }),
  bytes: fc.integer({ min: 1, max: 2 ** 40 }),
});
const act = (what: 'drain' | 'send' | 'lose' | 'jump' | 'drop' | 'enroll') =>
  fc.record({ what: fc.constant(what), node });

/** Counting, draining, sending; answers lost, batches out of order, spools dropped, enrolments anew, roll-ups between, and compaction. */
export const histories = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: count },
    { weight: 5, arbitrary: act('drain') },
    { weight: 5, arbitrary: act('send') },
    { weight: 2, arbitrary: act('lose') },
    { weight: 1, arbitrary: act('jump') },
    { weight: 1, arbitrary: act('drop') },
    { weight: 1, arbitrary: act('enroll') },
    { weight: 1, arbitrary: fc.constant({ what: 'roll_up' as const }) },
    { weight: 3, arbitrary: fc.constant({ what: 'compact' as const }) },
  ),
  { minLength: 10, maxLength: 50 },
);

interface Counts {
  siteId: string;
  /** Unix seconds. */
  minute: number;
  requests: number;
  bytes: number;
}

interface Batch {
  sequence: bigint;
  rows: Counts[];
  completeUntil: number;
}

/** One enrolment: what it counts, keeps and sends, and what the console should have of it. */
export class CountingNode {
  readonly nodeId: string;
  readonly clusterId: string;
  /** Counted once, each as soon as its batch is stored. */
  readonly stored = new Map<bigint, Batch>();
  /** The last one stored. */
  watermark: number | null = null;
  #open: Counts[] = [];
  #spool: Batch[] = [];
  #drains = 0;
  readonly #from: number;

  constructor(nodeId: string, clusterId: string, from: number) {
    this.nodeId = nodeId;
    this.clusterId = clusterId;
    this.#from = from;
  }

  count(row: Counts): void {
    this.#open.push(row);
  }

  drain(): void {
    this.#drains += 1;
    const completeUntil = this.#from + this.#drains * 60;
    this.#spool.push({ sequence: BigInt(this.#drains), rows: this.#open, completeUntil });
    this.#open = [];
  }

  drop(): void {
    this.#spool.shift();
  }

  get spooled(): number {
    return this.#spool.length;
  }

  /** Sends the oldest batch, or the newest; the answer may get lost. */
  async send(console: StatsIngest, which: 'oldest' | 'newest', answered: boolean): Promise<void> {
    const batch = which === 'oldest' ? this.#spool[0] : this.#spool.at(-1);
    if (!batch) return;
    const acknowledged = await console.report(this, this.#requestOf(batch));
    if (acknowledged === batch.sequence && !this.stored.has(batch.sequence)) {
      this.stored.set(batch.sequence, batch);
      this.watermark = batch.completeUntil;
    }
    if (answered) this.#spool = this.#spool.filter(({ sequence }) => sequence > acknowledged);
  }

  #requestOf({ sequence, rows, completeUntil }: Batch) {
    return create(ReportStatsRequestSchema, {
      sequence,
      firstHeld: this.#spool[0]!.sequence,
      completeUntil: BigInt(completeUntil),
      minutes: rows.map(({ siteId, minute, requests, bytes }) => ({
        siteId,
        minute: BigInt(minute),
        requests: BigInt(requests),
        bytesSent: BigInt(bytes),
      })),
    });
  }
}

/** Sums by `<window> <site>` of what is stored of all enrolments. */
export function expectedSums(nodes: readonly CountingNode[]): Map<string, { requests: number; bytes: number }> {
  const sums = new Map<string, { requests: number; bytes: number }>();
  const rows = nodes.flatMap(({ stored }) => [...stored.values()].flatMap((batch) => batch.rows));
  for (const { siteId, minute, requests, bytes } of rows) {
    const key = `${Math.floor(minute / WINDOW_S) * WINDOW_S} ${siteId}`;
    const sum = sums.get(key) ?? { requests: 0, bytes: 0 };
    sums.set(key, { requests: sum.requests + requests, bytes: sum.bytes + bytes });
  }
  return sums;
}
