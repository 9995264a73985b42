// Every property of a request or response that an expression can read. The checker, completion, the reference of the
// language and the evaluation derive from this table.
import type { ExpressionCapability } from './capabilities.ts';
import type { NameKind } from './names.ts';
import type { ValueType } from './tree.ts';

export interface FieldSpec {
  readonly type: ValueType;
  /** `response`: only the phases that look at a response know it. */
  readonly phases: 'all' | 'response';
  /** What stands in the brackets after it, if any do. */
  readonly name?: NameKind;
  readonly needs: readonly ExpressionCapability[];
  /** What it holds, and what it holds when there is none: absent strings are "", numbers 0. */
  readonly summary: string;
  readonly example: string;
}

const field = (
  type: ValueType,
  needs: readonly ExpressionCapability[],
  summary: string,
  example: string,
  rest: Partial<Pick<FieldSpec, 'phases' | 'name'>> = {},
): FieldSpec => ({ type, needs, summary, example, phases: 'all', ...rest });

const RESPONSE = { phases: 'response' } as const;

const TABLE = {
  'http.host': field(
    'string',
    [],
    'Host of the request in lower case, without port.',
    'http.host eq "www.example.com"',
  ),
  'http.request.method': field('string', [], 'Method of the request.', 'http.request.method in {"GET" "HEAD"}'),
  'http.request.uri.path': field(
    'string',
    [],
    'Decoded path, with dot segments and double slashes resolved; after a rewrite, the rewritten path.',
    'starts_with(http.request.uri.path, "/admin/")',
  ),
  'http.request.uri.path.extension': field(
    'string',
    ['rules-v2'],
    'Lower-case text after the last dot of the last path segment; "" without a dot.',
    'http.request.uri.path.extension in {"css" "js"}',
  ),
  'raw.http.request.uri.path': field(
    'string',
    ['raw-path-v1'],
    'Path as the origin gets it, not decoded, so that %2F differs from a slash; after a rewrite, the rewritten path.',
    'starts_with(raw.http.request.uri.path, "/files/")',
  ),
  'http.request.uri.query': field(
    'string',
    [],
    'Query without the question mark; after a rewrite, the rewritten query.',
    'http.request.uri.query contains "debug=1"',
  ),
  'http.request.uri': field('string', [], 'Path and query as received.', 'http.request.uri contains "%00"'),
  'http.request.full_uri': field(
    'string',
    ['rules-v2'],
    'Scheme, host without port, path and query as received; rewrites do not change it.',
    'http.request.full_uri wildcard "https://*.example.com/old/*"',
  ),
  'http.request.headers': field(
    'string',
    [],
    'Request header; the name is case-insensitive, lines are joined by a comma and a space; "" if absent.',
    'http.request.headers["x-api-version"] eq "2"',
    { name: 'header' },
  ),
  'http.request.cookies': field(
    'string',
    ['rules-v3'],
    'First cookie with the name, neither decoded nor unquoted; the name is case-sensitive; "" if absent.',
    'http.request.cookies["beta"] eq "1"',
    { name: 'cookie' },
  ),
  'http.request.uri.args': field(
    'string',
    ['rules-v3'],
    'First query parameter with the name, not decoded; the name is case-sensitive; follows rewrites; "" ' +
      'if absent.',
    'http.request.uri.args["page"] eq "2"',
    { name: 'argument' },
  ),
  'http.referer': field(
    'string',
    ['rules-v3'],
    'The Referer header, also after header rules; "" if absent.',
    'not http.referer contains "example.com"',
  ),
  'http.user_agent': field(
    'string',
    ['rules-v3'],
    'The User-Agent header, also after header rules; "" if absent.',
    'http.user_agent matches "(curl|wget)/"',
  ),
  'http.request.version': field(
    'string',
    ['rules-v3'],
    'HTTP/1.0, HTTP/1.1, HTTP/2.0 or HTTP/3.0.',
    'http.request.version eq "HTTP/1.0"',
  ),
  'http.request.scheme': field('string', ['rules-v3'], 'http or https.', 'http.request.scheme eq "http"'),
  'http.request.id': field(
    'string',
    ['rules-v3'],
    'Request ID, as in X-Request-Id.',
    'ends_with(http.request.id, "00")',
  ),
  'http.request.timestamp.sec': field(
    'number',
    ['rules-v3'],
    'Arrival time of the request in seconds since 1970 UTC.',
    'http.request.timestamp.sec ge 1798761600',
  ),
  'edge.server_port': field('number', ['rules-v3'], 'Port of the listener.', 'edge.server_port eq 8443'),
  'ip.src': field(
    'ip',
    [],
    'Client address, found as the client IP mode of the cluster says.',
    'ip.src in {192.0.2.0/24 2001:db8::/32}',
  ),
  'ip.peer': field('ip', ['client-ip-v1'], 'Address of the direct TCP or UDP peer.', 'ip.peer eq 10.0.0.0/8'),
  ssl: field('boolean', [], 'Whether the request came over HTTPS.', 'ssl eq false'),
  'tls.ja4': field(
    'string',
    ['ja4-v1'],
    'JA4 fingerprint of the TLS client; "" over plain HTTP.',
    'starts_with(tls.ja4, "t13d")',
  ),
  'ip.geoip.country': field(
    'string',
    ['geoip-country-v1'],
    'ISO code of the client\'s country; "" if unknown.',
    'ip.geoip.country in {"DE" "FR"}',
  ),
  'ip.geoip.subdivision': field(
    'string',
    ['geoip-subdivision-v1'],
    'Code of the client\'s first-level subdivision, or its English name if it has no code; "" if unknown.',
    'ip.geoip.subdivision eq "CA"',
  ),
  'ip.geoip.asnum': field(
    'number',
    ['geoip-asn-v1'],
    "Number of the client's autonomous system; 0 if unknown.",
    'ip.geoip.asnum in {64496 64511}',
  ),
  'ip.geoip.as_name': field(
    'string',
    ['rules-v3', 'geoip-asn-v1'],
    'Name of the client\'s autonomous system; "" if unknown.',
    'lower(ip.geoip.as_name) contains "hosting"',
  ),
  'http.response.code': field('number', [], 'Status code of the response.', 'http.response.code ge 500', RESPONSE),
  'http.response.headers': field(
    'string',
    [],
    'Response header; lines are joined by a comma and a space; "" if absent.',
    'http.response.headers["x-powered-by"] ne ""',
    { ...RESPONSE, name: 'header' },
  ),
  'http.response.content_type.media_type': field(
    'string',
    ['rules-v2'],
    'Media type of the response in lower case, without parameters; "" if absent.',
    'http.response.content_type.media_type eq "text/html"',
    RESPONSE,
  ),
  'http.response.cache_status': field(
    'string',
    ['rules-v3'],
    'HIT, MISS, BYPASS, EXPIRED, STALE, UPDATING or REVALIDATED; "" for responses of the node, WebSocket ' +
      'and gRPC.',
    'http.response.cache_status eq "HIT"',
    RESPONSE,
  ),
} as const satisfies Record<string, FieldSpec>;

export type FieldName = keyof typeof TABLE;

export const FIELDS: ReadonlyMap<string, FieldSpec & { readonly field: FieldName }> = new Map(
  Object.entries<FieldSpec>(TABLE).map(([name, spec]) => [name, { ...spec, field: name as FieldName }]),
);
