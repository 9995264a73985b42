// Which rules of the WAF matched most on a site.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import type { siteWaf } from '../../contract/resources/site-waf.ts';
import { WAF_OWN_FAMILIES } from '../../contract/waf-rule-set.ts';
import { topWafRules } from '../../models/rules/rule-hits.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Throws SITE_NOT_FOUND. */
export async function listTopRules(
  { pools }: Pick<Runtime, 'pools'>,
  { id, range, limit = 10 }: Input<typeof siteWaf.topRules>,
): Promise<Output<typeof siteWaf.topRules>> {
  if (!(await clusterOfSite(pools.api, id))) fail('SITE_NOT_FOUND');
  const items = await topWafRules(pools.api, id, startOf(range), limit, WAF_OWN_FAMILIES);
  return { approximate: true, items };
}
