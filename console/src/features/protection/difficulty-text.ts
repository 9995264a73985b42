import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { expectedSeconds } from './difficulty.ts';

const NOTICED = 0.1;

function secondsText(seconds: number): string {
  const { t } = i18n.global;
  const shown = formatNumber(Math.max(seconds, NOTICED), {
    style: 'unit',
    unit: 'second',
    unitDisplay: 'narrow',
    maximumFractionDigits: seconds < 10 ? 1 : 0,
  });
  return seconds < NOTICED
    ? t('protection.difficulty.unnoticed', { time: shown })
    : t('protection.difficulty.about', { time: shown });
}

/** "Takes about 2.1 s on a phone, about 0.3 s on a desktop". */
export function difficultyText(bits: number): string {
  return i18n.global.t('protection.difficulty.both', {
    phone: secondsText(expectedSeconds(bits, 'phone')),
    desktop: secondsText(expectedSeconds(bits, 'desktop')),
  });
}

export function bitsText(bits: number): string {
  return i18n.global.t('protection.difficulty.bits', { count: formatNumber(bits) }, bits);
}
