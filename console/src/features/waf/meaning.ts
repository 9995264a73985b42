// What an exclusion does, as a sentence.
import type { Output } from '@contract/procedure.ts';
import type { WafExclusion } from '@contract/resources/site-waf.ts';
import type { wafExclusions } from '@contract/resources/waf-exclusions.ts';
import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { isWhole, targetText } from './exclusion.ts';

type Silenced = Pick<Output<typeof wafExclusions.preview>, 'events' | 'matched'>;

/** Empty while it says too little. */
export function meaningOf(exclusion: WafExclusion): string {
  if (!isWhole(exclusion)) return '';
  const { t } = i18n.global;
  const { path, pathPrefix, part, name } = exclusion;
  const where = path === '' ? t('waf.where.any') : t(pathPrefix ? 'waf.where.below' : 'waf.where.exact', { path });
  return t(`waf.meaning.${part}`, { target: targetText(exclusion), name, where });
}

/** Where a rule matched. */
export function placeText({ part, name }: Pick<WafExclusion, 'part' | 'name'>): string {
  return i18n.global.t(`waf.place.${part}`, { name });
}

/** How many events an exclusion would have silenced, of those that were looked at, and in how many it is not all there is. */
export function silencedText({ events, matched }: Silenced, looked: number): string {
  const { t } = i18n.global;
  if (events === null || matched === null) return t('waf.silenced.unknown');
  const told = t('waf.silenced.events', { count: formatNumber(events), looked: formatNumber(looked) }, looked);
  const others = matched - events;
  return others === 0 ? told : `${told} ${t('waf.silenced.others', { count: formatNumber(others) }, others)}`;
}
