// Turns a made-up request into one that rules can be run over.
import { badField } from '../../contract/errors.ts';
import { formatAddress, parseAddress } from '../../contract/scalars/cidr.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import type { TriedRequest, TriedResponse } from '../../contract/scalars/tried-request.ts';
import { MAX_TRIED_HEADER_BYTES } from '../../contract/scalars/tried-request.ts';
import { bytesOf } from './evaluate/bytes.ts';
import { normalTarget } from './evaluate/normal-path.ts';
import { encodeLocation } from './evaluate/percent.ts';
import type { HeaderLine } from './evaluate/request-values.ts';
import type { RunRequest, RunResponse } from './run/request.ts';

const URL_PARTS = /^(https?):\/\/([^/?#]+)([^#]*)/i;
const AUTHORITY = /^(?:\[([0-9a-fA-F:.]+)\]|([^@:[\]]+))(?::([0-9]{1,5}))?$/;
/** What a client can choose as the id of its request. */
const REQUEST_ID = /^[A-Za-z0-9._:-]{8,128}$/;

type HeaderInput = NonNullable<TriedRequest['headers']>;

/** Throws BAD_REQUEST; `now` is when it arrives if it does not say so. */
export function runRequest(tried: TriedRequest, response: TriedResponse | undefined, now: Date): RunRequest {
  const { scheme, host, authority, port, uri } = urlParts(tried.url);
  const given = headerLines(tried.headers ?? [], '/request/headers');
  const headers = given.filter(([name]) => !/^(host$|x-svc-)/i.test(name));
  const [, id = null] = headers.find(([name, value]) => /^x-request-id$/i.test(name) && REQUEST_ID.test(value)) ?? [];
  return {
    method: tried.method ?? 'GET',
    scheme,
    host,
    port,
    uri,
    version: tried.version ?? 'HTTP/1.1',
    headers: [['host', authority], ...headers],
    address: address(tried.address, '/request/address'),
    peer: address(tried.peer ?? tried.address, '/request/peer'),
    id,
    arrivedSeconds: arrival(tried.at, now),
    ja4: tried.ja4 ?? null,
    country: tried.country ?? null,
    subdivision: tried.subdivision ?? null,
    asNumber: tried.asnum ?? null,
    asName: tried.asName === undefined ? null : bytesOf(tried.asName),
    passLevel: tried.passLevel ?? 'normal',
    bodySize: tried.bodySize ?? null,
    response: response ? runResponse(response) : null,
  };
}

/** What rules of a site that normalizes paths get of a request. */
export function withNormalPath(request: RunRequest): RunRequest {
  const uri = normalTarget(request.uri);
  return uri === null ? { ...request, ambiguousPath: true } : { ...request, uri };
}

export function runResponse({ status, headers = [], cacheStatus }: TriedResponse): RunResponse {
  return { status, headers: headerLines(headers, '/response/headers'), cacheStatus: cacheStatus ?? null };
}

function urlParts(url: string): Pick<RunRequest, 'scheme' | 'host' | 'port' | 'uri'> & { authority: string } {
  const [, scheme = '', authority = '', rest = ''] = URL_PARTS.exec(url) ?? badField('/request/url', 'url');
  const secure = scheme.toLowerCase() === 'https';
  const [, literal, name = '', port] = AUTHORITY.exec(authority) ?? badField('/request/url', 'url');
  const host = literal ?? parsedHost(name) ?? badField('/request/url', 'hostName');
  const number = port === undefined ? (secure ? 443 : 80) : Number(port);
  if (number < 1 || number > 65_535) badField('/request/url', 'url');
  const uri = encodeLocation(bytesOf(rest.startsWith('/') ? rest : `/${rest}`));
  if (/%(?![0-9a-fA-F]{2})/.test(uri.split('?', 1)[0]!)) badField('/request/url', 'percentEncoding');
  return { scheme: secure ? 'https' : 'http', host: host.toLowerCase(), port: number, uri, authority };
}

/** An address is a host as well, on sites that answer for it. */
function parsedHost(name: string): string | null {
  return normaliseHostName(name) ?? (parseAddress(name) ? name : null);
}

function headerLines(headers: HeaderInput, path: string): HeaderLine[] {
  const lines = headers.map(({ name, value }): HeaderLine => [name, bytesOf(value).replace(/^[ \t]+|[ \t]+$/g, '')]);
  const bytes = lines.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes > MAX_TRIED_HEADER_BYTES) badField(path, 'maxBytes', { limit: MAX_TRIED_HEADER_BYTES });
  return lines;
}

/** In seconds since 1970. */
function arrival(at: string | undefined, now: Date): number {
  const milliseconds = at === undefined ? now.getTime() : Date.parse(at);
  // The schema takes leap seconds.
  if (Number.isNaN(milliseconds)) badField('/request/at', 'format', { format: 'date-time' });
  return Math.floor(milliseconds / 1000);
}

/** In canonical form. */
function address(text: string, path: string): string {
  const parsed = parseAddress(text) ?? badField(path, 'cidr', { accepted: 'an IPv4 or IPv6 address' });
  return formatAddress(parsed);
}
