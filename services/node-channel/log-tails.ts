// Requests that are watched as they end: passes on to nodes what gateways watch, and to gateways what nodes report. What is
// watched is known from leases that gateways renew every few seconds, so nothing has to be taken back.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { MAX_TAIL_ROWS, type TailFilter } from '../../contract/resources/log-tail.ts';
import type { LogEntry } from '../../contract/resources/logs.ts';
import { entryOf } from '../../models/logs/log-entry.ts';
import {
  type LogTailFilter,
  LogTailFilterSchema,
  LogTailSchema,
  LogTailWatchSchema,
  type ReportLogTailRequest,
} from '../../proto/gen/svc/node/v1/logs_pb.js';
import {
  MAX_FILTERS,
  MAX_WATCHES,
  type TailLease,
  type TailRows,
  type TailWatch,
  tailLeasesChannel,
  tailRowsChannel,
} from '../../runtime/log-tail.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeIdentity } from './identity.ts';
import { readTailRows } from './log-report.ts';
import { eventFrame } from './watch/frames.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const INTERVAL_MS = 200;
const LONGEST_INTERVAL_MS = 600;
const MIN_ROWS = 2;
const MAX_LOST = 2n ** 32n;
const MAX_LOSSES = 1_024;
const MAX_PACES = 256;

interface Lease {
  until: number;
  watches: readonly TailWatch[];
}

/** What is watched of a cluster. */
interface Watched {
  until: number;
  /** Undefined: every request. */
  filters: TailFilter[] | undefined;
}

export class LogTails {
  readonly #runtime: Pick<Runtime, 'env' | 'redis' | 'log'>;
  readonly #hub: Pick<WatchHub, 'tellCluster'>;
  /** By process. */
  readonly #leases = new Map<string, Lease>();
  /** Rows that a site was passed on in a second. */
  readonly #paces = new Map<string, { second: number; rows: number }>();

  constructor(runtime: Pick<Runtime, 'env' | 'redis' | 'log' | 'newRedis'>, hub: Pick<WatchHub, 'tellCluster'>) {
    this.#runtime = runtime;
    this.#hub = hub;
    const leases = runtime.newRedis();
    leases.subscribe(tailLeasesChannel(runtime)).catch(() => undefined);
    leases.on('message', (_channel: string, message: string) => this.take(JSON.parse(message) as TailLease));
  }

  /** A process watches something else from now on, or still the same. */
  take({ process, seconds, watches }: TailLease): void {
    const before = this.#leases.get(process)?.watches ?? [];
    if (watches.length === 0) this.#leases.delete(process);
    else this.#leases.set(process, { until: performance.now() + seconds * 1000, watches });
    for (const clusterId of new Set([...before, ...watches].map((watch) => watch.clusterId))) this.#tell(clusterId);
  }

  /** Passes on rows of watched sites of the node's cluster. Throws invalid_argument for what is no report. */
  report(node: Pick<NodeIdentity, 'nodeId' | 'clusterId' | 'name'>, { rows, dropped }: ReportLogTailRequest): void {
    if (dropped.length > MAX_LOSSES) throw new ConnectError('too many sites', Code.InvalidArgument);
    const watched = this.#watchedOf(node.clusterId);
    const now = Date.now();
    const bySite = new Map<string, TailRows>();
    const of = (siteId: string): TailRows | undefined => {
      if (!watched.has(siteId)) return undefined;
      const known = bySite.get(siteId) ?? { entries: [], dropped: 0 };
      bySite.set(siteId, known);
      return known;
    };
    for (const { siteId, rows: lost } of dropped) {
      const told = of(siteId);
      if (told && lost < MAX_LOST) told.dropped += Number(lost);
    }
    for (const row of readTailRows(rows, { nodeId: node.nodeId, now })) {
      of(row.siteId)?.entries.push(entryOf(row, node.name));
    }
    for (const [siteId, told] of bySite) this.#pass(siteId, told, Math.floor(now / 1000));
  }

  #pass(siteId: string, { entries, dropped }: TailRows, second: number): void {
    if (this.#paces.size > MAX_PACES) this.#paces.clear();
    const pace = this.#paces.get(siteId);
    const rows = pace?.second === second ? pace.rows : 0;
    const kept: LogEntry[] = entries.slice(0, Math.max(0, MAX_TAIL_ROWS - rows));
    this.#paces.set(siteId, { second, rows: rows + kept.length });
    const told: TailRows = { entries: kept, dropped: dropped + entries.length - kept.length };
    // Nobody waits for it: what Redis does not take is lost.
    this.#runtime.redis
      .publish(tailRowsChannel(this.#runtime, siteId), JSON.stringify(told))
      .catch((err) => this.#runtime.log.debug({ err }, 'watched requests not passed on'));
  }

  #tell(clusterId: string): void {
    const watched = this.#watchedOf(clusterId);
    const now = performance.now();
    this.#hub.tellCluster(clusterId, (nodes) => {
      // A thousand nodes together have little more rows and calls than one.
      const rowsPerSecond = Math.min(MAX_TAIL_ROWS, Math.max(MIN_ROWS, Math.ceil((2 * MAX_TAIL_ROWS) / nodes)));
      const watches = [...watched].map(([siteId, { until, filters = [] }]) =>
        create(LogTailWatchSchema, {
          siteId,
          seconds: Math.ceil((until - now) / 1000),
          rowsPerSecond: nodes === 1 ? MAX_TAIL_ROWS : rowsPerSecond,
          filters: filters.map(filterOf),
        }),
      );
      const intervalMs = Math.min(LONGEST_INTERVAL_MS, INTERVAL_MS + Math.floor(nodes / 2));
      return eventFrame({ case: 'logTail', value: create(LogTailSchema, { watches, intervalMs }) });
    });
  }

  /** Sites of a cluster that are watched now. */
  #watchedOf(clusterId: string): Map<string, Watched> {
    const now = performance.now();
    const watched = new Map<string, Watched>();
    for (const [process, { until, watches }] of this.#leases) {
      if (until <= now) {
        this.#leases.delete(process);
        continue;
      }
      for (const { siteId, clusterId: of, filters } of watches) {
        if (of !== clusterId || (watched.size >= MAX_WATCHES && !watched.has(siteId))) continue;
        const known = watched.get(siteId);
        const all = filters.length === 0 || (known !== undefined && known.filters === undefined);
        const both = all ? undefined : [...(known?.filters ?? []), ...filters];
        // More than nodes compare: the gateway does it alone.
        const few = both !== undefined && both.length > MAX_FILTERS ? undefined : both;
        watched.set(siteId, { until: Math.max(until, known?.until ?? 0), filters: few });
      }
    }
    return watched;
  }
}

function filterOf(filter: TailFilter): LogTailFilter {
  const { ip, cidr, host, ua, referer, minDuration, ...same } = filter;
  return create(LogTailFilterSchema, {
    ...same,
    clients: [ip, cidr].filter((client) => client !== undefined),
    host: host?.toLowerCase() ?? '',
    userAgent: ua?.trim() ?? '',
    referer: referer?.trim() ?? '',
    minDurationMs: minDuration ?? 0,
  });
}
