import { ALERTS, type AlertEvent, type AlertKind } from '@contract/resources/alerts.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

/** The message about the beginning of an alert, in the language of the page. */
export function alertText({ kind, siteName, detail }: Pick<AlertEvent, 'kind' | 'siteName' | 'detail'>): string {
  const locale = i18n.global.locale.value === 'zh-CN' ? 'zh-CN' : 'en';
  const name = siteName === '' ? i18n.global.t('alerts.event.installation') : siteName;
  const values: Record<string, unknown> = { ...detail, name };
  return ALERTS[kind].text[locale].firing.replace(/\{(\w+)\}/g, (_, word: string) => shown(values[word]));
}

function shown(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 10) / 10);
  return typeof value === 'string' ? value : '?';
}

/** Goes to channels with a subscription; the others to those alone that receive every alert. */
export function isSubscribed(kind: AlertKind): boolean {
  return ALERTS[kind].audience !== 'everything';
}
