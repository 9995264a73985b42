// Sums over the batches that a process takes in a second: a row for each cluster, site and minute.
import type { SummedMinute } from '../../models/usage/usage-batch.ts';
import type { StatsRow } from './stats-report.ts';

/** Bytes of a sum beyond which another one begins: with one more of what a row may have it is exact, and fits its column. */
const LARGE = 2 ** 52;

interface Sum {
  requests: number;
  bytesSent: number;
  bytesReceived: number;
  cacheHits: number;
  cacheMisses: number;
  cacheHitBytes: number;
  statuses: Map<number, number>;
  counts: Map<string, number>;
  latency: number[];
}

type Sites = Map<string, Sum>;

export class StatsSums {
  /** By cluster, minute and site: a joined key for each row would cost more than all that is added. */
  readonly #clusters = new Map<string, Map<number, Sites>>();
  readonly #full: SummedMinute[] = [];

  /** `numbers` are those of the row's batch. */
  add(clusterId: string, row: StatsRow, numbers: Float64Array): void {
    if (countsNothing(row)) return;
    const minutes = entry(this.#clusters, clusterId, () => new Map<number, Sites>());
    const sites = entry(minutes, row.minute, () => new Map<string, Sum>());
    const sum = entry(sites, row.siteId, emptySum);
    sum.requests += row.requests;
    sum.bytesSent += row.bytesSent;
    sum.bytesReceived += row.bytesReceived;
    sum.cacheHits += row.cacheHits;
    sum.cacheMisses += row.cacheMisses;
    sum.cacheHitBytes += row.cacheHitBytes;
    let { at } = row;
    for (let left = row.statuses; left > 0; left--) add(sum.statuses, numbers[at++]!, numbers[at++]!);
    for (const name of row.names) add(sum.counts, name, numbers[at++]!);
    while (sum.latency.length < row.latency) sum.latency.push(0);
    for (let bucket = 0; bucket < row.latency; bucket++) sum.latency[bucket]! += numbers[at++]!;
    if (sum.bytesSent <= LARGE && sum.bytesReceived <= LARGE && sum.cacheHitBytes <= LARGE) return;
    const { siteId, minute } = row;
    this.#full.push({ clusterId, siteId, minute, ...written(sum) });
    sites.delete(siteId);
  }

  /** All sums, at most so many at a time; large ones in several rows. */
  *pieces(most: number): Generator<SummedMinute[]> {
    let piece: SummedMinute[] = [];
    for (const row of this.#rows()) {
      piece.push(row);
      if (piece.length < most) continue;
      yield piece;
      piece = [];
    }
    if (piece.length > 0) yield piece;
  }

  *#rows(): Generator<SummedMinute> {
    yield* this.#full;
    for (const [clusterId, minutes] of this.#clusters) {
      for (const [minute, sites] of minutes) {
        for (const [siteId, sum] of sites) yield { clusterId, siteId, minute, ...written(sum) };
      }
    }
  }
}

/** Lists come after their minute, in a row that counts nothing. */
export function countsNothing(row: StatsRow): boolean {
  const { requests, bytesSent, bytesReceived, statuses, names, latency, tops } = row;
  return tops.length > 0 && requests + bytesSent + bytesReceived + statuses + names.length + latency === 0;
}

function emptySum(): Sum {
  return {
    requests: 0,
    bytesSent: 0,
    bytesReceived: 0,
    cacheHits: 0,
    cacheMisses: 0,
    cacheHitBytes: 0,
    statuses: new Map(),
    counts: new Map(),
    latency: [],
  };
}

function written(sum: Sum): Omit<SummedMinute, 'clusterId' | 'siteId' | 'minute'> {
  const { requests, statuses, counts, latency } = sum;
  return {
    requests,
    bytesSent: sum.bytesSent.toString(),
    bytesReceived: sum.bytesReceived.toString(),
    cacheHits: sum.cacheHits,
    cacheMisses: sum.cacheMisses,
    cacheHitBytes: sum.cacheHitBytes.toString(),
    failed: failedOf(statuses),
    statuses: asObject(statuses),
    counts: asObject(counts),
    latency: latency.length > 0 ? `{${latency.join()}}` : null,
    of: sum,
  };
}

function failedOf(statuses: ReadonlyMap<number, number>): number {
  let failed = 0;
  for (const [code, n] of statuses) if (code >= 500) failed += n;
  return failed;
}

/** JSON of counts by numbers or names, none of which needs escaping; null: there are none. */
function asObject(counts: ReadonlyMap<number | string, number>): string | null {
  if (counts.size === 0) return null;
  let text = '';
  for (const [name, count] of counts) text += `${text === '' ? '{' : ','}"${name}":${count}`;
  return `${text}}`;
}

/** The value of a key, made where there is none. */
export function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function add<K>(sums: Map<K, number>, key: K, count: number): void {
  if (count > 0) sums.set(key, (sums.get(key) ?? 0) + count);
}
