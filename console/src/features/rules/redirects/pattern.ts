// Redirects from a pattern to a pattern, as the rule that does it. Pure.
import { parseReplacement, parseWildcard, type Wildcard } from '../../../../../contract/expression/wildcard.ts';
import { literalText } from '../expression/builder.ts';

export interface PatternRedirect {
  /** A path, or a URL with its scheme and host; a star stands for any text. */
  from: string;
  /** A path or a URL; `${1}` to `${8}` stand for the stars of `from`. */
  to: string;
}
export type PatternFault = keyof PatternRedirect;

const PLACE = /^(\/(?!\/)|https?:\/\/[^/])/i;
/** Of a pattern with a scheme: the whole URL is compared, with its query. */
export const isUrl = (from: string): boolean => /^https?:/i.test(from);

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
const readFrom = (from: string): Wildcard | null => (PLACE.test(from) ? attempt(() => parseWildcard(from)) : null);

/** How many stars a pattern has; null: it cannot be read. */
export function starsOf(from: string): number | null {
  const parts = readFrom(from);
  return parts && parts.length - 1;
}

export function patternFaults({ from, to }: PatternRedirect): PatternFault[] {
  const stars = starsOf(from);
  const reads = PLACE.test(to) && attempt(() => parseReplacement(to, stars ?? 8)) !== null;
  return [...(stars === null ? (['from'] as const) : []), ...(reads ? [] : (['to'] as const))];
}

/** Expression and target of the rule. */
export function compilePattern({ from, to }: PatternRedirect): { expression: string; target: string } {
  const field = isUrl(from) ? 'http.request.full_uri' : 'http.request.uri.path';
  const [pattern, replacement] = [literalText(from, 'string'), literalText(to, 'string')];
  return {
    expression: `${field} wildcard ${pattern}`,
    target: `wildcard_replace(${field}, ${pattern}, ${replacement})`,
  };
}

const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** What the stars stand for: earlier ones take as little as they can, the last one takes the rest. Null: no match. */
function starTexts(parts: Wildcard, subject: string): string[] | null {
  const text = folded(subject);
  const [first = '', ...rest] = parts.map(folded);
  const last = rest.pop();
  if (last === undefined) return text === first ? [] : null;
  if (!text.startsWith(first)) return null;
  const found: string[] = [];
  let at = first.length;
  for (const part of rest) {
    const next = text.indexOf(part, at);
    if (next < 0) return null;
    found.push(subject.slice(at, next));
    at = next + part.length;
  }
  const end = text.length - last.length;
  return end >= at && text.endsWith(last) ? [...found, subject.slice(at, end)] : null;
}

export type Preview = { kind: 'to'; location: string } | { kind: 'other' | 'unreadable' };

/** Where a request for this URL goes. Its query is added to the target if `keepsQuery` says so. */
export function previewPattern({ from, to }: PatternRedirect, url: string, keepsQuery: boolean): Preview {
  const parts = readFrom(from);
  const asked = attempt(() => new URL(url));
  const replacement = parts && attempt(() => parseReplacement(to, parts.length - 1));
  if (!parts || !replacement || !asked) return { kind: 'unreadable' };
  const { protocol, hostname, pathname, search } = asked;
  const stars = starTexts(parts, isUrl(from) ? `${protocol}//${hostname}${pathname}${search}` : pathname);
  if (!stars) return { kind: 'other' };
  const location = replacement.map((part) => (typeof part === 'string' ? part : stars[part - 1]!)).join('');
  const query = keepsQuery && search.length > 1 ? `${location.includes('?') ? '&' : '?'}${search.slice(1)}` : '';
  return { kind: 'to', location: location + query };
}
