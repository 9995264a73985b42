// Kind "platform-rules": rules of all sites that are enabled. Without an entry there are none.

import type { EntryKind } from '../config/entry-kind.ts';
import { MAX_RULES_BYTES, RULES_COMPILER_VERSION } from './compiled-rules.ts';
import { compiledRuleSets, PLATFORM } from './rule-set.ts';

export const PLATFORM_RULES_KIND = 'platform-rules';

export const platformRulesKind: EntryKind = {
  kind: PLATFORM_RULES_KIND,
  compilerVersion: RULES_COMPILER_VERSION,
  bypass: false,
  routes: () => true,
  onRollback: 'current',
  maxBodyBytes: MAX_RULES_BYTES / 2,
  scope: 'platform',
  ownerOf: () => null,
  async compile(sql, _clusterId, ids) {
    const compiled = await compiledRuleSets(sql, ids.includes(PLATFORM) ? [PLATFORM] : []);
    return new Map([...compiled].map(([id, { settings: _, ...entry }]) => [id, entry]));
  },
  async *list() {
    yield [PLATFORM];
  },
};
