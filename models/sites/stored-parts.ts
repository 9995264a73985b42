// What a site has saved in tables of their own, and nodes get with the site: rules and cache. One statement for both, because
// each change of a site needs them while the other changes of its cluster wait.
import type { Knex } from 'knex';
import type { StoredCache } from '../cache/site-cache.entry.ts';
import { prepared } from '../db/named-statement.ts';
import type { StoredRuleSet } from '../rules/rule-set.ts';

export interface StoredParts {
  /** Undefined for a site that never had rules. `broken`: a rule did not compile when they were compiled last. */
  rules: (StoredRuleSet & { broken: boolean }) | undefined;
  /** Undefined for a site that saved none. */
  cache: StoredCache | undefined;
}

interface PartsRow extends StoredRuleSet, Omit<StoredCache, 'features' | 'refs'> {
  hasRules: boolean;
  broken: boolean;
  hasCache: boolean;
  cacheFeatures: string[];
  cacheRefs: string[];
}

const PARTS = `
  select s.id, r.id is not null as "hasRules", r.rules, r.body, r.features, r.refs, r.compiler_version as version,
      r.broken <> '{}' as broken, k.site_id is not null as "hasCache", k.rules as "cacheRules", k.settings as "cacheSettings",
      k.conditions, k.features as "cacheFeatures", k.refs as "cacheRefs"
    from (select ?::text as id) s left join rule_set r on r.id = s.id left join site_cache k on k.site_id = s.id`;

/** Whoever reads them to publish holds the site's lock. */
export async function readStoredParts(sql: Knex, siteId: string): Promise<StoredParts> {
  const [row] = await prepared<PartsRow>(sql, 'site-stored-parts', { text: PARTS, bindings: [siteId] });
  const { id, hasRules, rules, body, features, refs, version, broken, hasCache, ...cache } = row!;
  const { cacheRules, cacheSettings, conditions, cacheFeatures, cacheRefs } = cache;
  return {
    rules: hasRules ? { id, rules, body, features, refs, version, broken } : undefined,
    cache: hasCache ? { cacheRules, cacheSettings, conditions, features: cacheFeatures, refs: cacheRefs } : undefined,
  };
}
