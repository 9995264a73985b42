// What becomes of responses in the cache, and what decides.
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import {
  type DecisionCase,
  decisionOf,
  decisionVectors,
  entryOfCase,
  summaryOfDecision,
} from '../../../helpers/cache-decisions.ts';

const vectors = decisionVectors();

test('every vector is decided as nodes decide it', (t) => {
  t.true(vectors.cases.length > 100);
  const got = vectors.cases.map((each) => {
    const { name, expect } = each;
    return { name, expect, got: summaryOfDecision(decisionOf(each, vectors), vectors.site) };
  });
  t.deepEqual(
    got.filter(({ expect, got }) => !isDeepStrictEqual(expect, got)),
    [],
  );
  t.is(new Set(vectors.cases.map(({ name }) => name)).size, vectors.cases.length);
});

test('every vector has the entry that nodes are tested with', (t) => {
  for (const each of vectors.cases) t.is(each.entry, entryOfCase(each), each.name);
});

const decided = (each: Partial<DecisionCase>) =>
  decisionOf(
    { name: '', rules: [{ expression: 'true' }], expect: {}, response: { status: 200, headers: [] }, ...each },
    vectors,
  );
const responding = (...headers: [string, string][]): Partial<DecisionCase> => ({ response: { status: 200, headers } });

test('what decided is named, with the value that it had', (t) => {
  const by = (each: Partial<DecisionCase>) => {
    const { decidedBy } = decided(each);
    return decidedBy && [decidedBy.part, decidedBy.name, decidedBy.value];
  };
  t.deepEqual(by({}), ['cache_rule', 'edgeTtlSeconds', '3600']);
  t.deepEqual(by(responding(['cache-control', 'public, S-MaxAge=5'])), ['response', 'Cache-Control', 'S-MaxAge=5']);
  t.deepEqual(by(responding(['cdn-cache-control', 'max-age=9;a'])), ['response', 'CDN-Cache-Control', 'max-age=9;a']);
  t.deepEqual(by(responding(['Cache-Control', 'public'])), ['response', 'Cache-Control', 'public']);
  t.deepEqual(by(responding(['Set-Cookie', 'a=b'])), ['cache_rule', 'cacheSetCookie', 'false']);
  t.deepEqual(by({ bypass: true }), ['site_rule', 'a rule', null]);
  t.deepEqual(by({ request: { headers: [['connection', 'x-key']] } }), ['request', 'Connection', 'x-key']);
  t.deepEqual(by({ response: { status: 404, headers: [] } }), ['response', 'status', '404']);
});

test('each rule is told, up to the one that decides', (t) => {
  const rules = [
    { priority: 1, pathPrefixes: ['/api/'] },
    { priority: 2, statusCodes: [404], expression: 'true' },
    { priority: 3, minSizeBytes: 10, expression: 'true' },
    { priority: 4, expression: 'true' },
    { priority: 5, expression: 'true' },
  ];
  t.deepEqual(
    decided({ rules, ...responding(['Content-Length', '9']) }).rules.map(({ result, response }) => [result, response]),
    [
      ['not_matched', null],
      ['matched', 'status_differs'],
      ['matched', 'size_differs'],
      ['matched', 'fits'],
      ['not_tried', null],
    ],
  );
});

test('a rule that reads what nobody said decides nothing', (t) => {
  const rules = [{ expression: 'ip.geoip.country eq "DE"' }, { priority: 20, expression: 'true' }];
  const unknown = decided({ rules, request: { country: null } });
  t.like(unknown, { decision: 'undecided', why: 'unknown_field', xCache: null, unknown: ['ip.geoip.country'] });
  t.like(decided({ rules, request: { country: 'DE' } }), { decision: 'stored', rule: 10 });
});

test('conditions that cost too much end the explanation', (t) => {
  const rules = Array.from({ length: 60 }, (_, index) => ({
    priority: index,
    expression: 'http.referer matches ".*.*.*.*x"',
  }));
  const headers: [string, string][] = [['referer', 'y'.repeat(30_000)]];
  t.like(decided({ rules, request: { headers } }), { decision: 'undecided', why: 'too_costly' });
});

test('the values that a response varies by are those that origins get', (t) => {
  const { key } = decided({
    ...responding(['Vary', 'Accept-Language, X-Forwarded-For, X-Real-IP, Cookie, X-Forwarded-Proto']),
    request: { headers: [['accept-language', 'de']] },
  });
  t.deepEqual(
    key!.filter(({ part }) => part === 'vary').map(({ name, value }) => [name, value]),
    [
      ['accept-language', 'de'],
      ['cookie', null],
      ['x-forwarded-for', '192.0.2.1'],
      ['x-forwarded-proto', 'https'],
      ['x-real-ip', '192.0.2.1'],
    ],
  );
});
