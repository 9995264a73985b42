// What a rule does, in words: for lists, differences and conflicts.
import { amountText } from '@/shared/controls/amount.ts';
import { formatDuration, formatList, formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { ActionOf, RuleAction } from './rule.ts';

/** "Redirects to /new with 301." */
export function actionText(action: RuleAction): string {
  const { t } = i18n.global;
  switch (action.kind) {
    case 'block':
      return t('rules.does.block', { status: String(action.statusCode) });
    case 'log':
      return t('rules.does.log');
    case 'allow':
      return t('rules.does.allow');
    case 'challenge':
      return t('rules.does.challenge', { type: t(`rules.challenge.${action.type}`) });
    case 'redirect':
      return t('rules.does.redirect', { target: action.target || action.value, status: String(action.statusCode) });
    case 'rewrite':
      return t('rules.does.rewrite', { target: action.target || action.value });
    case 'request_header':
    case 'response_header':
      return headerText(action);
    case 'config':
      return t('rules.does.config', { what: formatList(configTexts(action)) });
    case 'rate_limit':
      return t('rules.does.rateLimit', {
        limit: formatNumber(action.limit),
        window: formatDuration(action.windowSeconds * 1000),
        key: keyText(action.key),
        status: String(action.statusCode),
      });
    case 'origin':
      return t('rules.does.origin', { what: formatList(originTexts(action)) });
    case 'compression':
      return action.algorithms.length === 0
        ? t('rules.does.noCompression')
        : t('rules.does.compression', { algorithms: codingsText(action.algorithms) });
  }
}

function headerText(action: ActionOf<'request_header'> | ActionOf<'response_header'>): string {
  const { t } = i18n.global;
  const words = { header: action.header, value: action.expression || action.value };
  if (action.remove) return t(`rules.does.${action.kind}.remove`, words);
  return 'append' in action && action.append
    ? t('rules.does.response_header.append', words)
    : t(`rules.does.${action.kind}.set`, words);
}

/** What requests are counted by, within a sentence. */
function keyText(key: string): string {
  const { t } = i18n.global;
  const known = { 'ip.src': 'address', 'http.host': 'host', 'tls.ja4': 'ja4' }[key] ?? 'header';
  return t(`rules.by.${known}`, { name: key.slice('http.request.headers.'.length) });
}

/** "zstd, br, gzip", the first preferred. */
export function codingsText(algorithms: readonly string[]): string {
  return algorithms.join(i18n.global.t('rules.editor.comma'));
}

/** Each setting that is overridden, with its value. */
export function configTexts({ kind: _kind, ...settings }: ActionOf<'config'>): string[] {
  const { t } = i18n.global;
  return Object.entries(settings).map(([name, value]) =>
    t('rules.does.setting', { name: t(`rules.config.${name}`), value: settingText(name, value) }),
  );
}

/** A setting's value in words. */
function settingText(name: string, value: string | number | boolean): string {
  const { t } = i18n.global;
  if (typeof value === 'boolean') return value ? t('rules.form.on') : t('rules.form.off');
  if (typeof value === 'string') return t(`rules.challenge.${value}`);
  if (name === 'requestBodyLimit') return value === 0 ? t('rules.config.unlimited') : amountText(value, 'bytes');
  return name === 'logSampleRate'
    ? formatNumber(value / 10_000, { style: 'percent', maximumFractionDigits: 2 })
    : amountText(value, 'milliseconds');
}

function originTexts({ originGroup, hostHeader, sni, port }: ActionOf<'origin'>): string[] {
  const { t } = i18n.global;
  return [
    ...(originGroup ? [t('rules.does.originGroup', { group: originGroup })] : []),
    ...(hostHeader ? [t('rules.does.originHost', { host: hostHeader })] : []),
    ...(sni ? [t('rules.does.originSni', { sni })] : []),
    ...(port ? [t('rules.does.originPort', { port: String(port) })] : []),
  ];
}
