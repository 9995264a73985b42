// The cache key of a request, part by part, as nodes make it.
import type { KEY_PARTS } from '../../../contract/resources/cache-explain.ts';
import type { CacheSettings } from '../../../contract/resources/site-cache.ts';
import { type Bytes, bytesOf, lowerAscii } from '../evaluate/bytes.ts';
import type { RunRequest } from '../run/request.ts';
import { linesOf, trimmed } from './header-lines.ts';

export type CacheKeySettings = CacheSettings['cacheKey'];

/** Name and value are bytes. */
export interface KeyPart {
  readonly part: (typeof KEY_PARTS)[number];
  readonly name: string | null;
  readonly value: Bytes | null;
}

const MOBILE_WORDS = /Mobi|Android|iPhone|iPad|iPod|Windows Phone|BlackBerry|Opera Mini|webOS/;
/** Fields in which programs behind origins believe what a proxy says of a request, beside X-Forwarded-*. */
const CLAIMS = new Set(
  (
    'base-url cf-connecting-ip client-ip cloudfront-forwarded-proto fastly-client-ip fastly-ssl front-end-https proxy-host ' +
    'proxy-url true-client-ip x-client-ip x-cluster-client-ip x-host x-http-host-override x-original-host x-original-uri ' +
    'x-originating-ip x-proxyuser-ip x-remote-addr x-remote-ip x-request-uri x-scheme x-url-scheme x-wap-profile'
  ).split(' '),
);
/** The edge itself sets them. */
const OF_EDGE: readonly string[] = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'];

/** The parts, or the cookie that is ambiguous. */
export function keyOf(request: RunRequest, key: CacheKeySettings): KeyPart[] | { ambiguousCookie: string } {
  const { scheme, host, uri, headers } = request;
  const [path = '', query = ''] = split(uri, '?');
  const parts: KeyPart[] = [
    { part: 'scheme', name: null, value: scheme },
    ...(key.includeHost ? [{ part: 'host', name: null, value: host } as const] : []),
    { part: 'path', name: null, value: path },
    { part: 'query', name: null, value: queryOf(query, key) },
  ];
  for (const name of key.headers) {
    parts.push({ part: 'header', name, value: linesOf(headers, name)?.join(',') ?? null });
  }
  for (const name of key.cookies) {
    const found = cookieOf(linesOf(headers, 'cookie') ?? [], name);
    if (found === 'ambiguous') return { ambiguousCookie: name };
    parts.push({ part: 'cookie', name, value: found });
  }
  if (key.deviceType) {
    const mobile = (linesOf(headers, 'user-agent') ?? []).some((agent) => MOBILE_WORDS.test(agent));
    parts.push({ part: 'device', name: null, value: mobile ? 'mobile' : 'desktop' });
  }
  const claimed = new Set(headers.map(([name]) => name.toLowerCase()).filter(isClaim));
  for (const name of [...claimed].map(canonical).sort()) {
    parts.push({ part: 'proxy_header', name, value: linesOf(headers, name.toLowerCase())!.join(',') });
  }
  return parts;
}

/** The text that nodes make of the parts; no part can imitate another. */
export function keyText(siteId: string, parts: readonly KeyPart[]): Bytes {
  const value = (of: KeyPart['part']) => parts.find(({ part }) => part === of)?.value ?? '';
  const url = `${siteId}|${value('scheme')}|${value('host')}|${sized('p', value('path'))}${sized('q', value('query'))}`;
  return `${url}\0${parts.map(textOf).join('')}`;
}

function textOf({ part, name, value }: KeyPart): Bytes {
  switch (part) {
    case 'header':
      return value === null ? 'n' : sized('h', value);
    case 'cookie':
      return value === null ? 'n' : sized('c', value);
    case 'device':
      return value === 'mobile' ? 'm' : '';
    case 'proxy_header':
      return sized('x', name!) + sized('v', value!);
    default:
      return '';
  }
}

const sized = (letter: string, text: Bytes) => `${letter}${text.length}:${text.replaceAll('\0', '\x01')}`;

function split(text: Bytes, at: string): [Bytes, Bytes | undefined] {
  const index = text.indexOf(at);
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)];
}

function isClaim(name: string): boolean {
  return CLAIMS.has(name) || (name.startsWith('x-forwarded-') && !OF_EDGE.includes(name));
}

/** As nodes write names of fields. */
function canonical(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

function queryOf(query: Bytes, { query: which, queryParams, sortQuery }: CacheKeySettings): Bytes {
  if (which === 'ignore' || query === '' || (which === 'all' && !sortQuery)) return which === 'ignore' ? '' : query;
  const listed = queryParams.map(bytesOf);
  const kept = query
    .split('&')
    .filter((pair) => which === 'all' || isListed(pair, listed, which === 'include') === (which === 'include'));
  if (sortQuery) kept.sort((a, b) => compare(split(a, '=')[0], split(b, '=')[0]));
  return kept.join('&');
}

const compare = (a: Bytes, b: Bytes) => (a < b ? -1 : a > b ? 1 : 0);

/** By its name as it stands or decoded. A parameter with a semicolon is kept, whatever is listed. */
function isListed(pair: Bytes, listed: readonly Bytes[], kept: boolean): boolean {
  if (pair.includes(';')) return kept;
  const [name] = split(pair, '=');
  const decoded = unescaped(name.replaceAll('+', ' '));
  const isOne = (text: Bytes) =>
    listed.some((each) => (each.endsWith('*') ? text.startsWith(each.slice(0, -1)) : each === text));
  return isOne(name) || (decoded !== null && isOne(decoded));
}

/** Null where it is not encoded as it should be. */
function unescaped(text: Bytes): Bytes | null {
  if (/%(?![0-9a-f]{2})/i.test(text)) return null;
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** The value, null for none; `ambiguous` where an origin could read another one. */
function cookieOf(lines: readonly Bytes[], name: string): Bytes | null | 'ambiguous' {
  let value: Bytes | null = null;
  for (const pair of lines.flatMap((line) => line.split(';'))) {
    for (const [index, piece] of pair.split(',').entries()) {
      const [own, given] = split(trimmed(piece), '=');
      const its = trimmed(own);
      const isNamed = [its, unescaped(its)].some((one) => one !== null && lowerAscii(one) === lowerAscii(name));
      if (!isNamed) continue;
      if (its !== name || given === undefined || index > 0 || value !== null) return 'ambiguous';
      value = trimmed(split(pair, '=')[1] ?? '');
    }
  }
  return value;
}
