// Sources of bulk redirects: a path, or a host with a path. They match the decoded path of a request, so that each
// spelling of a path is the same source; people read and write them percent-encoded where they must be.
import { fitsBytes } from '../expression/bytes.ts';
import { canonicalPath } from './canonical-path.ts';
import { normaliseHostName } from './host-name.ts';

export const MIN_SOURCE_BYTES = 2;
export const MAX_SOURCE_BYTES = 512;

/** How a source is written: nothing or a host, then a path. A host must also be in lower case ({@link upperCaseHost}). */
export const SOURCE_FORM = '^[^/?\\s\\u0000-\\u001f\\u007f]*/[^?\\s\\u0000-\\u001f\\u007f]*$';

const FORM = new RegExp(SOURCE_FORM);
const UPPER_CASE_HOST = /^[^/]*[A-Z][^/]*(?=\/)/;
const ESCAPES = /(?:%[0-9a-fA-F]{2})+/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;
/** What a path is not written with, although it may have it. */
const ENCODED = /[%?#\s]/g;

export interface RedirectSource {
  /** Canonical; empty for any host of the site. One that is no host name stands as it was given. */
  host: string;
  /** Decoded and canonical. */
  path: string;
}

/**
 * The source meant by a text; null when it is none, too long or too short, also in the form it is kept in. A percent sign
 * that begins no escape stands for itself.
 */
export function parseRedirectSource(text: string): RedirectSource | null {
  if (!fits(text) || !FORM.test(text) || upperCaseHost(text) !== null) return null;
  const slash = text.indexOf('/');
  const given = text.slice(0, slash);
  const decoded = decodeRedirectPath(text.slice(slash));
  if (decoded === null || CONTROL.test(decoded)) return null;
  const source = { host: given && (normaliseHostName(given) ?? given), path: canonicalPath(decoded) };
  return fits(formatRedirectSource(source)) ? source : null;
}

/** As people read it; parsed again it is the same source. `#` is escaped: written out, it begins a fragment of a URL. */
export function formatRedirectSource({ host, path }: RedirectSource): string {
  return host + path.replaceAll(ENCODED, encodeURIComponent);
}

/** What a node finds it by: the host and the decoded path. */
export function redirectKey({ host, path }: RedirectSource): string {
  return host + path;
}

/** The source of a {@link redirectKey}. */
export function sourceOfKey(key: string): RedirectSource {
  const slash = key.indexOf('/');
  return { host: key.slice(0, slash), path: key.slice(slash) };
}

function fits(text: string): boolean {
  return fitsBytes(text, MAX_SOURCE_BYTES) && !fitsBytes(text, MIN_SOURCE_BYTES - 1);
}

/** The host of a source if it has upper-case letters, else null. */
export function upperCaseHost(text: string): string | null {
  return UPPER_CASE_HOST.exec(text)?.[0] ?? null;
}

/** The path with its escapes decoded; null when it is not UTF-8. */
export function decodeRedirectPath(path: string): string | null {
  if (!path.includes('%')) return path;
  try {
    return path.replaceAll(ESCAPES, decodeURIComponent);
  } catch {
    return null;
  }
}
