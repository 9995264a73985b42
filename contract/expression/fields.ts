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
  'http.host': field('string', [], 'Host of the request, lower case, without port.', 'http.host eq "www.example.com"'),
  'http.request.method': field('string', [], 'Method of the request.', 'http.request.method in {"GET" "HEAD"}'),
  'http.request.uri.path': field(
    'string',
    [],
    'Path, decoded, dot segments and double slashes resolved; after a rewrite the rewritten one.',
    'starts_with(http.request.uri.path, "/admin/")',
  ),
  'http.request.uri.path.extension': field(
    'string',
    ['rules-v2'],
    'What follows the last dot of the last segment of the path, lower case; "" without one.',
    'http.request.uri.path.extension in {"css" "js"}',
  ),
  'http.request.uri.query': field(
    'string',
    [],
    'Query without the question mark; after a rewrite the rewritten one.',
    'http.request.uri.query contains "debug=1"',
  ),
  'http.request.uri': field('string', [], 'Path and query as they were received.', 'http.request.uri contains "%00"'),
  'http.request.full_uri': field(
    'string',
    ['rules-v2'],
    'Scheme, host without port, and path and query as they were received; a rewrite does not change it.',
    'http.request.full_uri wildcard "https://*.example.com/old/*"',
  ),
  'http.request.headers': field(
    'string',
    [],
    'Header of the request, whatever the case of its name; several lines are joined by a comma and a space; "" without.',
    'http.request.headers["x-api-version"] eq "2"',
    { name: 'header' },
  ),
  'http.request.cookies': field(
    'string',
    ['rules-v3'],
    'First cookie of that name as it was sent, neither decoded nor unquoted; case counts in the name; "" without.',
    'http.request.cookies["beta"] eq "1"',
    { name: 'cookie' },
  ),
  'http.request.uri.args': field(
    'string',
    ['rules-v3'],
    'First parameter of that name in the query, not decoded; case counts in the name; follows rewrites; "" without.',
    'http.request.uri.args["page"] eq "2"',
    { name: 'argument' },
  ),
  'http.referer': field(
    'string',
    ['rules-v3'],
    'The header Referer, also after header rules; "" without.',
    'not http.referer contains "example.com"',
  ),
  'http.user_agent': field(
    'string',
    ['rules-v3'],
    'The header User-Agent, also after header rules; "" without.',
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
    'Id of the request, as X-Request-Id has it.',
    'ends_with(http.request.id, "00")',
  ),
  'http.request.timestamp.sec': field(
    'number',
    ['rules-v3'],
    'When the request arrived, in seconds since 1970 UTC.',
    'http.request.timestamp.sec ge 1798761600',
  ),
  'edge.server_port': field('number', ['rules-v3'], 'Port of the listener.', 'edge.server_port eq 8443'),
  'ip.src': field(
    'ip',
    [],
    "Address of the visitor, as the cluster's client IP mode finds it.",
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
    'ISO code of the country of the visitor; "" when it is not known.',
    'ip.geoip.country in {"DE" "FR"}',
  ),
  'ip.geoip.subdivision': field(
    'string',
    ['geoip-subdivision-v1'],
    'Code of the first level subdivision, or its English name where it has no code; "" when it is not known.',
    'ip.geoip.subdivision eq "CA"',
  ),
  'ip.geoip.asnum': field(
    'number',
    ['geoip-asn-v1'],
    'Number of the autonomous system of the visitor; 0 when it is not known.',
    'ip.geoip.asnum in {64496 64511}',
  ),
  'ip.geoip.as_name': field(
    'string',
    ['rules-v3', 'geoip-asn-v1'],
    'Name of the autonomous system of the visitor; "" when it is not known.',
    'lower(ip.geoip.as_name) contains "hosting"',
  ),
  'http.response.code': field('number', [], 'Status of the response.', 'http.response.code ge 500', RESPONSE),
  'http.response.headers': field(
    'string',
    [],
    'Header of the response; all its lines are joined by a comma and a space; "" without.',
    'http.response.headers["x-powered-by"] ne ""',
    { ...RESPONSE, name: 'header' },
  ),
  'http.response.content_type.media_type': field(
    'string',
    ['rules-v2'],
    'Media type of the response, lower case, without parameters; "" without.',
    'http.response.content_type.media_type eq "text/html"',
    RESPONSE,
  ),
  'http.response.cache_status': field(
    'string',
    ['rules-v3'],
    'HIT, MISS, BYPASS, EXPIRED, STALE, UPDATING or REVALIDATED; "" for what the node made, WebSocket and gRPC.',
    'http.response.cache_status eq "HIT"',
    RESPONSE,
  ),
} as const satisfies Record<string, FieldSpec>;

export type FieldName = keyof typeof TABLE;

export const FIELDS: ReadonlyMap<string, FieldSpec & { readonly field: FieldName }> = new Map(
  Object.entries<FieldSpec>(TABLE).map(([name, spec]) => [name, { ...spec, field: name as FieldName }]),
);
