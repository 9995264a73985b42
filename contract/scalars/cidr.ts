// IP addresses and CIDRs, strictly: no leading zeros in IPv4 octets or prefix lengths, no zone ids, no white space, no
// short IPv4 forms. Host bits are cleared, IPv6 is lower-cased and compressed, and an IPv4-mapped IPv6 address (or
// range of them) is the IPv4 one; a mapped one with a prefix shorter than /96 is refused, because it would match no IPv4
// client. Two texts mean the same addresses iff their canonical texts are equal.

export interface Cidr {
  readonly family: 4 | 6;
  /** First address, host bits clear. */
  readonly value: bigint;
  /** 0 to 32, or 0 to 128. */
  readonly prefix: number;
}

const WIDTH = { 4: 32, 6: 128 } as const;
/** Longest text that can be one; longer ones are refused before they are looked at. */
export const MAX_CIDR_LENGTH = 64;

const OCTETS = /^(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})$/;
const GROUP = /^[0-9a-fA-F]{1,4}$/;
const PREFIX = /^(0|[1-9][0-9]{0,2})$/;
/** Of the IPv4-mapped addresses, ::ffff:0:0/96. */
const MAPPED = 0xffffn;
const MAPPED_PREFIX = 96;

/** The range named by an address or CIDR; a single address is a /32 or /128. Null for anything else. */
export function parseCidr(text: string): Cidr | null {
  if (text.length > MAX_CIDR_LENGTH) return null;
  const slash = text.indexOf('/');
  const address = parse(slash < 0 ? text : text.slice(0, slash));
  if (!address) return null;
  const width = WIDTH[address.family];
  let prefix: number = width;
  if (slash >= 0) {
    const length = text.slice(slash + 1);
    if (!PREFIX.test(length)) return null;
    prefix = Number(length);
    if (prefix > width) return null;
  }
  return toCanonical(address.family, address.value, prefix);
}

/** The address as a /32 or /128; null for a CIDR and anything else. */
export function parseAddress(text: string): Cidr | null {
  return text.includes('/') ? null : parseCidr(text);
}

/** Canonical text, always with its prefix length: `192.0.2.1/32`. */
export function formatCidr(cidr: Cidr): string {
  return `${formatAddress(cidr)}/${cidr.prefix}`;
}

/** Canonical text of the first address: `192.0.2.1`. */
export function formatAddress({ family, value }: Cidr): string {
  return family === 4 ? formatV4(value) : formatV6(value);
}

export function isSingleAddress({ family, prefix }: Cidr): boolean {
  return prefix === WIDTH[family];
}

/** Whose a client's address is: whoever has an IPv6 address usually has its whole /64. */
export function countedAddress(ip: string | null): string {
  if (ip === null) return 'unknown';
  const network = ip.includes(':') ? parseCidr(`${ip}/64`) : null;
  return network ? formatCidr(network) : ip;
}

/** Whether every address of `inner` is in `outer`. */
export function contains(outer: Cidr, inner: Cidr): boolean {
  if (outer.family !== inner.family || outer.prefix > inner.prefix) return false;
  const shift = BigInt(WIDTH[outer.family] - outer.prefix);
  return outer.value >> shift === inner.value >> shift;
}

/** Whether the two have an address in common: two CIDRs overlap only when one contains the other. */
export function overlaps(a: Cidr, b: Cidr): boolean {
  return contains(a, b) || contains(b, a);
}

/** IPv4 first, then by address, then the larger range first: the order PostgreSQL's cidr type has. */
export function compareCidr(a: Cidr, b: Cidr): number {
  if (a.family !== b.family) return a.family - b.family;
  const shift = BigInt(WIDTH[a.family] - Math.min(a.prefix, b.prefix));
  const [left, right] = [a.value >> shift, b.value >> shift];
  if (left !== right) return left < right ? -1 : 1;
  if (a.prefix !== b.prefix) return a.prefix - b.prefix;
  return 0;
}

/** Canonical, without duplicates, sorted. `invalid` is the index of the first text that is no CIDR, else null. */
export function normaliseCidrs(texts: readonly string[]): { cidrs: string[]; invalid: number | null } {
  const byText = new Map<string, Cidr>();
  for (const [index, text] of texts.entries()) {
    const cidr = parseCidr(text);
    if (!cidr) return { cidrs: [], invalid: index };
    byText.set(formatCidr(cidr), cidr);
  }
  const cidrs = [...byText].sort(([, a], [, b]) => compareCidr(a, b)).map(([text]) => text);
  return { cidrs, invalid: null };
}

function toCanonical(family: 4 | 6, value: bigint, prefix: number): Cidr | null {
  if (family === 6 && value >> 32n === MAPPED) {
    return prefix < MAPPED_PREFIX ? null : toCanonical(4, value & 0xffffffffn, prefix - MAPPED_PREFIX);
  }
  const hostBits = BigInt(WIDTH[family] - prefix);
  return { family, value: (value >> hostBits) << hostBits, prefix };
}

function parse(text: string): { family: 4 | 6; value: bigint } | null {
  if (text.includes(':')) {
    const value = parseV6(text);
    return value === null ? null : { family: 6, value };
  }
  const value = parseV4(text);
  return value === null ? null : { family: 4, value };
}

function parseV4(text: string): bigint | null {
  const match = OCTETS.exec(text);
  if (!match) return null;
  let value = 0;
  for (const octet of match.slice(1)) {
    if (Number(octet) > 255) return null;
    value = value * 256 + Number(octet);
  }
  return BigInt(value);
}

function parseV6(text: string): bigint | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = parseGroups(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : [];
  if (!head || !tail) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** 16-bit groups of one side of `::`; a dotted IPv4 tail counts as two and is allowed only at the very end. */
function parseGroups(text: string, last: boolean): number[] | null {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (GROUP.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const tail = last && index === parts.length - 1 ? parseV4(part) : null;
    if (tail === null) return null;
    groups.push(Number(tail >> 16n), Number(tail & 0xffffn));
  }
  return groups;
}

function formatV4(value: bigint): string {
  const number = Number(value);
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
}

/** RFC 5952: the first of the longest runs of two or more zero groups becomes `::`. */
function formatV6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt(112 - 16 * index)) & 0xffffn));
  let start = 0;
  let length = 0;
  for (let from = 0; from < 8; from++) {
    let to = from;
    while (to < 8 && groups[to] === 0) to++;
    if (to - from > length) [start, length] = [from, to - from];
  }
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (length < 2) return text(groups);
  return `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`;
}
