import { isDeepStrictEqual } from 'node:util';
import type { Input, Output } from '../../contract/procedure.ts';
import type { platformRules } from '../../contract/resources/rules.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { settingTarget } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { PLATFORM_RULES_KIND } from '../../models/rules/platform-rules.entry.ts';
import { lockPlatformRules, PLATFORM, type RuleSet, readPlatformRules } from '../../models/rules/rule-set.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { checkRules } from './check-rules.ts';
import { ruleChanges, saveRules } from './save-rules.ts';
import { warningsOfPlatform } from './warnings/of-lists.ts';

type Rules = Output<typeof platformRules.get>;

export async function getPlatformRules({ pools }: Runtime, call: Call): Promise<Rules> {
  return present(pools.api, await readPlatformRules(pools.api), call);
}

/** Replaces the rules of all sites; every cluster gets them as one entry, whatever its number of sites. */
export async function setPlatformRules(
  runtime: Runtime,
  input: Input<typeof platformRules.set>,
  call: Call,
): Promise<Rules> {
  let clusterIds: string[] = [];
  const output = await write(runtime, call, {}, async (tx) => {
    const before = await lockPlatformRules(tx.sql);
    assertUpdatedAt(input.expectedUpdatedAt, before.updatedAt);
    const checked = checkRules(input.rules, before.rules, null);
    const rules = checked.map(({ rule }) => rule);
    if (isDeepStrictEqual(rules, before.rules)) return present(tx.sql, before, call);
    const updatedAt = nextUpdatedAt(before.updatedAt, tx.now);
    await saveRules(tx.sql, { id: PLATFORM, clusterId: null }, checked, updatedAt);
    await recordAudit(tx, 'platform.rules_update', settingTarget('platform_rules'), ruleChanges(before.rules, rules));
    clusterIds = await requestPublication(tx, {
      entries: [{ kind: PLATFORM_RULES_KIND, id: PLATFORM }],
      reason: 'rules_updated',
    });
    return present(tx.sql, { rules, updatedAt }, call);
  });
  await publishRequested(runtime, call, clusterIds);
  return output;
}

async function present(sql: Runtime['pools']['api'], { rules, updatedAt }: RuleSet, { ip }: Call): Promise<Rules> {
  return { rules, updatedAt: updatedAt.toISOString(), warnings: await warningsOfPlatform(sql, rules, ip) };
}
