// What each field of the language is for one request: a made-up one, as somebody wants to try a rule with.
import type { FieldName } from '../../../contract/expression/fields.ts';
import { type Cidr, parseAddress } from '../../../contract/scalars/cidr.ts';
import { type Bytes, lowerAscii } from './bytes.ts';
import type { FieldValue } from './evaluate.ts';
import { urlDecodePath } from './functions.ts';

/** One line of a header; the case of its name counts for nothing. */
export type HeaderLine = readonly [name: string, value: Bytes];

export interface TriedRequest {
  readonly method: Bytes;
  readonly scheme: 'http' | 'https';
  /** Of the request, as it is matched with domains: lower case, without port. */
  readonly host: Bytes;
  /** Path and query as they are sent, starting with a slash. */
  readonly uri: Bytes;
  /** HTTP/1.0, HTTP/1.1, HTTP/2.0 or HTTP/3.0. */
  readonly version: Bytes;
  readonly headers: readonly HeaderLine[];
  /** Of the visitor, and of who is connected; texts that are no address are none. */
  readonly address: string;
  readonly peer: string;
  readonly port: number;
  readonly id: Bytes;
  readonly arrivedSeconds: number;
  readonly ja4: Bytes;
  readonly country: Bytes;
  readonly subdivision: Bytes;
  readonly asNumber: number;
  readonly asName: Bytes;
  /** What rules made of the target, with an encoded path; null while it is as it was sent. */
  readonly rewritten: { readonly path: Bytes; readonly query: Bytes } | null;
  readonly response: TriedResponse | null;
}

export interface TriedResponse {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly cacheStatus: Bytes;
}

/** The value of a field; "", 0, false or null when the request has none. */
export function fieldOf(request: TriedRequest, field: FieldName, name: string | null): FieldValue {
  const { response } = request;
  switch (field) {
    case 'http.host':
      return request.host;
    case 'http.request.method':
      return request.method;
    case 'http.request.uri.path':
      return pathOf(request);
    case 'http.request.uri.path.extension':
      return extensionOf(pathOf(request));
    case 'raw.http.request.uri.path':
      return rawPathOf(request);
    case 'http.request.uri.query':
      return queryOf(request);
    case 'http.request.uri':
      return request.uri;
    case 'http.request.full_uri':
      return `${request.scheme}://${request.host}${request.uri}`;
    case 'http.request.headers':
      return headerOf(request.headers, name ?? '');
    case 'http.request.cookies':
      return cookieOf(request.headers, name ?? '');
    case 'http.request.uri.args':
      return argumentOf(queryOf(request), name ?? '');
    case 'http.referer':
      return headerOf(request.headers, 'referer');
    case 'http.user_agent':
      return headerOf(request.headers, 'user-agent');
    case 'http.request.version':
      return request.version;
    case 'http.request.scheme':
      return request.scheme;
    case 'http.request.id':
      return request.id;
    case 'http.request.timestamp.sec':
      return request.arrivedSeconds;
    case 'edge.server_port':
      return request.port;
    case 'ip.src':
      return addressOf(request.address);
    case 'ip.peer':
      return addressOf(request.peer);
    case 'ssl':
      return request.scheme === 'https';
    case 'tls.ja4':
      return request.scheme === 'https' ? request.ja4 : '';
    case 'ip.geoip.country':
      return request.country;
    case 'ip.geoip.subdivision':
      return request.subdivision;
    case 'ip.geoip.asnum':
      return request.asNumber;
    case 'ip.geoip.as_name':
      return request.asName;
    case 'http.response.code':
      return response?.status ?? 0;
    case 'http.response.headers':
      return headerOf(response?.headers ?? [], name ?? '');
    case 'http.response.content_type.media_type':
      return mediaTypeOf(headerOf(response?.headers ?? [], 'content-type'));
    case 'http.response.cache_status':
      return response?.cacheStatus ?? '';
  }
}

/**
 * The one form in which paths meet rules: dot segments resolved, repeated slashes made one, a slash in front. A slash at
 * the end stays, and a dot segment at the end leaves one. The edge has the same.
 */
export function canonicalPath(decoded: Bytes): Bytes {
  const kept: Bytes[] = [];
  for (const segment of decoded.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  const clean = `/${kept.join('/')}`;
  return kept.length > 0 && /\/\.{0,2}$/.test(decoded) ? `${clean}/` : clean;
}

function rawPathOf({ uri, rewritten }: Pick<TriedRequest, 'uri' | 'rewritten'>): Bytes {
  return rewritten ? rewritten.path : uri.split('?', 1)[0]!;
}

function pathOf({ uri, rewritten }: TriedRequest): Bytes {
  return canonicalPath(urlDecodePath(rawPathOf({ uri, rewritten })));
}

function queryOf({ uri, rewritten }: TriedRequest): Bytes {
  if (rewritten) return rewritten.query;
  const mark = uri.indexOf('?');
  return mark < 0 ? '' : uri.slice(mark + 1);
}

function extensionOf(path: Bytes): Bytes {
  const segment = path.slice(path.lastIndexOf('/') + 1);
  const dot = segment.lastIndexOf('.');
  return dot < 0 ? '' : lowerAscii(segment.slice(dot + 1));
}

function headerOf(headers: readonly HeaderLine[], name: string, separator = ', '): Bytes {
  const lines = headers.filter(([each]) => each.toLowerCase() === name.toLowerCase());
  return lines.map(([, value]) => value).join(separator);
}

/** The first cookie of a name, as it was sent. */
function cookieOf(headers: readonly HeaderLine[], name: string): Bytes {
  for (const part of headerOf(headers, 'cookie', '; ').split(';')) {
    const pair = part.replace(/^[ \t]+|[ \t]+$/g, '');
    const equals = pair.indexOf('=');
    if (equals >= 0 && pair.slice(0, equals) === name) return pair.slice(equals + 1);
  }
  return '';
}

/** The first parameter of a name, as it was sent. */
function argumentOf(query: Bytes, name: string): Bytes {
  for (const part of query.split('&')) {
    const equals = part.indexOf('=');
    const named = equals < 0 ? part : part.slice(0, equals);
    if (named === name) return equals < 0 ? '' : part.slice(equals + 1);
  }
  return '';
}

function mediaTypeOf(contentType: Bytes): Bytes {
  return lowerAscii(contentType.split(';', 1)[0]!.replace(/^[ \t]+|[ \t]+$/g, ''));
}

function addressOf(text: string): Cidr | null {
  return parseAddress(text);
}
