// Addresses and prefixes as numbers. Everything that reaches nft or a table went through here: parsed, masked, re-written.
import { isIPv4, isIPv6 } from 'node:net';

export interface Cidr {
  family: 4 | 6;
  /** First address of the prefix. */
  start: bigint;
  bits: number;
}

export function widthOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128;
}

/** Last address of a prefix. */
export function endOf(cidr: Cidr): bigint {
  return cidr.start + (1n << BigInt(widthOf(cidr.family) - cidr.bits)) - 1n;
}

/**
 * Parses "address" or "address/bits"; host bits are cleared, IPv4-mapped IPv6 becomes IPv4. Undefined when malformed, and
 * for mapped ones wider than the mapped range, which would match no IPv4 client.
 */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^([0-9A-Fa-f:.]{2,45})(?:\/(\d{1,3}))?$/.exec(text);
  if (!match) return undefined;
  const address = match[1]!;
  const bitsText = match[2];
  if (bitsText !== undefined && bitsText.length > 1 && bitsText.startsWith('0')) return undefined;
  if (isIPv4(address)) return masked(4, parseV4(address), bitsText === undefined ? 32 : Number(bitsText));
  if (!isIPv6(address)) return undefined;
  const value = parseV6(address);
  const bits = bitsText === undefined ? 128 : Number(bitsText);
  if (value >> 32n === 0xffffn) return bits < 96 ? undefined : masked(4, value & 0xffffffffn, bits - 96);
  return masked(6, value, bits);
}

function masked(family: 4 | 6, value: bigint, bits: number): Cidr | undefined {
  const width = widthOf(family);
  if (bits > width) return undefined;
  const host = BigInt(width - bits);
  return { family, start: (value >> host) << host, bits };
}

function parseV4(text: string): bigint {
  return BigInt(text.split('.').reduce((value, part) => value * 256 + Number(part), 0));
}

function parseV6(text: string): bigint {
  let source = text;
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (dotted) {
    const low = parseV4(dotted[2]!);
    source = `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  }
  const [head = '', tail] = source.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill('0'), ...right];
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

export function formatAddress(family: 4 | 6, value: bigint): string {
  if (family === 4) {
    const number = Number(value);
    return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
  }
  const groups: number[] = [];
  for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number((value >> shift) & 0xffffn));
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
    if (length > 0) at += length - 1;
  }
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(':');
  return best.at < 0 ? hex(groups) : `${hex(groups.slice(0, best.at))}::${hex(groups.slice(best.at + best.length))}`;
}

/** Canonical text, always with the prefix length. */
export function formatCidr(cidr: Cidr): string {
  return `${formatAddress(cidr.family, cidr.start)}/${cidr.bits}`;
}

/** The canonical text of what may be written otherwise; what is no CIDR stays. */
export function canonicalCidr(text: string): string {
  const cidr = parseCidr(text);
  return cidr ? formatCidr(cidr) : text;
}

/** Shortest prefix a ban may have. */
export function isBannable(cidr: Cidr): boolean {
  return cidr.bits >= (cidr.family === 4 ? 16 : 48);
}
