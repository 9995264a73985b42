// Requests of a site in which rules of the WAF matched.
import { badField, fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import type { wafEvents } from '../../contract/resources/waf-events.ts';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import type { WafPart } from '../../contract/waf-rule-set.ts';
import { readSiteWaf } from '../../models/waf/site-waf.ts';
import { type WafEventRow, wafEventCount, wafEventPage } from '../../models/waf/waf-event.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Event = Output<typeof wafEvents.list>['items'][number];

/** Newest first. Throws SITE_NOT_FOUND, and BAD_REQUEST for what is no address. */
export async function listWafEvents(
  { pools }: Pick<Runtime, 'pools'>,
  input: Input<typeof wafEvents.list>,
): Promise<Output<typeof wafEvents.list>> {
  const { id: siteId, range, blocked = null, ruleId = null, requestId = null, path = null } = input;
  const sql = pools.api;
  const { settings } = (await readSiteWaf(sql, siteId)) ?? fail('SITE_NOT_FOUND');
  const filter = { siteId, from: startOf(range), blocked, ruleId, requestId, path, cidr: givenRange(input.address) };
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([wafEventPage(sql, filter, limit, offset), wafEventCount(sql, filter)]);
  return { items: rows.map((row) => present(row, settings.eventValues)), total };
}

function givenRange(address: string | undefined): string | null {
  if (address === undefined) return null;
  return formatCidr(parseCidr(address) ?? badField('/address', 'cidr'));
}

/** Values that were told while the site wanted them are shown while it does. */
function present({ id, nodeId, nodeName, occurredAt, waf: { matches, ...waf } }: WafEventRow, values: boolean): Event {
  return {
    id,
    node: nodeId === null ? null : { id: nodeId, name: nodeName! },
    occurredAt: occurredAt.toISOString(),
    ...waf,
    rulesSeen: waf.rulesSeen ?? null,
    matchesSeen: waf.matchesSeen ?? null,
    matches: matches.map(({ rule, part, name, value = null, points = null }) => ({
      ruleId: rule,
      part: part as WafPart,
      name,
      value: values ? value : null,
      points,
    })),
  };
}
