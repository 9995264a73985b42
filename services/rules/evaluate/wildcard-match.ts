import type { Wildcard } from '../../../contract/expression/wildcard.ts';
import { type Bytes, bytesOf, lowerAscii } from './bytes.ts';

type Span = readonly [start: number, end: number];

/**
 * Where each star starts and ends when all of the subject matches, else null. Earlier stars take as little as they can; the
 * last one takes the rest.
 */
export function wildcardFind(pattern: Wildcard, subject: Bytes, caseSensitive: boolean): Span[] | null {
  const fold = (value: Bytes) => (caseSensitive ? value : lowerAscii(value));
  const folded = fold(subject);
  const [first = '', ...rest] = pattern.map((part) => fold(bytesOf(part)));
  const last = rest.pop();
  if (last === undefined) return folded === first ? [] : null;
  if (!folded.startsWith(first)) return null;
  const stars: Span[] = [];
  let at = first.length;
  for (const part of rest) {
    const found = folded.indexOf(part, at);
    if (found < 0) return null;
    stars.push([at, found]);
    at = found + part.length;
  }
  const end = folded.length - last.length;
  if (end < at || !folded.endsWith(last)) return null;
  return [...stars, [at, end]];
}
