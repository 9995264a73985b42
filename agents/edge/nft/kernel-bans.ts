// The node's nftables table: global bans as elements with timeouts. Changes are coalesced: while one nft process runs, what
// arrives waits for the next. Any error leads to a full resync. What the kernel holds is compared every five minutes, and only
// differences are written: at 100,000 bans, a rewrite took 0.6 s of nft and 0.2 s of the agent, in which changes waited.
import { performance } from 'node:perf_hooks';
import { errorText, type Log } from '../../kit/log.ts';
import type { ProcessMark } from '../../kit/process-info.ts';
import { type Cidr, parseCidr } from '../bans/cidr.ts';
import { resolveOverlaps, type TimedCidr } from './overlaps.ts';
import { isSameOwner, mayLive, ownerComment, readTable } from './owner.ts';
import { runNft, runScript } from './run-nft.ts';
import {
  type HostChange,
  isHashSet,
  type PrefixSet,
  renderAllowed,
  renderDeleteTable,
  renderHostChanges,
  renderHosts,
  renderPrefixes,
  renderTable,
  setOf,
} from './script.ts';
import { compareTable, isSame, rangeKey, type TableDifference } from './table-check.ts';

const CHECK_MS = 5 * 60_000;
/** A comparison takes at most one part in so many of the time: 1 s for 100,000 bans, so one in 8 minutes. */
const CHECK_SHARE = 500;
/** Changes end a comparison. Without one for so long, the table is written anew. */
const UNCHECKED_MS = 60 * 60_000;
const RETRY_MS = 60_000;
/** Bans handled without a pause; also the size of a transaction once a kernel has refused everything in one (small socket
 * buffers in user namespaces). */
const SLICE_ELEMENTS = 2500;

/** Where wanted bans come from; the kernel table asks for the state when it writes, so it is never behind. */
export interface BanSource {
  /** Global bans in the order in which they deserve room. */
  orderedGlobalCidrs(): string[];
  /** Remaining ms of the global bans of a CIDR; undefined when there is none. */
  remainingMs(cidr: string): number | undefined;
}

export interface KernelBansOptions {
  nftBin: string;
  table: string;
  nodeId: string;
  /** Process whose life the table is bound to. */
  owner: ProcessMark;
  capacity: number;
  source: BanSource;
  allowed: () => Cidr[];
  log: Log;
}

export class KernelBans {
  private readonly options: KernelBansOptions;
  private readonly log: Log;
  private active = false;
  private closing = false;
  private fullWanted = false;
  private chunked = false;
  private allowTouched = false;
  private touched = new Set<string>();
  private touchedSets = new Set<PrefixSet>();
  private running: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private comparing: AbortController | undefined;
  /** When the table was last written as a whole, or last compared. */
  private lastKnown = 0;
  private checkEvery = CHECK_MS;
  /** Elements of hash sets by CIDR with the time at which they end, monotonic ms. */
  private readonly hosts = new Map<string, number>();
  private readonly prefixes: Record<PrefixSet, Map<string, Cidr>> = { ban4n: new Map(), ban6n: new Map() };
  /** Ranges of prefix sets with the time at which they end, monotonic ms. */
  private readonly ranges: Record<PrefixSet, Map<string, number>> = { ban4n: new Map(), ban6n: new Map() };
  private allowed: readonly Cidr[] = [];
  private problem = '';

  private constructor(options: KernelBansOptions) {
    this.options = options;
    this.log = options.log;
  }

  /** Creates the table with everything in it. Throws when it does not work on this machine or another agent owns it. */
  static async start(options: KernelBansOptions): Promise<KernelBans> {
    const bans = new KernelBans(options);
    await removeLeftovers(options);
    bans.active = true;
    try {
      await bans.takeTable();
    } catch (error) {
      bans.active = false;
      throw error;
    }
    bans.timer = setInterval(() => bans.tick(), 10_000).unref();
    return bans;
  }

  /** Elements in the ban sets. */
  get entries(): number {
    const now = performance.now();
    let count = this.ranges.ban4n.size + this.ranges.ban6n.size;
    for (const end of this.hosts.values()) if (end > now) count++;
    return count;
  }

  /** Why the table is not up to date; "" when it is. */
  get message(): string {
    return this.problem;
  }

  /** These global CIDRs may have changed. */
  update(cidrs: Iterable<string>): void {
    for (const cidr of cidrs) this.touched.add(cidr);
    this.wake();
  }

  allowedChanged(): void {
    this.allowTouched = true;
    this.wake();
  }

  /** Everything may have changed. */
  resync(): void {
    this.fullWanted = true;
    this.wake();
  }

  /** Resolves when nothing waits to be written. */
  async settled(): Promise<void> {
    while (this.running) await this.running;
  }

