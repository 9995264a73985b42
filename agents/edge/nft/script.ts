// Text of nft scripts, pure. Only numbers and addresses written anew by formatAddress get into it, never a text as received.
//
// Hash sets (one address or one /64 per element) take changes in constant time: `add X; delete X; add X timeout N` works
// for a missing and for an existing element on every nft; `delete` of a missing element would fail the whole batch.
// Interval sets hold prefixes; they are few and always written as a whole (adding one to 100,000 takes seconds).
import { type Cidr, formatAddress } from '../bans/cidr.ts';
import type { TimedRange } from './overlaps.ts';

export const ELEMENTS_PER_STATEMENT = 5000;
export type HashSet = 'ban4' | 'ban6' | 'ban6p';
export type PrefixSet = 'ban4n' | 'ban6n';
export type AllowSet = 'allow4' | 'allow6';

export interface HostChange {
  set: HashSet;
  address: bigint;
  /** Undefined: not banned any more. */
  remainingMs: number | undefined;
}

const NAME = /^[a-z][a-z0-9_]{0,30}$/;
const COMMENT = /^[A-Za-z0-9 =_.-]{0,120}$/;

/** The set an address or prefix belongs to, by its form. */
export function setOf(cidr: Cidr): HashSet | PrefixSet {
  if (cidr.family === 4) return cidr.bits === 32 ? 'ban4' : 'ban4n';
  if (cidr.bits === 128) return 'ban6';
  return cidr.bits === 64 ? 'ban6p' : 'ban6n';
}

export function isHashSet(set: HashSet | PrefixSet): set is HashSet {
  return set === 'ban4' || set === 'ban6' || set === 'ban6p';
}

/** `svc_` and the beginning of the node's id. */
export function defaultTableName(nodeId: string): string {
  const plain = nodeId.toLowerCase().replace(/[^a-z0-9]/g, '');
  return `svc_${plain.slice(0, 12) || 'node'}`;
}

export function isTableName(name: string): boolean {
  return NAME.test(name);
}

function assertNames(table: string, comment = ''): void {
  if (!isTableName(table) || !COMMENT.test(comment)) throw new TypeError('unsafe name for an nft script');
}

/** Whole seconds, rounded up, at least one. */
function timeout(remainingMs: number): string {
  return `timeout ${Math.max(1, Math.ceil(remainingMs / 1000))}s`;
}

function familyOf(set: string): 4 | 6 {
  return set.includes('6') ? 6 : 4;
}

function statements(verb: 'add' | 'delete', table: string, set: string, elements: readonly string[]): string[] {
  const lines: string[] = [];
  for (let from = 0; from < elements.length; from += ELEMENTS_PER_STATEMENT) {
    const part = elements.slice(from, from + ELEMENTS_PER_STATEMENT).join(', ');
    lines.push(`${verb} element inet ${table} ${set} { ${part} }`);
  }
  return lines;
}

function rangeText(family: 4 | 6, start: bigint, end: bigint): string {
  const first = formatAddress(family, start);
  return start === end ? first : `${first}-${formatAddress(family, end)}`;
}

/**
 * Creates the table anew, empty, in place of whatever is there. `comment` tells whose it is. With `seen` only in place of
 * the table that was seen, by its handle, or of none: the transaction fails when something else is there by now.
 */
export function renderTable(table: string, comment: string, seen?: { handle: number | undefined }): string[] {
  assertNames(table, comment);
  const before = [`add table inet ${table}`, `delete table inet ${table}`];
  return [
    ...(seen ? (seen.handle === undefined ? [] : [`delete table inet handle ${seen.handle}`]) : before),
    `create table inet ${table} { comment "${comment}"; }`,
    `table inet ${table} {`,
    '  set ban4 { type ipv4_addr; flags timeout; }',
    '  set ban6 { type ipv6_addr; flags timeout; }',
    '  set ban6p { type ipv6_addr; flags timeout; }',
    '  set ban4n { type ipv4_addr; flags interval, timeout; }',
    '  set ban6n { type ipv6_addr; flags interval, timeout; }',
    '  set allow4 { type ipv4_addr; flags interval; auto-merge; }',
    '  set allow6 { type ipv6_addr; flags interval; auto-merge; }',
    '  chain input {',
    '    type filter hook input priority -300; policy accept;',
    '    iif "lo" accept',
    '    fib saddr type local accept',
    '    ip saddr @allow4 accept',
    '    ip6 saddr @allow6 accept',
    '    ip saddr @ban4 counter drop',
    '    ip6 saddr @ban6 counter drop',
    '    ip6 saddr & ffff:ffff:ffff:ffff:: @ban6p counter drop',
    '    ip saddr @ban4n counter drop',
    '    ip6 saddr @ban6n counter drop',
    '  }',
    '}',
  ];
}

export function renderDeleteTable(table: string): string[] {
  assertNames(table);
  return [`add table inet ${table}`, `delete table inet ${table}`];
}

/** Brings elements of hash sets to what is wanted, whether they exist or not. */
export function renderHostChanges(table: string, changes: readonly HostChange[]): string[] {
  assertNames(table);
  const lines: string[] = [];
  for (const set of ['ban4', 'ban6', 'ban6p'] as const) {
    const touched = changes.filter((change) => change.set === set);
    const texts = touched.map((change) => formatAddress(familyOf(set), change.address));
    lines.push(...statements('add', table, set, texts), ...statements('delete', table, set, texts));
    lines.push(...renderHosts(table, touched));
  }
  return lines;
}

/** Adds elements of hash sets that are known to be missing. */
export function renderHosts(table: string, changes: readonly HostChange[]): string[] {
  assertNames(table);
  return (['ban4', 'ban6', 'ban6p'] as const).flatMap((set) => {
    const elements = changes
      .filter((change) => change.set === set && change.remainingMs !== undefined)
      .map((change) => `${formatAddress(familyOf(set), change.address)} ${timeout(change.remainingMs!)}`);
    return statements('add', table, set, elements);
  });
}

/** Writes a prefix set as a whole. */
export function renderPrefixes(table: string, set: PrefixSet, ranges: readonly TimedRange[]): string[] {
  assertNames(table);
  const family = familyOf(set);
  const elements = ranges.map((range) => `${rangeText(family, range.start, range.end)} ${timeout(range.remainingMs)}`);
  return [`flush set inet ${table} ${set}`, ...statements('add', table, set, elements)];
}

/** Writes both allow sets as a whole; prefixes may overlap. */
export function renderAllowed(table: string, allowed: readonly Cidr[]): string[] {
  assertNames(table);
  return ([4, 6] as const).flatMap((family) => {
    const set: AllowSet = family === 4 ? 'allow4' : 'allow6';
    const elements = allowed
      .filter((cidr) => cidr.family === family)
      .map((cidr) => `${formatAddress(family, cidr.start)}/${cidr.bits}`);
    return [`flush set inet ${table} ${set}`, ...statements('add', table, set, elements)];
  });
}
