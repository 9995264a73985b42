// The raw request target: paths are compared as they were sent, so that no second spelling of a path reaches anything.

export interface Target {
  path: string;
  /** Without the question mark; null when there was none. */
  query: string | null;
}

const LONGEST_TARGET = 8_192;

/** Splits an origin-form target; null for every other form and for what is too long. */
export function splitTarget(url: string): Target | null {
  if (url.charCodeAt(0) !== 0x2f || url.length > LONGEST_TARGET) return null;
  const mark = url.indexOf('?');
  return mark === -1 ? { path: url, query: null } : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/**
 * The value of a path segment that stands for an input; null when it is none. Encoding is accepted only as
 * encodeURIComponent writes it, and never for a slash, a dot segment or a control character.
 */
export function segmentValue(segment: string): string | null {
  if (segment === '' || segment === '.' || segment === '..') return null;
  if (!segment.includes('%')) return SEGMENT.test(segment) ? segment : null;
  let value: string;
  try {
    value = decodeURIComponent(segment);
  } catch {
    return null;
  }
  if (encodeURIComponent(value) !== segment || UNSAFE_VALUE.test(value)) return null;
  return value;
}

const SEGMENT = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const UNSAFE_VALUE = /[/\\\u0000-\u001f\u007f]|^\.{1,2}$/;

/** Whether a path, after all decoding, dots and doubled slashes, would lie below one of the prefixes. */
export function aliasesPrefix(path: string, prefixes: readonly string[]): boolean {
  let decoded = path;
  // Twice: a proxy in front may have decoded once already.
  for (let round = 0; round < 2 && decoded.includes('%'); round++) {
    try {
      decoded = decodeURIComponent(decoded);
    } catch {
      return true;
    }
  }
  const parts: string[] = [];
  for (const part of decoded.replaceAll('\\', '/').split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  const plain = `/${parts.join('/')}`.toLowerCase();
  return prefixes.some((prefix) => plain === prefix || plain.startsWith(`${prefix}/`));
}
