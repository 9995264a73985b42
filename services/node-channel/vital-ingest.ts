// Sums of what nodes of this process report of watched sites, by 5 seconds of its clock, written once a second. What
// cannot be written is tried again with the next second, until its slot is over.
import { randomUUID } from 'node:crypto';
import { Counter } from 'prom-client';
import { SLOT_MS, type VitalRow, writeVitals } from '../../models/rollouts/vital.ts';
import type { WatchNow } from '../../models/rollouts/vital-watch.ts';
import type { ReportVitalsRequest } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeIdentity } from './identity.ts';
import { readVitalReport, type VitalReport } from './vital-report.ts';
import type { VitalWatches } from './vital-watches.ts';

const WRITE_MS = 1_000;
/** Slots end here this long after their time. */
const KEPT_MS = 3 * SLOT_MS;
/** Of all slots that are held: a hundred sites of a hundred clusters, on both tracks. */
const MAX_ROWS = 60_000;
/** Of one node in one slot: more than one where its configuration changed in between. */
const MAX_REPORTS = 8;
/** Names that errors of the edge have; the edge knows fewer. */
const MAX_CODES = 64;

type Verdict = 'taken' | 'unwatched' | 'unknown' | 'too_many';

interface Row extends VitalRow {
  /** Differs from what is stored. */
  dirty: boolean;
}

/** Reports of each node in a slot, and the nodes of each position that it ran. */
interface Slot {
  reports: Map<string, number>;
  nodes: Map<string, Set<string>>;
}

export class VitalIngest {
  readonly #runtime: Runtime;
  readonly #watches: VitalWatches;
  readonly #counted: Counter<'verdict'>;
  readonly #now: () => number;
  readonly #writer = randomUUID();
  readonly #rows = new Map<string, Row>();
  readonly #slots = new Map<number, Slot>();
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(runtime: Runtime, watches: VitalWatches, now: () => number = Date.now) {
    this.#runtime = runtime;
    this.#watches = watches;
    this.#now = now;
    this.#counted = new Counter({
      name: 'svc_vital_reports_total',
      help: 'Reports of nodes on sites that were just changed.',
      labelNames: ['verdict'],
      registers: [runtime.metrics],
    });
  }

  /**
   * Adds what a node reports of the history `epoch`, of which `head` is the latest revision; what makes no sense is left
   * out and counted. Answers what is watched now.
   */
  async report(
    node: Pick<NodeIdentity, 'nodeId' | 'clusterId'>,
    request: ReportVitalsRequest,
    { epoch, head }: { epoch: bigint; head: bigint },
  ): Promise<WatchNow | null> {
    const watch = await this.#watches.of(node.clusterId, head);
    const report = watch && readVitalReport(request, new Set(watch.siteIds));
    let verdict: Verdict = 'taken';
    if (!watch) verdict = 'unwatched';
    else if (!report || request.config?.epoch !== epoch || report.revision > watch.head) verdict = 'unknown';
    else if (!this.#add(node, report)) verdict = 'too_many';
    this.#counted.inc({ verdict });
    return watch;
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    await this.#write();
  }

  #add({ nodeId, clusterId }: Pick<NodeIdentity, 'nodeId' | 'clusterId'>, report: VitalReport): boolean {
    const at = Math.floor(this.#now() / SLOT_MS) * SLOT_MS;
    const slot = this.#slotAt(at);
    const reports = (slot.reports.get(nodeId) ?? 0) + 1;
    if (reports > MAX_REPORTS || this.#rows.size + report.sites.length > MAX_ROWS) return false;
    slot.reports.set(nodeId, reports);
    const { track, revision, restarted, failed } = report;
    const position = `${clusterId} ${track} ${revision}`;
    const nodes = slot.nodes.get(position) ?? new Set();
    slot.nodes.set(position, nodes);
    const isNew = !nodes.has(nodeId);
    nodes.add(nodeId);
    for (const figures of report.sites) {
      const key = `${at} ${position} ${figures.siteId}`;
      let row = this.#rows.get(key);
      if (!row) {
        row = emptyRow({ clusterId, slot: at, siteId: figures.siteId, track, revision });
        this.#rows.set(key, row);
      }
      row.dirty = true;
      row.nodes += isNew ? 1 : 0;
      row.requests += figures.requests;
      row.origin5xx += figures.origin5xx;
      row.edge5xx += figures.edge5xx;
      addCodes(row.edgeCodes, figures.edgeCodes);
      if (figures.siteId !== '') continue;
      row.restarts += restarted ? 1 : 0;
      row.failed += isNew ? failed : 0;
    }
    if (!this.#stopped) this.#timer ??= setTimeout(() => this.#flush(), WRITE_MS);
    return true;
  }

  #slotAt(at: number): Slot {
    let slot = this.#slots.get(at);
    if (!slot) {
      this.#forget();
      slot = { reports: new Map(), nodes: new Map() };
      this.#slots.set(at, slot);
    }
    return slot;
  }

  #forget(): void {
    const kept = this.#now() - KEPT_MS;
    for (const at of this.#slots.keys()) if (at < kept) this.#slots.delete(at);
    for (const [key, row] of this.#rows) if (row.slot < kept) this.#rows.delete(key);
  }

  #flush(): void {
    this.#timer = null;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    const rows = [...this.#rows.values()].filter(({ dirty }) => dirty);
    for (const row of rows) row.dirty = false;
    try {
      await writeVitals(this.#runtime.pools.ingest, this.#writer, rows);
    } catch (err) {
      for (const row of rows) row.dirty = true;
      this.#runtime.log.warn({ err }, 'figures of watched sites not written');
      if (!this.#stopped) this.#timer ??= setTimeout(() => this.#flush(), WRITE_MS);
    }
    this.#forget();
  }
}

function addCodes(sums: Record<string, number>, codes: Readonly<Record<string, number>>): void {
  for (const [code, count] of Object.entries(codes)) {
    const name = code in sums || Object.keys(sums).length < MAX_CODES ? code : 'other';
    sums[name] = (sums[name] ?? 0) + count;
  }
}

function emptyRow(key: Pick<Row, 'clusterId' | 'slot' | 'siteId' | 'track' | 'revision'>): Row {
  return {
    ...key,
    nodes: 0,
    requests: 0,
    origin5xx: 0,
    edge5xx: 0,
    edgeCodes: {},
    restarts: 0,
    failed: 0,
    dirty: false,
  };
}
