// Kind "site-rules": rules of a site that are enabled. Without an entry it has none.
import type { Rule } from '../../contract/scalars/rule.ts';
import { compiledRuleSets, sitesWithRules } from '../rule-set.ts';
import type { EntryKind } from './kind.ts';
import { siteOwner } from './owner.ts';
import { MAX_RULES_BYTES, RULES_COMPILER_VERSION } from './rules.ts';

export const SITE_RULES_KIND = 'site-rules';

const LIST_BATCH = 1000;

/** What a snapshot has: those that nodes got. */
export interface RulesSettings {
  rules: Rule[];
}

export const siteRulesKind: EntryKind = {
  kind: SITE_RULES_KIND,
  compilerVersion: RULES_COMPILER_VERSION,
  bypass: false,
  // Any of them can choose another origin, or another path of it.
  routes: () => true,
  onRollback: 'restore',
  defaults: { rules: [] } satisfies RulesSettings,
  maxBodyBytes: MAX_RULES_BYTES,
  scope: 'cluster',
  ownerOf: siteOwner,
  compile: (sql, _clusterId, ids) => compiledRuleSets(sql, ids),
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const ids = await sitesWithRules(sql, clusterId, after, LIST_BATCH);
      if (ids.length === 0) return;
      yield ids;
      after = ids.at(-1)!;
    }
  },
};
