// What a message says: text in the language of the channel, and the body of a webhook.
import type { AlertLocale } from '../../contract/alert-kind.ts';
import { ALERTS, type AlertKind } from '../../contract/resources/alerts.ts';
import { type AlertFacts, GROUP_NAMED, type LeasedDelivery } from '../../models/alerts/alert-delivery.ts';
import type { AlertMessage } from './sender.ts';

const INSTALLATION: Readonly<Record<AlertLocale, string>> = { en: 'the installation', 'zh-CN': '整个平台' };
const TEST: Readonly<Record<AlertLocale, string>> = {
  en: 'Test message of the edge delivery console. Alerts arrive here.',
  'zh-CN': '这是边缘交付控制台的测试消息。告警会发送到这里。',
};
/** Behind the sentence about the first alert of a group. */
const OTHERS: Readonly<Record<AlertLocale, (others: number, names: string) => string>> = {
  en: (others, names) => ` The same for ${others} more: ${names}`,
  'zh-CN': (others, names) => `另有 ${others} 个相同告警：${names}`,
};
const SEPARATOR: Readonly<Record<AlertLocale, string>> = { en: ', ', 'zh-CN': '、' };

/** Names are as long as people make them. */
const MAX_TEXT = 1000;

/** The sentence about the beginning or the end of an alert. */
export function textOf(
  kind: AlertKind,
  status: 'firing' | 'resolved',
  { name, detail }: Pick<AlertFacts, 'name' | 'detail'>,
  locale: AlertLocale,
): string {
  const values: Record<string, string | number> = { ...detail, name: name === '' ? INSTALLATION[locale] : name };
  const text = ALERTS[kind].text[locale][status].replace(/\{(\w+)\}/g, (_, word: string) => shown(values[word]));
  // A control character in a name must not begin a header or a line.
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').slice(0, MAX_TEXT);
}

function shown(value: string | number | undefined): string {
  if (typeof value === 'number') return String(Math.round(value * 10) / 10);
  return value ?? '?';
}

export function messageOf(
  delivery: Pick<
    LeasedDelivery,
    'id' | 'kind' | 'status' | 'facts' | 'occurredAt' | 'locale' | 'others' | 'otherFacts'
  >,
  publicUrl: string,
): AlertMessage {
  const { id, kind, status, facts, occurredAt, locale, others, otherFacts } = delivery;
  const { siteId, name: siteName, resourceId } = facts;
  const text = `${textOf(kind, status, facts, locale)}${othersText(others, otherFacts, locale)}`.slice(0, MAX_TEXT);
  const group = otherFacts.map(({ siteId: ofSite, name, resourceId: of }) => ({
    siteId: ofSite,
    siteName: name,
    resourceId: of,
  }));
  const url = new URL(siteId === null ? '/alerts' : `/sites/${encodeURIComponent(siteId)}`, publicUrl).href;
  const body = {
    id,
    siteId,
    siteName,
    kind,
    status,
    occurredAt: occurredAt.toISOString(),
    resourceId,
    text,
    url,
    others,
    group,
  };
  return { id, locale, text, url, body };
}

function othersText(others: number, facts: readonly AlertFacts[], locale: AlertLocale): string {
  if (others === 0) return '';
  const names = facts.map(({ name }) => (name === '' ? INSTALLATION[locale] : name)).join(SEPARATOR[locale]);
  const more = others > GROUP_NAMED ? '…' : locale === 'en' ? '.' : '。';
  return OTHERS[locale](others, `${names}${more}`).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ');
}

/** A message that says that messages arrive. */
export function testMessage(id: string, locale: AlertLocale, publicUrl: string, now: Date): AlertMessage {
  const text = TEST[locale];
  const url = new URL('/alerts', publicUrl).href;
  const of = {
    siteId: null,
    siteName: '',
    kind: 'test',
    status: 'firing',
    occurredAt: now.toISOString(),
    resourceId: '',
  };
  return { id, locale, text, url, body: { id, ...of, text, url } };
}
