// Compares the kernel's table with what the agent wrote. `nft list table` is streamed: 100,000 bans are 5 MB of text.
import { performance } from 'node:perf_hooks';
import { type Cidr, canonicalCidr, endOf } from '../bans/cidr.ts';
import { streamNft } from './run-nft.ts';
import { type HashSet, type PrefixSet, renderTable } from './script.ts';
import { plainRule, rangeOf, TableListing } from './table-listing.ts';

/** Times that differ by less are the same, and elements that end sooner may be there or not: writing takes up to 30 s. */
const SLACK_MS = 60_000;
const BITS: Record<HashSet, number> = { ban4: 32, ban6: 128, ban6p: 64 };

export interface WrittenTable {
  /** Ends of hosts by CIDR, monotonic ms. */
  hosts: ReadonlyMap<string, number>;
  /** Ends of the ranges of a prefix set by `rangeKey`, monotonic ms. */
  ranges: Readonly<Record<PrefixSet, ReadonlyMap<string, number>>>;
  allowed: readonly Cidr[];
}

export interface TableDifference {
  /** CIDRs of hosts that are missing, or that have another time. */
  hosts: string[];
  /** CIDRs of hosts that the agent did not write. */
  foreign: string[];
  prefixSets: PrefixSet[];
  allowed: boolean;
  rules: boolean;
}

export function rangeKey({ start, end }: { start: bigint; end: bigint }): string {
  return `${start}-${end}`;
}

/** Throws when the table is missing or holds what cannot be read. */
export async function compareTable(
  nftBin: string,
  table: string,
  written: WrittenTable,
  signal: AbortSignal,
): Promise<TableDifference> {
  const now = performance.now();
  const hosts = new TimedElements(written.hosts, now);
  const ranges = {
    ban4n: new TimedElements(written.ranges.ban4n, now),
    ban6n: new TimedElements(written.ranges.ban6n, now),
  };
  const allowed: { family: number; start: bigint; end: bigint }[] = [];
  const listing = new TableListing(({ set, text, remainingMs }) => {
    if (set in BITS) {
      const key = `${text}/${BITS[set as HashSet]}`;
      hosts.listed(written.hosts.has(key) ? key : canonicalCidr(key), remainingMs);
    } else if (set === 'ban4n' || set === 'ban6n') ranges[set].listed(rangeKey(rangeOf(text)), remainingMs);
    else allowed.push({ family: text.includes(':') ? 6 : 4, ...rangeOf(text) });
  });
  await streamNft(nftBin, ['list', 'table', 'inet', table], (line) => listing.line(line), signal);
  return {
    hosts: [...hosts.wrong, ...hosts.missing()],
    foreign: hosts.foreign,
    prefixSets: (['ban4n', 'ban6n'] as const).filter((set) => !ranges[set].same()),
    allowed: merged(allowed) !== merged(written.allowed.map((cidr) => ({ ...cidr, end: endOf(cidr) }))),
    rules: listing.rules.join('\n') !== writtenRules(table),
  };
}

/** Elements with a time: what was written, beside what is listed. */
class TimedElements {
  readonly wrong: string[] = [];
  readonly foreign: string[] = [];
  private readonly seen = new Set<string>();
  private readonly written: ReadonlyMap<string, number>;
  private readonly now: number;

  constructor(written: ReadonlyMap<string, number>, now: number) {
    this.written = written;
    this.now = now;
  }

  listed(key: string, remainingMs = Number.POSITIVE_INFINITY): void {
    const end = this.written.get(key);
    this.seen.add(key);
    if (end === undefined) {
      if (remainingMs > SLACK_MS) this.foreign.push(key);
    } else if (Math.abs(end - this.now - remainingMs) > SLACK_MS) this.wrong.push(key);
  }

  missing(): string[] {
    const missing: string[] = [];
    for (const [key, end] of this.written) if (end - this.now > SLACK_MS && !this.seen.has(key)) missing.push(key);
    return missing;
  }

  same(): boolean {
    return this.wrong.length === 0 && this.foreign.length === 0 && this.missing().length === 0;
  }
}

/** The addresses that ranges cover, however they are split. */
function merged(ranges: readonly { family: number; start: bigint; end: bigint }[]): string {
  const sorted = ranges.toSorted((left, right) =>
    left.family === right.family
      ? Number(left.start > right.start) - Number(left.start < right.start)
      : left.family - right.family,
  );
  const covered: { family: number; start: bigint; end: bigint }[] = [];
  for (const range of sorted) {
    const last = covered.at(-1);
    if (last?.family !== range.family || range.start > last.end + 1n) covered.push({ ...range });
    else if (range.end > last.end) last.end = range.end;
  }
  return covered.map((range) => `${range.family} ${rangeKey(range)}`).join();
}

/** The lines of the chain as written. */
function writtenRules(table: string): string {
  const lines = renderTable(table, '').map(plainRule);
  return lines.slice(lines.indexOf('chain input {') + 1, -2).join('\n');
}

export function isSame(found: TableDifference): boolean {
  return found.hosts.length + found.foreign.length + found.prefixSets.length === 0 && !found.allowed && !found.rules;
}
