// How often rules matched in the last 24 hours, in words beside each.
import type { Output } from '@contract/procedure.ts';
import type { ruleHits } from '@contract/resources/rule-hits.ts';
import { formatList, formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

export type Hits = Output<typeof ruleHits.site>;

/** Nodes tell once a minute. */
export const HITS_MS = 60_000;

/** "12 blocked", for each rule that matched; of others there is nothing to say. */
export function hitsText({ items }: Pick<Hits, 'items'>, ruleId: string): string {
  const own = items.filter((item) => item.ruleId === ruleId && item.requests > 0);
  const texts = own.map(({ event, requests }) =>
    i18n.global.t(`rules.hits.${event}`, { count: formatNumber(requests) }, requests),
  );
  return texts.length === 0 ? '' : formatList(texts);
}
