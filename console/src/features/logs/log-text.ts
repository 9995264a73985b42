// Words of rows and filters.
import { countryText } from '@/shared/controls/countries.ts';
import { formatDuration, hasMessage } from '@/shared/i18n/format.ts';
import { i18n, locale } from '@/shared/i18n/i18n.ts';
import type { Tone } from '@/shared/state/tone.ts';
import type { FilterName } from './filters.ts';

/** What a value of a filter is called. */
export function valueText(name: FilterName, value: string): string {
  const { t } = i18n.global;
  switch (name) {
    case 'statusClass':
      return `${value}xx`;
    case 'blockReason':
      return t(`logs.reason.${value}`);
    case 'cacheStatus':
      return t(`logs.cache.${value}`);
    case 'country':
      return countryText(value, locale());
    case 'asn':
      return `AS${value}`;
    case 'minDuration':
      return formatDuration(Number(value));
    default:
      return value;
  }
}

/** By the first digit of a status; 0: no response began. */
const TONES: Readonly<Record<string, Tone>> = { 2: 'green', 3: 'grey', 4: 'amber', 5: 'red' };

export function statusTone(status: number): Tone {
  return TONES[String(status)[0]!] ?? 'grey';
}

/** Why the edge itself made a response; the code where it has no words here. */
export function codeText(code: string): string {
  const key = `logs.code.${code}`;
  return hasMessage(key) ? i18n.global.t(key) : code;
}
