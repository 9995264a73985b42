// Fields and values of the API in words, for what was changed from what to what.
import { formatBytes, formatDuration, formatList, formatNumber, hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

/** "Origins 1 › Address" for origins.0.address; `shared/contract` has the words. */
export function fieldText(path: string): string {
  const parts: string[] = [];
  for (const name of path.split('.')) {
    if (/^\d+$/.test(name) && parts.length > 0) parts.push(`${parts.pop()} ${formatNumber(Number(name) + 1)}`);
    else if (name !== 'settings') parts.push(wordOf(name));
  }
  return parts.join(' › ');
}

/** What a change touched: a list of fields in words; empty where it does not say. */
export function fieldsText(changed: unknown): string {
  if (!Array.isArray(changed)) return '';
  return formatList([...new Set(changed.filter((part) => typeof part === 'string').map(fieldText))]);
}

/** A value of a field: what a unit is known of has it. */
export function fieldValueText(path: string, value: unknown): string {
  const { t } = i18n.global;
  if (typeof value === 'boolean') return value ? t('shared.conflict.on') : t('shared.conflict.off');
  if (value === null || value === undefined || value === '') return t('shared.conflict.empty');
  if (typeof value === 'number') return numberText(path, value);
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) {
    if (value.length === 0) return t('shared.conflict.empty');
    return formatList(value.map((each) => fieldValueText(path, each)));
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return t('shared.conflict.empty');
  return formatList(
    entries.map(([name, each]) => t('shared.chart.at', { time: fieldText(name), value: fieldValueText(name, each) })),
  );
}

function numberText(path: string, value: number): string {
  if (/(Seconds|MaxAge)$/.test(path)) return formatDuration(value * 1000);
  if (/Ms$/.test(path)) return formatDuration(value);
  if (/(BodyLimit|MinLength|MaxLength)$/.test(path)) return formatBytes(value);
  return formatNumber(value, { useGrouping: false });
}

/** A field without words is still no riddle: "hstsMaxAge" as "hsts max age". */
function wordOf(name: string): string {
  const key = `contract.field.${name}`;
  if (hasMessage(key)) return i18n.global.t(`contract.field.${name}`);
  return name.replaceAll(/([a-z0-9])([A-Z])/g, (_all, before, after) => `${before} ${after.toLowerCase()}`);
}
