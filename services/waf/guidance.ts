// What block would have stopped on a site, for who has it detect first.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import {
  GUIDANCE_HOURS,
  MAX_SUSPECTS,
  SUSPECT_CLIENTS,
  SUSPECT_EVENTS,
  type wafGuidance,
} from '../../contract/resources/waf-guidance.ts';
import { WAF_OWN_FAMILIES, type WafPart } from '../../contract/waf-rule-set.ts';
import { topWafRules } from '../../models/rules/rule-hits.ts';
import { readSiteWaf } from '../../models/waf/site-waf.ts';
import { wafModeSince, wafSums, wafSuspects } from '../../models/waf/waf-guidance.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const TOP_RULES = 10;

/** Throws SITE_NOT_FOUND. */
export async function getWafGuidance(
  { pools }: Pick<Runtime, 'pools'>,
  { id }: Input<typeof wafGuidance.get>,
): Promise<Output<typeof wafGuidance.get>> {
  const sql = pools.api;
  const { mode } = ((await readSiteWaf(sql, id)) ?? fail('SITE_NOT_FOUND')).settings;
  const from = startOf(`${GUIDANCE_HOURS}h`);
  const [since, sums, rules, suspects] = await Promise.all([
    mode === 'detect' ? wafModeSince(sql, id) : null,
    wafSums(sql, id, from, new Date()),
    topWafRules(sql, id, from, TOP_RULES, WAF_OWN_FAMILIES),
    wafSuspects(sql, id, from, { events: SUSPECT_EVENTS, clients: SUSPECT_CLIENTS, limit: MAX_SUSPECTS }),
  ]);
  return {
    approximate: true,
    mode,
    detectingSince: since?.toISOString() ?? null,
    ready: since !== null && since <= from,
    hours: GUIDANCE_HOURS,
    ...sums,
    rules,
    suspects: suspects.map((suspect) => ({ ...suspect, part: suspect.part as WafPart })),
  };
}