  /** Stops writing; with `keepTable` false the table goes, too. */
  async close(keepTable: boolean): Promise<void> {
    this.closing = true;
    clearInterval(this.timer);
    this.comparing?.abort();
    await this.settled();
    this.active = false;
    if (!keepTable) await deleteTable(this.options.nftBin, this.options.table);
  }

  /** Compares the kernel with what was written, and writes differences. A change of bans ends it without a result. */
  async check(): Promise<void> {
    if (this.running || this.comparing || !this.active || this.closing) return;
    const began = performance.now();
    const { nftBin, table } = this.options;
    const comparing = new AbortController();
    this.comparing = comparing;
    const written = { hosts: this.hosts, ranges: this.ranges, allowed: this.allowed };
    const found = await compareTable(nftBin, table, written, comparing.signal).catch(errorText);
    this.comparing = undefined;
    if (comparing.signal.aborted) return;
    this.lastKnown = performance.now();
    this.checkEvery = Math.max(CHECK_MS, CHECK_SHARE * (this.lastKnown - began));
    this.repair(found);
  }

  /** A text says why the table cannot be compared. */
  private repair(found: TableDifference | string): void {
    if (typeof found === 'string') {
      this.log.warn('kernel ban table cannot be compared, agent rewrites it', { error: found });
      this.resync();
      return;
    }
    if (found.rules) {
      this.log.warn('rules of the kernel ban table were changed by another program, agent rewrites the table');
      this.resync();
      return;
    }
    if (isSame(found)) return;
    this.log.warn('kernel bans were changed by another program, agent repairs them', {
      missing: found.hosts.length,
      foreign: found.foreign.length,
      sets: found.prefixSets.join(),
      allowed: found.allowed,
    });
    for (const cidr of found.foreign) this.hosts.set(cidr, 0);
    for (const set of found.prefixSets) this.touchedSets.add(set);
    if (found.allowed) this.allowTouched = true;
    this.update([...found.hosts, ...found.foreign]);
  }

  private tick(): void {
    const now = performance.now();
    for (const [cidr, end] of this.hosts) if (end <= now) this.hosts.delete(cidr);
    const age = now - this.lastKnown;
    if (age >= (this.problem === '' ? UNCHECKED_MS : RETRY_MS)) this.resync();
    else if (age >= this.checkEvery) void this.check();
  }

  private wake(): void {
    if (this.running || !this.active || this.closing) return;
    const { fullWanted, allowTouched, touched, touchedSets } = this;
    if (!fullWanted && !allowTouched && touched.size + touchedSets.size === 0) return;
    this.comparing?.abort();
    this.running = this.work().finally(() => {
      this.running = undefined;
      this.wake();
    });
  }

  private async work(): Promise<void> {
    try {
      if (!this.fullWanted) {
        await this.writeChanges();
        return;
      }
    } catch (error) {
      this.log.warn('kernel ban update failed, agent rewrites the whole table', { error: errorText(error) });
    }
    try {
      await this.writeAll();
      if (this.problem !== '') this.log.info('kernel bans work again');
      this.problem = '';
    } catch (error) {
      this.lastKnown = performance.now();
      if (this.problem === '')
        this.log.error('kernel bans not writable, agent retries every minute', { error: errorText(error) });
      this.problem = `kernel bans: ${errorText(error)}`;
    }
  }

  private async writeChanges(): Promise<void> {
    const { table, nftBin, source } = this.options;
    const touched = this.touched;
    this.touched = new Set();
    const allow = this.allowTouched;
    this.allowTouched = false;
    const hosts: HostChange[] = [];
    const prefixSets = this.touchedSets;
    this.touchedSets = new Set();
    const now = performance.now();
    const added: { text: string; change: HostChange }[] = [];
    for (const text of touched) {
      const cidr = parseCidr(text);
      if (!cidr) continue;
      const set = setOf(cidr);
      if (!isHashSet(set)) {
        if (this.prefixes[set].size < this.options.capacity) this.prefixes[set].set(text, cidr);
        prefixSets.add(set);
        continue;
      }
      const change = { set, address: cidr.start, remainingMs: source.remainingMs(text) };
      if (change.remainingMs !== undefined) added.push({ text, change });
      else if (this.hosts.delete(text)) hosts.push(change);
    }
    // After the removals, which make room.
    for (const { text, change } of added) {
      if (!this.hosts.has(text) && this.hosts.size >= this.options.capacity) continue;
      this.hosts.set(text, now + change.remainingMs!);
      hosts.push(change);
    }
    const lines = renderHostChanges(table, hosts);
    for (const set of prefixSets) lines.push(...this.renderPrefixSet(set));
    if (allow) lines.push(...this.renderAllowSets());
    await runScript(nftBin, lines);
  }

  private renderAllowSets(): string[] {
    this.allowed = this.options.allowed();
    return renderAllowed(this.options.table, this.allowed);
  }

