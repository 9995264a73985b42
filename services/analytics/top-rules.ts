import type { Input, Output } from '../../contract/procedure.ts';
import { type analytics, RULE_RESULTS } from '../../contract/resources/analytics.ts';
import { WAF_OWN_FAMILIES } from '../../contract/waf-rule-set.ts';
import { matchedRules } from '../../models/rules/rule-hits.ts';
import { RULE_DAYS } from '../../models/rules/rule-minute.ts';
import { nodesWithout } from '../../models/traffic/traffic-nodes.ts';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { periodOf } from './span.ts';
import { subjectOf } from './subject.ts';
import { whole } from './traffic-sum.ts';

const DAY_MS = 86_400_000;

/** Throws ANALYTICS_PERIOD_INVALID. */
export async function readTopRules(
  { pools }: Pick<Runtime, 'pools'>,
  { siteId, limit = 20, ...asked }: Input<typeof analytics.topRules>,
): Promise<Output<typeof analytics.topRules>> {
  const now = Date.now();
  const span = periodOf(asked, now);
  const subject = subjectOf({ siteId });
  const to = new Date(span.to);
  const from = new Date(Math.min(span.to, Math.max(span.from, now - RULE_DAYS * DAY_MS)));
  const [rules, unsupportedNodes] = await Promise.all([
    matchedRules(pools.api, { siteId: subject.id, from, to, limit, families: WAF_OWN_FAMILIES }),
    nodesWithout(pools.api, 'rule-log-v1', subject),
  ]);
  return {
    range: span.range,
    from: from.toISOString(),
    to: to.toISOString(),
    items: rules.map(({ ruleId, name, platform, event, requests }) => ({
      ruleId,
      kind: event === RuleEvent.WAF_MATCHED ? 'waf' : platform ? 'platform' : 'site',
      name,
      result: RULE_RESULTS[event - 1]!,
      requests: whole(requests),
    })),
    unsupportedNodes,
  };
}
