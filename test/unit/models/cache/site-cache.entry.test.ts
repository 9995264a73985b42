import { fromBinary, toJson } from '@bufbuild/protobuf';
import test from 'ava';
import { type CacheRule, DEFAULT_CACHE_KEY, DEFAULT_CACHE_RULE } from '../../../../contract/resources/site-cache.ts';
import { checkCacheRule } from '../../../../models/cache/cache-rule.ts';
import {
  compileCache,
  DEFAULT_CACHE,
  type StoredCacheSettings,
  siteCacheKind,
} from '../../../../models/cache/site-cache.entry.ts';
import { compileConditions } from '../../../../models/cache/site-cache.ts';
import { SiteCacheSchema } from '../../../../proto/gen/svc/config/v1/cache_pb.js';

const lists = new Map([['office', 'list-1']]);
const rule = (more: Partial<CacheRule> = {}): CacheRule => ({
  priority: 10,
  ...DEFAULT_CACHE_RULE,
  expression: 'true',
  ...more,
});

function entryOf(cacheRules: CacheRule[], more: Partial<StoredCacheSettings> = {}) {
  const checked = cacheRules.map(({ expression }) => {
    const one = checkCacheRule(expression);
    return 'error' in one ? null : one;
  });
  const cache = { cacheRules, cacheSettings: { ...DEFAULT_CACHE.cacheSettings, ...more } };
  return compileCache(compileConditions(cache, checked, lists));
}

test('a site without rules and with the default settings has no entry', (t) => {
  t.is(entryOf([]), null);
});

/** A changed text here needs a higher compilerVersion: nodes and revisions hold the bytes of the old one. */
test('the bytes of a compiler version stay as they are', (t) => {
  t.is(siteCacheKind.compilerVersion, 1);
  const full = rule({
    statusCodes: [200, 404],
    minSizeBytes: 1,
    maxSizeBytes: 2,
    edgeTtlSeconds: 60,
    originCacheControl: 'override',
    staleWhileRevalidateSeconds: 3,
    staleIfErrorSeconds: 4,
    cacheAuthorized: true,
    cacheSetCookie: true,
    browserTtlSeconds: 5,
  });
  const bypass = { ...full, priority: 20, action: 'bypass' as const };
  const cacheKey = {
    query: 'exclude' as const,
    queryParams: ['utm_*'],
    sortQuery: true,
    headers: ['x-a'],
    cookies: ['A'],
    deviceType: true,
    includeHost: false,
  };
  const { body } = entryOf([full, bypass], { cacheKey, rangeSlice: true, keepCacheTag: true, xCache: false })!;
  const matching = { condition: 'CAESBggEOgIYAQ==', statusCodes: [200, 404], minSizeBytes: '1', maxSizeBytes: '2' };
  t.deepEqual(toJson(SiteCacheSchema, fromBinary(SiteCacheSchema, body)), {
    rules: [
      {
        priority: 10,
        ...matching,
        edgeTtlSeconds: 60,
        overrideOrigin: true,
        staleWhileRevalidateSeconds: 3,
        staleIfErrorSeconds: 4,
        cacheAuthorized: true,
        cacheSetCookie: true,
        browserTtlSeconds: 5,
      },
      { priority: 20, ...matching, bypass: true },
    ],
    key: {
      query: 'CACHE_QUERY_EXCLUDE',
      queryParams: ['utm_*'],
      sortQuery: true,
      headers: ['x-a'],
      cookies: ['A'],
      deviceType: true,
      ignoreHost: true,
    },
    rangeSlice: true,
    keepCacheTag: true,
    hideXCache: true,
  });
});

const NEEDS: { rules: CacheRule[]; settings?: Partial<StoredCacheSettings>; features: string[] }[] = [
  { rules: [rule()], features: [] },
  { rules: [rule({ expression: 'http.request.uri.path.extension in {"css"}' })], features: [] },
  { rules: [rule({ expression: 'http.host eq "a"' })], features: ['rules-v2'] },
  { rules: [rule({ expression: 'http.request.cookies["a"] eq "b"' })], features: ['rules-v2', 'rules-v3'] },
  { rules: [rule({ browserTtlSeconds: 1 })], features: ['rules-v2'] },
  { rules: [rule({ browserTtlSeconds: 1, action: 'bypass' })], features: [] },
  { rules: [rule({ cacheSetCookie: true })], features: ['site-content-v1'] },
  { rules: [], settings: { keepCacheTag: true }, features: ['site-content-v1'] },
  { rules: [], settings: { xCache: false }, features: ['site-content-v1'] },
  { rules: [], settings: { rangeSlice: true }, features: ['range-slice-v1'] },
  {
    rules: [],
    settings: { cacheKey: { ...DEFAULT_CACHE_KEY, query: 'exclude' as const } },
    features: ['site-content-v1'],
  },
  { rules: [], settings: { cacheKey: { ...DEFAULT_CACHE_KEY, query: 'include' as const } }, features: [] },
];

test('an entry needs the capabilities of its conditions and settings', (t) => {
  for (const { rules, settings = {}, features } of NEEDS) {
    t.deepEqual(entryOf(rules, settings)!.features, ['cache-v1', ...features], JSON.stringify({ rules, settings }));
  }
});

test('a condition names its IP lists by id, also among the references of the entry', (t) => {
  const entry = entryOf([rule({ expression: 'ip.src in $office' })])!;
  t.deepEqual(entry.refs, ['list:list-1']);
  t.true(Buffer.from(entry.body).includes('list-1'));
});
