import test from 'ava';
import { CACHE_PRESET_RULES, CACHE_PRESETS } from '../../../../contract/cache-presets.ts';
import type { CacheRuleInput } from '../../../../contract/resources/site-cache.ts';
import {
  DEFAULT_CACHE_KEY,
  DEFAULT_CACHE_RULE,
  DEFAULT_CACHE_SETTINGS,
} from '../../../../contract/resources/site-cache.ts';
import { givenCache } from '../../../../models/cache/given-cache.ts';
import { NEW_CACHE } from '../../../../services/sites/site-cache.ts';

/** A rule as it passes the schema, which fills in defaults. */
const rule = (more: Partial<CacheRuleInput> = {}): CacheRuleInput => ({ ...DEFAULT_CACHE_RULE, ...more });
const rulesOf = (...inputs: Partial<CacheRuleInput>[]) =>
  givenCache(NEW_CACHE, { cacheRules: inputs.map(rule) }).cacheRules;
const refusal = (work: () => unknown): { code: string; data: Record<string, unknown> } => {
  try {
    work();
  } catch (error) {
    const { type, data } = error as { type: string; data: Record<string, unknown> };
    return { code: type, data };
  }
  throw new Error('nothing was refused');
};

test('a rule without a field has the defaults of the specification', (t) => {
  t.deepEqual(rulesOf({}), [
    {
      priority: 10,
      expression: 'true',
      pathPrefixes: [],
      paths: [],
      extensions: [],
      statusCodes: [],
      minSizeBytes: 0,
      maxSizeBytes: 0,
      action: 'cache',
      edgeTtlSeconds: 3600,
      originCacheControl: 'respect',
      staleWhileRevalidateSeconds: 0,
      staleIfErrorSeconds: 0,
      cacheAuthorized: false,
      cacheSetCookie: false,
      browserTtlSeconds: 0,
    },
  ]);
});

test('rules stand by priority, which counts in tens where it is left out', (t) => {
  t.deepEqual(
    rulesOf({}, { priority: 5 }, {}).map(({ priority }) => priority),
    [5, 10, 30],
  );
  const { code, data } = refusal(() => rulesOf({ priority: 20 }, {}));
  t.deepEqual([code, data.priority], ['CACHE_RULE_PRIORITY_DUPLICATE', 20]);
});

const issue = (field: string, keyword: string) => ({ issues: [{ path: `/cacheRules/0${field}`, keyword }] });
const EXTENSION = 'http.request.uri.path.extension';
const PATH = 'http.request.uri.path';

for (const { given, expression, lists } of [
  {
    given: { pathPrefixes: ['/a/', '/b/'], extensions: ['.CSS', 'css', 'js'] },
    expression: `(starts_with(${PATH}, "/a/") or starts_with(${PATH}, "/b/")) and ${EXTENSION} in {"css" "js"}`,
    lists: { pathPrefixes: ['/a/', '/b/'], paths: [], extensions: ['css', 'js'] },
  },
  {
    given: { paths: ['/x'] },
    expression: `${PATH} in {"/x"}`,
    lists: { pathPrefixes: [], paths: ['/x'], extensions: [] },
  },
  {
    given: { expression: `${EXTENSION} in {"js" "css"}` },
    expression: `${EXTENSION} in {"js" "css"}`,
    lists: { pathPrefixes: [], paths: [], extensions: ['css', 'js'] },
  },
  {
    given: { expression: `${EXTENSION} in {"js" "css"}`, extensions: ['js', 'css'] },
    expression: `${EXTENSION} in {"js" "css"}`,
    lists: { pathPrefixes: [], paths: [], extensions: ['css', 'js'] },
  },
  {
    given: { expression: 'http.host eq "a.example"' },
    expression: 'http.host eq "a.example"',
    lists: { pathPrefixes: [], paths: [], extensions: [] },
  },
]) {
  test(`a condition is shown as text and, where lists can say it, as lists: ${JSON.stringify(given)}`, (t) => {
    const [saved] = rulesOf(given);
    t.is(saved!.expression, expression);
    t.like(saved, lists);
    // What was returned can be sent again.
    t.deepEqual(rulesOf({ ...saved!, priority: 10 }), [{ ...saved!, priority: 10 }]);
  });
}

for (const { given, code, at } of [
  { given: { expression: 'http.hots eq "a"' }, code: 'RULE_INVALID', at: { field: '/cacheRules/0/expression' } },
  { given: { expression: 'http.response.code eq 200' }, code: 'RULE_INVALID', at: { code: 'response_field' } },
  { given: { expression: 'ssl eq true', paths: ['/x'] }, code: 'BAD_REQUEST', at: issue('/expression', 'sameAsLists') },
  {
    given: { expression: `${PATH} in {"/x"}`, paths: ['/y'] },
    code: 'BAD_REQUEST',
    at: issue('/expression', 'sameAsLists'),
  },
  { given: { minSizeBytes: 2, maxSizeBytes: 1 }, code: 'BAD_REQUEST', at: issue('/maxSizeBytes', 'minimum') },
]) {
  test(`a rule that cannot be is refused: ${JSON.stringify(given)}`, (t) => {
    const refused = refusal(() => rulesOf(given));
    t.is(refused.code, code);
    t.like(refused.data, at);
  });
}

test('a saved rule whose condition does not compile any more refuses every save of the site', (t) => {
  const stored = { priority: 10, ...DEFAULT_CACHE_RULE, expression: 'no.such.field eq 1' };
  const before = { cacheRules: [stored], cacheSettings: DEFAULT_CACHE_SETTINGS };
  t.is(refusal(() => givenCache(before, {})).code, 'RULE_INVALID');
});

test('an update keeps keepCacheTag and xCache, and returns omitted settings to their defaults', (t) => {
  const cacheKey = { ...DEFAULT_CACHE_KEY, query: 'ignore' as const };
  const cacheSettings = { ...DEFAULT_CACHE_SETTINGS, cacheKey, rangeSlice: true, keepCacheTag: true, xCache: false };
  const before = { cacheRules: [], cacheSettings };
  const { purgeMethod: _, ...saved } = cacheSettings;
  t.deepEqual(givenCache(before, {}).cacheSettings, saved);
  const kept = { cacheKey: DEFAULT_CACHE_KEY, rangeSlice: false, keepCacheTag: true, xCache: false };
  t.deepEqual(givenCache(before, { cacheSettings: {} }).cacheSettings, kept);
  const given = { cacheKey: { headers: ['X-B', 'x-a', 'x-b'], cookies: ['b', 'A'] }, keepCacheTag: false };
  t.deepEqual(givenCache(before, { cacheSettings: given }).cacheSettings, {
    ...kept,
    cacheKey: { ...DEFAULT_CACHE_KEY, headers: ['x-a', 'x-b'], cookies: ['A', 'b'] },
    keepCacheTag: false,
  });
  for (const header of ['Cookie', 'host']) {
    const refused = refusal(() => givenCache(before, { cacheSettings: { cacheKey: { headers: [header] } } }));
    t.is(refused.code, 'BAD_REQUEST');
  }
});

for (const preset of CACHE_PRESETS) {
  test(`the preset ${preset} is saved as it is offered`, (t) => {
    const offered = [...CACHE_PRESET_RULES[preset]];
    t.deepEqual(givenCache(NEW_CACHE, { cacheRules: offered }).cacheRules, offered);
  });
}
