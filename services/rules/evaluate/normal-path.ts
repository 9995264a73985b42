// Normal and plain spellings of a path, as the edge has them.
import type { Bytes } from './bytes.ts';
import { urlDecodePath } from './functions.ts';

const UNRESERVED = /^[A-Za-z0-9\-._~]$/;
const NEVER_LITERAL = '"#%<>?\\^`{|}';
/** A piece that is "." or "..", with parameters or without. */
const DOTS = /^\.{1,2}(?:$|;|%3b)/i;

/**
 * A target with the unreserved characters of its path decoded and its dot segments removed (RFC 3986, sections 6.2.2.2 and
 * 5.2.4); null where origins resolve the path in different ways. The query stays.
 */
export function normalTarget(uri: Bytes): Bytes | null {
  const mark = uri.indexOf('?');
  const [path, query] = mark < 0 ? [uri, ''] : [uri.slice(0, mark), uri.slice(mark)];
  if (/\\|%5c/i.test(path)) return null;
  const segments = decodeUnreserved(path).slice(1).split('/');
  const isAmbiguous = (segment: Bytes) =>
    segment !== '.' && segment !== '..' && segment.split(/%2f/i).some((piece) => DOTS.test(piece));
  if (segments.some(isAmbiguous)) return null;
  return withoutDots(segments) + query;
}

/** An encoded path with the bytes decoded that mean the same either way. */
export function decodeUnreserved(path: Bytes): Bytes {
  return path.replace(/%[0-9a-f]{2}/gi, (found) => {
    const byte = urlDecodePath(found);
    return UNRESERVED.test(byte) ? byte : found;
  });
}

function withoutDots(segments: readonly Bytes[]): Bytes {
  const kept: Bytes[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  if (/^\.{1,2}$/.test(segments.at(-1)!)) kept.push('');
  return `/${kept.join('/')}`;
}

/**
 * Whether the path of a target is its canonical path in the one spelling that every origin reads alike: percent-encoded is
 * only what has to be. Exemptions by path ask for it.
 */
export function isPlain(uri: Bytes, canonical: Bytes): boolean {
  const [raw = ''] = uri.split('?', 1);
  if (/\/\.{1,2};/.test(canonical) || urlDecodePath(raw) !== canonical) return false;
  // What is left after the encodings is literal, and no encoding is of a byte that could be.
  const literal = (byte: Bytes) => byte > ' ' && byte !== '\x7f' && !NEVER_LITERAL.includes(byte);
  const encodings = raw.match(/%[0-9a-f]{2}/gi) ?? [];
  const isNeeded = (found: Bytes) => {
    const byte = urlDecodePath(found);
    return byte !== '\\' && (byte >= '\u0080' || !literal(byte));
  };
  return encodings.every(isNeeded) && [...raw.replace(/%[0-9a-f]{2}/gi, '')].every(literal);
}