  private renderPrefixSet(set: PrefixSet): string[] {
    const timed: TimedCidr[] = [];
    for (const [text, cidr] of this.prefixes[set]) {
      const remainingMs = this.options.source.remainingMs(text);
      if (remainingMs === undefined) this.prefixes[set].delete(text);
      else timed.push({ cidr, remainingMs });
    }
    const ranges = resolveOverlaps(timed);
    const now = performance.now();
    this.ranges[set] = new Map(ranges.map((range) => [rangeKey(range), now + range.remainingMs]));
    return renderPrefixes(this.options.table, set, ranges);
  }

  /** Writes the table for the first time: where there is none, or one of ours or of the dead, and not of two at a time. */
  private async takeTable(): Promise<void> {
    const { nftBin, table, nodeId, owner } = this.options;
    for (let seen = await readTable(nftBin, table); ; ) {
      if (seen?.owner && !isSameOwner(seen.owner, owner) && mayLive(seen.owner, nodeId))
        throw new Error(`another agent owns the nftables table ${table} (node ${seen.owner.nodeId})`);
      try {
        return await this.writeAll({ handle: seen?.handle });
      } catch (error) {
        // Another agent was faster, or it is an error that coming again does not mend: also one behind a table that is
        // ours by now, which a part was written of.
        const now = await readTable(nftBin, table);
        if (now?.handle === seen?.handle || (now?.owner && isSameOwner(now.owner, owner))) throw error;
        seen = now;
      }
    }
  }

  /** The table anew with everything, in one transaction where the kernel takes it; `seen` as renderTable has it. */
  private async writeAll(seen?: { handle: number | undefined }): Promise<void> {
    const { table, nftBin, source, owner, nodeId } = this.options;
    this.fullWanted = false;
    this.allowTouched = false;
    this.touched = new Set();
    this.touchedSets = new Set();
    this.hosts.clear();
    this.prefixes.ban4n.clear();
    this.prefixes.ban6n.clear();
    const cidrs = source.orderedGlobalCidrs().slice(0, this.options.capacity);
    /** Statements for a slice of the bans each; what changes while they are made is in `touched` and comes after them. */
    const slices: string[][] = [];
    for (let from = 0; from < cidrs.length; from += SLICE_ELEMENTS) {
      slices.push(renderHosts(table, this.takeHosts(cidrs.slice(from, from + SLICE_ELEMENTS))));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const frame = [
      ...renderTable(table, ownerComment(nodeId, owner), seen),
      ...this.renderAllowSets(),
      ...this.renderPrefixSet('ban4n'),
      ...this.renderPrefixSet('ban6n'),
    ];
    try {
      if (!this.chunked) await runScript(nftBin, [...frame, ...slices.flat()]);
    } catch (error) {
      if (slices.length < 2 || !/too long|buffer/i.test(errorText(error))) throw error;
      this.log.warn('kernel rejects all bans in one transaction, agent writes them in parts', {
        elements: this.hosts.size,
      });
      this.chunked = true;
    }
    if (this.chunked) {
      await runScript(nftBin, frame);
      for (const slice of slices) await runScript(nftBin, slice);
    }
    this.lastKnown = performance.now();
  }

  /** Elements of hash sets among these bans; prefixes are noted for their sets. */
  private takeHosts(cidrs: readonly string[]): HostChange[] {
    const now = performance.now();
    return cidrs.flatMap((text): HostChange[] => {
      const cidr = parseCidr(text);
      const remainingMs = this.options.source.remainingMs(text);
      if (!cidr || remainingMs === undefined) return [];
      const set = setOf(cidr);
      if (!isHashSet(set)) {
        this.prefixes[set].set(text, cidr);
        return [];
      }
      this.hosts.set(text, now + remainingMs);
      return [{ set, address: cidr.start, remainingMs }];
    });
  }
}

/** Deletes the table; one that is not there is fine. */
export async function deleteTable(nftBin: string, table: string): Promise<void> {
  await runScript(nftBin, renderDeleteTable(table));
}

/** Deletes the table if it is bound to this process; throws when nft does not work. */
export async function deleteOwnTable(nftBin: string, table: string, owner: ProcessMark): Promise<void> {
  const found = await readTable(nftBin, table);
  if (found?.owner && isSameOwner(found.owner, owner)) await deleteTable(nftBin, table);
}

/** Removes other tables of this node whose owner is dead, e.g. after --nft-table was changed. */
async function removeLeftovers({ nftBin, table, nodeId, log }: KernelBansOptions): Promise<void> {
  const listing = await runNft(nftBin, ['list', 'tables', 'inet']);
  for (const match of listing.matchAll(/^table inet (svc_[a-z0-9_]{1,28})$/gm)) {
    const name = match[1]!;
    if (name === table) continue;
    const found = await readTable(nftBin, name).catch(() => undefined);
    if (found?.owner?.nodeId !== nodeId || mayLive(found.owner, nodeId)) continue;
    await deleteTable(nftBin, name);
    log.info('leftover kernel ban table removed', { table: name });
  }
}
