// Literals: what may stand to the right of an operator, for each type.
import { compareCidr, formatAddress, formatCidr, isSingleAddress, parseCidr } from '../scalars/cidr.ts';
import { indexBeyondBytes, utf8 } from './bytes.ts';
import { type ExpressionErrorCode, refuse } from './errors.ts';
import type { Token } from './lexer.ts';
import { positionInString } from './lexer.ts';
import { MAX_STRING_BYTES } from './limits.ts';
import type { Literal, ValueType } from './tree.ts';

const EXPECTED: Readonly<Record<ValueType, ExpressionErrorCode>> = {
  string: 'expected_string',
  number: 'expected_integer',
  boolean: 'expected_boolean',
  ip: 'expected_ip',
};

/**
 * The value of a literal of a type; an address or CIDR in canonical form. Throws ExpressionFault: expected_…,
 * list_reference, value_too_long.
 */
export function literalOf(source: string, token: Token, type: ValueType): Literal {
  if (token.kind === 'word' && token.text.startsWith('$')) refuse('list_reference', token.at);
  const value = read(source, token, type);
  return value === null ? refuse(EXPECTED[type], token.at) : value;
}

/** The value of a string literal. Throws ExpressionFault value_too_long. */
export function stringOf(source: string, token: Token & { kind: 'string' }): string {
  const beyond = indexBeyondBytes(token.value, MAX_STRING_BYTES);
  if (beyond >= 0) refuse('value_too_long', positionInString(source, token, beyond), { max: MAX_STRING_BYTES });
  return token.value;
}

/** The safe integer that a word is, or null. */
export function integerOf(word: string): number | null {
  if (!/^-?[0-9]+$/.test(word)) return null;
  const number = Number(word);
  // Without the sign of a zero, which no text can tell.
  return Number.isSafeInteger(number) ? number + 0 : null;
}

function read(source: string, token: Token, type: ValueType): Literal | null {
  if (type === 'string') return token.kind === 'string' ? stringOf(source, token) : null;
  if (token.kind !== 'word') return null;
  if (type === 'number') return integerOf(token.text);
  if (type === 'ip') return canonicalCidr(token.text);
  return token.text === 'true' || token.text === 'false' ? token.text === 'true' : null;
}

function canonicalCidr(text: string): string | null {
  const cidr = parseCidr(text);
  if (!cidr) return null;
  return isSingleAddress(cidr) ? formatAddress(cidr) : formatCidr(cidr);
}

/** Each value once: numbers and addresses ascending, strings by their bytes, false before true. */
export function sortedSet(values: readonly Literal[], type: ValueType): Literal[] {
  return [...new Set(values)].sort((a, b) => compare(a, b, type));
}

function compare(a: Literal, b: Literal, type: ValueType): number {
  if (type === 'ip') return compareCidr(parseCidr(a as string)!, parseCidr(b as string)!);
  if (type === 'string') return compareBytes(utf8(a as string), utf8(b as string));
  return Number(a) - Number(b);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    if (a[index] !== b[index]) return a[index]! - b[index]!;
  }
  return a.length - b.length;
}
