// What an exclusion does, as a sentence.
import type { Output } from '@contract/procedure.ts';
import type { WafExclusion } from '@contract/resources/site-waf.ts';
import type { wafEvents } from '@contract/resources/waf-events.ts';
import type { wafExclusions } from '@contract/resources/waf-exclusions.ts';
import { formatList, formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { attackOf } from './attack.ts';
import { isWhole, targetText } from './exclusion.ts';
import { hasFamily, RULES_IN_FAMILY } from './rules.ts';

type Preview = Output<typeof wafExclusions.preview>;
type Silenced = Pick<Preview, 'events' | 'matched'> & Partial<Pick<Preview, 'attacks' | 'remaining'>>;
type Event = Output<typeof wafEvents.list>['items'][number];

/** Empty while it says too little. */
export function meaningOf(exclusion: WafExclusion): string {
  if (!isWhole(exclusion)) return '';
  const { t } = i18n.global;
  const { part, name } = exclusion;
  return t(`waf.meaning.${part}`, { target: targetText(exclusion), name, where: whereText(exclusion) });
}

/** On which paths. */
export function whereText({ path, pathPrefix }: Pick<WafExclusion, 'path' | 'pathPrefix'>): string {
  const { t } = i18n.global;
  return path === '' ? t('waf.where.any') : t(pathPrefix ? 'waf.where.below' : 'waf.where.exact', { path });
}

/** Where a rule matched. */
export function placeText({ part, name }: Pick<WafExclusion, 'part' | 'name'>): string {
  return i18n.global.t(`waf.place.${part}`, { name });
}

/** What kind of attack an event is, where, and what else matched. */
export function attackText(event: Pick<Event, 'rules' | 'matches'>): string {
  const { t } = i18n.global;
  const { family, part, name, others } = attackOf(event);
  const kind = (of: number) => t(`waf.attack.${hasFamily(of * RULES_IN_FAMILY) ? of : 'other'}`);
  const attack = t(`waf.attackText.${part}`, { attack: kind(family), name });
  return others.length === 0 ? attack : t('waf.attackText.also', { attack, others: formatList(others.map(kind)) });
}

/**
 * How many events exclusions would have silenced, of those that were looked at, what would still block others, and in how
 * many it is not all there is.
 */
export function silencedText({ events, matched, attacks, remaining = [] }: Silenced, looked: number): string {
  const { t } = i18n.global;
  if (events === null || matched === null) return t('waf.silenced.unknown');
  const texts = [t('waf.silenced.events', { count: formatNumber(events), looked: formatNumber(looked) }, looked)];
  const still = attacks ?? 0;
  if (still > 0) {
    const matches = formatList(
      remaining.map(({ ruleId, part, name }) =>
        t('waf.silenced.match', { id: ruleId, place: t(`waf.placeIn.${part}`, { name }) }),
      ),
    );
    const key = matches === '' ? 'waf.silenced.stillUnknown' : 'waf.silenced.still';
    texts.push(t(key, { count: formatNumber(still), matches }, still));
  }
  const others = matched - events - still;
  if (others > 0) texts.push(t('waf.silenced.others', { count: formatNumber(others) }, others));
  return texts.join(' ');
}

/** Whether an event keeps fewer matches than it saw, in words; empty where it keeps all. */
export function keptText({ matches, matchesSeen, rules, rulesSeen }: Event): string {
  const { t } = i18n.global;
  const told = (key: string, kept: number, seen: number | null) =>
    seen !== null && seen > kept ? [t(key, { seen: formatNumber(seen), kept: formatNumber(kept) })] : [];
  return [
    ...told('waf.event.kept', matches.length, matchesSeen),
    ...told('waf.event.rulesKept', rules.length, rulesSeen),
  ].join(' ');
}
