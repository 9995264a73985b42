// Decisions of the cache, in the short form of test/vectors/cache-decisions.json.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';
import type { Condition } from '../../contract/expression/tree.ts';
import type { CacheExplanation } from '../../contract/resources/cache-explain.ts';
import {
  type CacheRuleInput,
  type CacheSettings,
  DEFAULT_CACHE_RULE,
  DEFAULT_CACHE_SETTINGS,
} from '../../contract/resources/site-cache.ts';
import { type GivenCache, givenCache } from '../../models/cache/given-cache.ts';
import { compileCache } from '../../models/cache/site-cache.entry.ts';
import { compileConditions } from '../../models/cache/site-cache.ts';
import { decideCache } from '../../services/rules/cache-decision/decide.ts';
import type { OriginResponse } from '../../services/rules/cache-decision/judge.ts';
import { keyText } from '../../services/rules/cache-decision/key.ts';
import type { RunRequest } from '../../services/rules/run/request.ts';

export interface DecisionCase {
  name: string;
  rules: Partial<CacheRuleInput>[];
  key?: Partial<CacheSettings['cacheKey']>;
  request?: Partial<RunRequest>;
  /** A rule of the site has the request go past the cache. */
  bypass?: boolean;
  response?: OriginResponse;
  expect: Record<string, unknown>;
  entry?: string;
}

export interface DecisionVectors {
  now: number;
  site: string;
  request: Partial<RunRequest>;
  cases: DecisionCase[];
}

/** The vectors that nodes are tested with as well. */
export function decisionVectors(): DecisionVectors {
  return JSON.parse(readFileSync(join(root, 'test/vectors/cache-decisions.json'), 'utf8')) as DecisionVectors;
}

function givenOf({ rules, key = {} }: DecisionCase): GivenCache {
  const cacheRules = rules.map((rule) => ({ ...DEFAULT_CACHE_RULE, ...rule }));
  const before = { cacheRules: [], cacheSettings: DEFAULT_CACHE_SETTINGS };
  return givenCache(before, { cacheRules, cacheSettings: { cacheKey: key } });
}

/** The rules and settings as a node gets them, in base64. */
export function entryOfCase(each: DecisionCase): string {
  const { cacheRules, cacheSettings, conditions } = givenOf(each);
  const { body } = compileCache(compileConditions({ cacheRules, cacheSettings }, conditions, new Map()))!;
  return Buffer.from(body).toString('base64');
}

/** What becomes of the request of a case. */
export function decisionOf(each: DecisionCase, { now, request }: DecisionVectors): CacheExplanation {
  const { cacheRules, cacheSettings, conditions } = givenOf(each);
  return decideCache({
    request: { ...UNSAID, ...request, ...each.request, arrivedSeconds: now } as RunRequest,
    response: each.response ?? null,
    rules: cacheRules.map((rule, index) => ({ rule, condition: conditions[index]!.tree as Condition })),
    key: cacheSettings.cacheKey,
    bypassedBy: each.bypass ? 'a rule' : null,
    changed: [],
    inList: () => false,
    now,
  });
}

const UNSAID: Partial<RunRequest> = { id: null, ja4: '', country: '', subdivision: '', asNumber: 0, asName: '' };

/** A decision in the form of the vectors; `key` is the text that nodes make of it. */
export function summaryOfDecision(explanation: CacheExplanation, site: string): Record<string, unknown> {
  const { decision, why, rule, xCache, key, freshness, browserTtlSeconds } = explanation;
  const vary = key?.filter(({ part }) => part === 'vary').map(({ name }) => name!);
  const summary = {
    decision,
    why,
    rule,
    xCache,
    key: key && keyText(site, key),
    ...(freshness && {
      source: freshness.source,
      lifetime: freshness.lifetimeSeconds,
      age: freshness.ageSeconds,
      validated: freshness.validated || null,
      staleWhileRevalidate: freshness.staleWhileRevalidateSeconds || null,
      staleIfError: freshness.staleIfErrorSeconds || null,
    }),
    vary: vary && vary.length > 0 ? vary : null,
    browserTtl: browserTtlSeconds,
  };
  return Object.fromEntries(Object.entries(summary).filter(([, value]) => value !== null));
}
