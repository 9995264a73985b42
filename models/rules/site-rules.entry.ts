// Kind "site-rules": rules of a site that are enabled. Without an entry it has none.
import { isDeepStrictEqual } from 'node:util';
import type { Rule } from '../../contract/scalars/rule.ts';
import type { ActionKind } from '../../contract/scalars/rule-action.ts';
import type { EntryKind } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';
import { MAX_RULES_BYTES, RULES_COMPILER_VERSION } from './compiled-rules.ts';
import { compiledRuleSets, sitesWithRules } from './rule-set.ts';

export const SITE_RULES_KIND = 'site-rules';

const LIST_BATCH = 1000;
const ROUTING: readonly ActionKind[] = ['rewrite', 'request_header', 'config', 'origin'];

/** What a snapshot has: those that nodes got. */
export interface RulesSettings {
  rules: Rule[];
}

export const siteRulesKind: EntryKind = {
  kind: SITE_RULES_KIND,
  compilerVersion: RULES_COMPILER_VERSION,
  bypass: false,
  routes: (before, after) => !isDeepStrictEqual(routingOf(before as RulesSettings), routingOf(after as RulesSettings)),
  onRollback: 'restore',
  defaults: { rules: [] } satisfies RulesSettings,
  shown: (settings) => shownRules(settings as RulesSettings),
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

/** Those that choose what origins are asked, and how. */
function routingOf({ rules }: RulesSettings): Rule[] {
  return rules.filter(({ action: { kind } }) => ROUTING.includes(kind));
}

/** By their names, so that one that moved is the same. */
function shownRules({ rules }: RulesSettings): object {
  const byName: Record<string, object> = {};
  for (const { id: _id, enabled: _enabled, name, ...rule } of rules) {
    let key = name;
    for (let number = 2; Object.hasOwn(byName, key); number++) key = `${name} (${number})`;
    byName[key] = rule;
  }
  return { order: Object.keys(byName), rules: byName };
}
