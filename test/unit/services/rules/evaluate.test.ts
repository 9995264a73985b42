// What the fields of a request are, and how far an evaluation goes.
import test, { type ExecutionContext } from 'ava';
import { checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { contains, parseCidr } from '../../../../contract/scalars/cidr.ts';
import {
  evaluateCondition,
  evaluateFor,
  evaluateValue,
  type Surroundings,
} from '../../../../services/rules/evaluate/evaluate.ts';
import { fieldOf, type TriedRequest } from '../../../../services/rules/evaluate/request-values.ts';

const REQUEST: TriedRequest = {
  method: 'GET',
  scheme: 'https',
  host: 'www.example.com',
  uri: '/Shop/a%20b.PHP?page=2&q=x%20y&flag&page=3',
  version: 'HTTP/2.0',
  headers: [
    ['User-Agent', 'curl/8.0'],
    ['Accept', 'text/html'],
    ['accept', '*/*'],
    ['Cookie', 'a=1; b="2"; lone; a=3'],
    ['Cookie', 'c=x=y'],
    ['X-Bytes', '\xff\xfe'],
  ],
  address: '192.0.2.7',
  peer: '::ffff:10.0.0.1',
  port: 443,
  id: 'abc',
  arrivedSeconds: 1_800_000_000,
  ja4: 't13d1516h2_8daaf6152771_02713d6af862',
  country: 'DE',
  subdivision: '',
  asNumber: 64_496,
  asName: 'Hosting Ltd',
  rewritten: null,
  response: {
    status: 404,
    headers: [['Content-Type', 'Text/HTML; charset=utf-8']],
    cacheStatus: 'MISS',
  },
};

const around = (request: Partial<TriedRequest> = {}): Surroundings => ({
  field: (field, name) => fieldOf({ ...REQUEST, ...request }, field, name),
  inList: (list, address) => list === 'office' && contains(parseCidr('192.0.2.0/24')!, address),
});

const PHASE = { phase: 'response-transform' } as const;

function holds(t: ExecutionContext, source: string, expected: boolean, request?: Partial<TriedRequest>): void {
  const checked = checkCondition(source, PHASE);
  const got = checked.valid ? evaluateCondition(checked.tree, around(request)) : checked.error;
  t.deepEqual<unknown, unknown>(got, { ok: true, value: expected }, source);
}

/** The bytes of a value expression. */
function gives(t: ExecutionContext, source: string, expected: string, request?: Partial<TriedRequest>): void {
  const checked = checkValue(source, PHASE);
  const got = checked.valid ? evaluateValue(checked.tree, around(request)) : checked.error;
  t.deepEqual<unknown, unknown>(got, { ok: true, value: expected }, source);
}

test('every field has the value of the request', (t) => {
  for (const condition of [
    'http.host eq "www.example.com"',
    'http.request.method eq "GET"',
    'http.request.uri.path eq "/Shop/a b.PHP"',
    'http.request.uri.path.extension eq "php"',
    'http.request.uri.query eq "page=2&q=x%20y&flag&page=3"',
    'http.request.uri eq "/Shop/a%20b.PHP?page=2&q=x%20y&flag&page=3"',
    'http.request.full_uri eq "https://www.example.com/Shop/a%20b.PHP?page=2&q=x%20y&flag&page=3"',
    'http.request.headers["ACCEPT"] eq "text/html, */*"',
    'http.request.headers["nope"] eq ""',
    'http.request.cookies["a"] eq "1"',
    'http.request.cookies["b"] eq "\\"2\\""',
    'http.request.cookies["c"] eq "x=y"',
    'http.request.cookies["lone"] eq "" and http.request.cookies["A"] eq ""',
    'http.request.uri.args["page"] eq "2" and http.request.uri.args["q"] eq "x%20y"',
    'http.request.uri.args["flag"] eq "" and http.request.uri.args["Page"] eq ""',
    'http.user_agent eq "curl/8.0" and http.referer eq ""',
    'http.request.version eq "HTTP/2.0" and http.request.scheme eq "https" and http.request.id eq "abc"',
    'http.request.timestamp.sec eq 1800000000 and edge.server_port eq 443 and ssl eq true',
    'ip.src eq 192.0.2.7 and ip.peer eq 10.0.0.0/8',
    'starts_with(tls.ja4, "t13d")',
    'ip.geoip.country eq "DE" and ip.geoip.subdivision eq "" and ip.geoip.asnum eq 64496',
    'ip.geoip.as_name eq "Hosting Ltd"',
    'http.response.code eq 404 and http.response.headers["content-type"] contains "charset"',
    'http.response.content_type.media_type eq "text/html" and http.response.cache_status eq "MISS"',
  ]) {
    holds(t, condition, true);
  }
});

test('a rewrite changes path, extension, query and arguments, and neither the raw nor the full one', (t) => {
  const rewritten = { rewritten: { path: '/new//x.css', query: 'page=9' } };
  holds(t, 'http.request.uri.path eq "/new/x.css" and http.request.uri.path.extension eq "css"', true, rewritten);
  holds(t, 'http.request.uri.query eq "page=9" and http.request.uri.args["page"] eq "9"', true, rewritten);
  holds(t, 'http.request.uri contains "Shop" and http.request.full_uri contains "Shop"', true, rewritten);
});

test('the path is decoded once, dots and double slashes resolved', (t) => {
  for (const [uri, path] of [
    ['/a/%2e%2e/b', '/b'],
    ['//a///b/', '/a/b/'],
    ['/a/./b/.', '/a/b/'],
    ['/a/b/..', '/a/'],
    ['/../../a', '/a'],
    ['/%252F', '/%2F'],
    ['/a+b', '/a+b'],
    ['/', '/'],
    ['/..', '/'],
    ['/%zz', '/%zz'],
  ]) {
    gives(t, 'http.request.uri.path', path!, { uri: uri! });
  }
});

test('what is missing is "", 0, false or no address, and ne on it matches', (t) => {
  const bare = { address: '', asNumber: 0, country: '', headers: [], scheme: 'http', response: null } as const;
  holds(t, 'http.user_agent ne "curl"', true, bare);
  holds(t, 'http.user_agent eq "" and ip.geoip.asnum eq 0 and ssl eq false and tls.ja4 eq ""', true, bare);
  holds(t, 'http.response.code eq 0 and http.response.headers["a"] eq ""', true, bare);
  holds(t, 'ip.src eq 0.0.0.0/0 or ip.src eq ::/0 or ip.src in {0.0.0.0/0} or ip.src in $office', false, bare);
  holds(t, 'ip.src ne 0.0.0.0/0', true, bare);
  gives(t, 'to_string(ip.src)', '', bare);
});

test('and, or and not are evaluated from left to right, as far as needed', (t) => {
  const told: string[] = [];
  const checked = checkCondition('ssl eq true or http.host eq "a" and true', PHASE);
  if (!checked.valid) return t.fail();
  const trace = ({ op, at }: { op: string; at: number }) => void told.push(`${op}@${at}`);
  t.deepEqual(evaluateCondition(checked.tree, { ...around(), trace }), { ok: true, value: true });
  t.deepEqual(told, ['field@0', 'eq@0', 'or@0']);
});

test('a result of more than 8192 bytes fails the evaluation, as a pattern does that costs too much', (t) => {
  const long = { headers: [['x', 'a'.repeat(8192)]] as const };
  const run = (source: string, request: Partial<TriedRequest> = long) => {
    const checked = checkCondition(source, PHASE);
    return checked.valid ? evaluateCondition(checked.tree, around(request)) : t.fail(checked.error.code);
  };
  t.like(run('lower(http.request.headers["x"]) eq ""'), { ok: true });
  t.like(run('concat(http.request.headers["x"], "a") eq ""'), { ok: false, failure: 'result_too_long' });
  t.like(run('base64_encode(http.request.headers["x"]) eq ""'), { ok: false, failure: 'result_too_long' });
  t.like(run('true or concat(http.request.headers["x"], "a") eq ""'), { ok: true, value: true });
  t.like(run('not concat(http.request.headers["x"], "a") eq ""'), { ok: false });
  const costly = `${'.{0,1000}'.repeat(20)}x`;
  const most = { headers: [['x', 'a'.repeat(32_768)]] as const };
  t.like(run(`http.request.headers["x"] matches "${costly}"`, most), { ok: false, failure: 'pattern_budget' });
  t.like(run('http.request.headers["x"] matches ".*.*.*x"', long), { ok: true, value: false });
});

test('a target that leads nowhere fails, as what it is computed from may', (t) => {
  const run = (source: string, request: Partial<TriedRequest> = {}) => {
    const checked = checkValue(source, PHASE);
    return checked.valid ? evaluateFor('redirect', checked.tree, around(request)) : checked.error;
  };
  t.deepEqual(run('concat("https://", http.host, "/new")'), { ok: true, value: 'https://www.example.com/new' });
  t.like(run('http.host'), { ok: false, failure: 'unusable_result' });
  t.like(run('concat("/", http.request.uri.path)'), { ok: false, failure: 'unusable_result' });
  t.like(run('concat("/", http.referer, http.referer)', { headers: [['referer', 'a'.repeat(5000)]] }), {
    failure: 'result_too_long',
  });
});
