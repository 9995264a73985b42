import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { siteRules } from '../../contract/resources/rules.ts';
import { publish } from '../../models/config/publish.ts';
import { assertCapabilities } from '../../models/config/required-capabilities.ts';
import type { EntryName } from '../../models/config/write-revision.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { groupsOf } from '../../models/rules/compiled-rules.ts';
import { lockSiteRules, readSiteRules, type SiteRuleSet } from '../../models/rules/rule-set.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { clusterOfSite, siteById } from '../../models/sites/site.ts';
import { entriesBeside } from '../../models/sites/site-ports.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { checkRules } from './check-rules.ts';
import { ruleChanges, saveRules } from './save-rules.ts';
import { warningsOfSite } from './warnings/of-lists.ts';

/** Throws SITE_NOT_FOUND. */
export async function getSiteRules(
  { pools }: Runtime,
  { id }: Input<typeof siteRules.get>,
  call: Call,
): Promise<Output<typeof siteRules.get>> {
  return present(pools.api, (await readSiteRules(pools.api, id)) ?? fail('SITE_NOT_FOUND'), call);
}

/** Replaces the rules; what equals the saved ones is not saved again. Publishes what nodes run differently. Throws the contract's errors. */
export async function setSiteRules(
  runtime: Runtime,
  input: Input<typeof siteRules.set>,
  call: Call,
): Promise<Output<typeof siteRules.set>> {
  const clusterId = (await clusterOfSite(runtime.pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await lockSiteRules(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, before.updatedAt);
    const checked = checkRules(input.rules, before.rules, before.groups);
    const rules = checked.map(({ rule }) => rule);
    const again = isDeepStrictEqual(rules, before.rules);
    const { siteId, siteName } = before;
    const after = again ? before : { ...before, rules, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    const save = async () => {
      const compiled = await saveRules(tx.sql, { id: siteId, clusterId }, checked, after.updatedAt);
      await assertCapabilities(tx, clusterId, compiled?.features ?? []);
      return { compiled };
    };
    const revision = await publish(tx, {
      clusterId,
      entries: [
        { kind: SITE_RULES_KIND, id: siteId, ...(again ? {} : await save()) },
        // After a rollback nodes may have other groups than are saved, which these rules name.
        ...(groupsOf(rules).length > 0 ? await entriesOf(tx.sql, siteId) : []),
      ],
      reason: 'rules_updated',
      params: { site: siteName, siteId },
      audit: {
        action: 'site.rules_update',
        target: { type: 'site', id: siteId, name: siteName },
        metadata: ruleChanges(before.rules, rules),
      },
      again,
    });
    return { ...(await present(tx.sql, after, call)), revision };
  });
}

async function entriesOf(sql: Tx['sql'], id: string): Promise<EntryName[]> {
  return [{ kind: siteKind.kind, id }, ...entriesBeside((await siteById(sql, id))!.ports)];
}

async function present(
  sql: Runtime['pools']['api'],
  { siteId, clusterId, rules, updatedAt }: SiteRuleSet,
  { ip }: Call,
): Promise<Output<typeof siteRules.get>> {
  const warnings = await warningsOfSite(sql, rules, { clusterId, address: ip });
  return { siteId, rules, updatedAt: updatedAt.toISOString(), warnings };
}
