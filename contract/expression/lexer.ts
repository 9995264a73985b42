// Cuts a source into words, strings and signs. Outside strings there is printable ASCII only. What is wrong becomes a
// token too, so that an earlier mistake of another kind is told first.
import { type ExpressionErrorCode, refuse } from './errors.ts';
import { MAX_TOKENS } from './limits.ts';
import type { Span } from './tree.ts';

export type Token = Span &
  (
    | { readonly kind: 'word'; readonly text: string }
    | { readonly kind: 'string'; readonly value: string }
    | { readonly kind: 'sign'; readonly text: string }
    | { readonly kind: 'end' }
    | { readonly kind: 'wrong'; readonly code: ExpressionErrorCode; readonly params: Record<string, number> }
  );

const BLANKS = ' \t\r\n';
const SIGNS = '(){}[],';
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** The tokens of a source, ended by `end` or by the first thing that is wrong. Throws nothing. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    while (at < source.length && BLANKS.includes(source[at]!)) at++;
    if (at === source.length) {
      tokens.push({ kind: 'end', at, end: at });
      return tokens;
    }
    const token =
      tokens.length === MAX_TOKENS ? wrong('too_many_tokens', at, { max: MAX_TOKENS }) : tokenAt(source, at);
    tokens.push(token);
    if (token.kind === 'wrong') return tokens;
    at = token.end;
  }
}

/** Where in the source the `index`-th code unit of a string literal's value is written. */
export function positionInString(source: string, token: Span, index: number): number {
  let at = token.at + 1;
  for (let passed = 0; passed < index; passed++) at += lengthOfUnit(source, at);
  return at;
}

function lengthOfUnit(source: string, at: number): number {
  if (source[at] !== '\\') return 1;
  return source[at + 1] === 'u' ? 6 : 2;
}

function wrong(code: ExpressionErrorCode, at: number, params: Record<string, number> = {}): Token {
  return { kind: 'wrong', at, end: at, code, params };
}

/** Refuses the source for a token that is wrong. */
export function refuseWrong(token: Token & { kind: 'wrong' }): never {
  return refuse(token.code, token.at, token.params);
}

function tokenAt(source: string, at: number): Token {
  const first = source[at]!;
  if (SIGNS.includes(first)) return { kind: 'sign', at, end: at + 1, text: first };
  if (first === '"') return stringAt(source, at);
  let end = at;
  while (
    end < source.length &&
    !BLANKS.includes(source[end]!) &&
    !SIGNS.includes(source[end]!) &&
    source[end] !== '"'
  ) {
    const unit = source.charCodeAt(end);
    if (unit < 0x21 || unit > 0x7e) return wrong('unexpected_character', end);
    end++;
  }
  return { kind: 'word', at, end, text: source.slice(at, end) };
}

function stringAt(source: string, at: number): Token {
  const units: string[] = [];
  let end = at + 1;
  while (source[end] !== '"') {
    const unit = unitAt(source, end);
    // Without its second quote the string has no end: the first one is what to look at.
    if (end >= source.length) return wrong('string_invalid', at);
    if (unit === null) return wrong('string_invalid', end);
    units.push(unit);
    end += lengthOfUnit(source, end);
  }
  const value = units.join('');
  const token = { kind: 'string', at, end: end + 1, value } as const;
  const lone = loneSurrogate(value);
  return lone < 0 ? token : wrong('string_invalid', positionInString(source, token, lone));
}

/** The code unit written at an offset, or null when that is no way to write one. */
function unitAt(source: string, at: number): string | null {
  const first = source[at];
  if (first === undefined || first < ' ') return null;
  if (first !== '\\') return first;
  const letter = source[at + 1] ?? '';
  if (letter !== 'u') return Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter]! : null;
  const hex = source.slice(at + 2, at + 6);
  return /^[0-9a-fA-F]{4}$/.test(hex) ? String.fromCharCode(Number.parseInt(hex, 16)) : null;
}

/** Index of the first half of a pair without the other, which has no bytes in UTF-8; -1 when there is none. */
function loneSurrogate(value: string): number {
  for (let index = 0; index < value.length; index++) {
    const unit = value.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const next = value.charCodeAt(index + 1);
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return index;
    index++;
  }
  return -1;
}
