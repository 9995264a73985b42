// Cache rules and cache settings that a client sent: checked as far as the schema cannot, and completed.
import { isDeepStrictEqual } from 'node:util';
import { badField, fail } from '../../contract/errors.ts';
import { type CacheBuilder, cacheConditionOf } from '../../contract/expression/cache-builder.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  type CacheRule,
  type CacheRuleInput,
  type CacheSettings,
  type CacheSettingsInput,
  DEFAULT_CACHE_KEY,
} from '../../contract/resources/site-cache.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { type CheckedCacheCondition, checkCacheRule } from './cache-rule.ts';
import type { StoredCacheSettings } from './site-cache.entry.ts';

const PRIORITY_STEP = 10;
/** What a condition of a cache rule is; they have no names. */
const UNNAMED = { ruleId: null, name: '' };
const BUILDER_LISTS = ['pathPrefixes', 'paths', 'extensions'] as const;
const NO_LISTS: CacheBuilder = { pathPrefixes: [], paths: [], extensions: [] };
const REFUSED_HEADERS: readonly string[] = ['cookie', 'host'];

export interface GivenCache {
  cacheRules: CacheRule[];
  /** Of each rule. */
  conditions: CheckedCacheCondition[];
  cacheSettings: StoredCacheSettings;
  purgeMethod: CacheSettingsInput['purgeMethod'];
}

type CacheInput = Pick<Input<typeof sites.create>, 'cacheRules' | 'cacheSettings'>;
/** The cache of a site as it is shown. */
export interface CacheOfSite {
  cacheRules: CacheRule[];
  cacheSettings: CacheSettings;
}

/**
 * Rules and settings after a change; those that the input omits stay. Saved rules are checked again: their conditions must
 * still compile. Throws RULE_INVALID, CACHE_RULE_PRIORITY_DUPLICATE, BAD_REQUEST.
 */
export function givenCache(before: CacheOfSite, input: CacheInput): GivenCache {
  const checked = (input.cacheRules ?? before.cacheRules)
    .map(givenRule)
    .sort((a, b) => a.rule.priority - b.rule.priority);
  const repeated = checked.find(({ rule }, index) => rule.priority === checked[index - 1]?.rule.priority);
  if (repeated) fail('CACHE_RULE_PRIORITY_DUPLICATE', { priority: repeated.rule.priority, path: '/cacheRules' });
  return {
    cacheRules: checked.map(({ rule }) => rule),
    conditions: checked.map(({ condition }) => condition),
    cacheSettings: changedSettings(before.cacheSettings, input.cacheSettings),
    purgeMethod: input.cacheSettings?.purgeMethod,
  };
}

interface GivenRule {
  rule: CacheRule;
  condition: CheckedCacheCondition;
}

/** The lists are those that show the condition; none where it needs more than lists. */
function givenRule({ priority, ...input }: CacheRuleInput, index: number): GivenRule {
  const at = `/cacheRules/${index}`;
  const { minSizeBytes, maxSizeBytes } = input;
  if (maxSizeBytes > 0 && maxSizeBytes < minSizeBytes)
    badField(`${at}/maxSizeBytes`, 'minimum', { limit: minSizeBytes });
  const lists = givenLists(input);
  const expression = input.expression.trim() || cacheConditionOf(lists);
  const condition = checkCacheRule(expression);
  if ('error' in condition) {
    const { code, position, params, message } = condition.error;
    return fail('RULE_INVALID', {
      rule: index,
      ...UNNAMED,
      field: `${at}/expression`,
      code,
      position,
      params,
      message,
    });
  }
  const shown = condition.builder ?? NO_LISTS;
  if (!isDeepStrictEqual(lists, NO_LISTS) && !sameLists(lists, shown)) badField(`${at}/expression`, 'sameAsLists');
  const statusCodes = [...new Set(input.statusCodes)].sort((a, b) => a - b);
  const rule = {
    ...input,
    priority: priority ?? (index + 1) * PRIORITY_STEP,
    expression,
    ...copyOf(shown),
    statusCodes,
  };
  return { rule, condition };
}

function givenLists({ pathPrefixes, paths, extensions }: CacheBuilder): CacheBuilder {
  const names = extensions.map((name) => name.replace('.', '').toLowerCase());
  return { pathPrefixes: [...new Set(pathPrefixes)], paths: [...new Set(paths)], extensions: [...new Set(names)] };
}

function copyOf({ pathPrefixes, paths, extensions }: CacheBuilder) {
  return { pathPrefixes: [...pathPrefixes], paths: [...paths], extensions: [...extensions] };
}

/** In whatever order. */
function sameLists(a: CacheBuilder, b: CacheBuilder): boolean {
  return BUILDER_LISTS.every((list) => isDeepStrictEqual(a[list].toSorted(), b[list].toSorted()));
}

function changedSettings(before: CacheSettings, given: CacheSettingsInput | undefined): StoredCacheSettings {
  const { purgeMethod: _, ...saved } = before;
  if (!given) return saved;
  const { keepCacheTag = before.keepCacheTag, xCache = before.xCache, rangeSlice = false } = given;
  const cacheKey = { ...DEFAULT_CACHE_KEY, ...given.cacheKey };
  const headers = [...new Set(cacheKey.headers.map((name) => name.toLowerCase()))].sort();
  const refused = headers.find((name) => REFUSED_HEADERS.includes(name));
  if (refused !== undefined) badField('/cacheSettings/cacheKey/headers', 'refusedHeader');
  return { cacheKey: { ...cacheKey, headers, cookies: cacheKey.cookies.toSorted() }, rangeSlice, keepCacheTag, xCache };
}
