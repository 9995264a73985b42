// What of protection needs somebody: sites above normal, and Under Attack that was left on.
import { security } from '@contract/resources/security.ts';
import type { AttentionItem } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';
import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';
import { levelText } from './level.ts';

const NAMED = 5;
const to = '/protection/incidents';

export async function attention(): Promise<AttentionItem[]> {
  const [{ underAttack, sitesUnderAttack, sites, total }] = await Promise.all([
    call(security.incidents, {}, { renewSession: false }),
    loadMessages(['protection']),
  ]);
  const { t } = i18n.global;
  const items: AttentionItem[] = sites.slice(0, NAMED).map(({ siteId, siteName, level }) => ({
    key: `incident:${siteId}`,
    level: level === 'captcha' ? 'act' : 'watch',
    text: t('protection.attention.site', { name: siteName, level: levelText(level) }),
    to: `/sites/${siteId}/security`,
  }));
  const more = total - items.length;
  const count = (number: number) => ({ count: formatNumber(number) });
  if (more > 0)
    items.push({ key: 'incidents', level: 'act', text: t('protection.attention.more', count(more), more), to });
  if (underAttack) items.push({ key: 'under-attack', level: 'watch', text: t('protection.attention.global'), to });
  if (sitesUnderAttack > 0) {
    const text = t('protection.attention.sites', count(sitesUnderAttack), sitesUnderAttack);
    items.push({ key: 'sites-under-attack', level: 'watch', text, to });
  }
  return items;
}
