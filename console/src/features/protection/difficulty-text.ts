import { formatDuration, formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { expectedMs } from './difficulty.ts';

const NOTICED_MS = 100;

function deviceText(milliseconds: number): string {
  if (milliseconds < NOTICED_MS)
    return i18n.global.t('protection.difficulty.unnoticed', { time: formatDuration(NOTICED_MS) });
  return i18n.global.t('protection.difficulty.about', {
    time: formatDuration(milliseconds < 1000 ? Math.round(milliseconds / 100) * 100 : milliseconds),
  });
}

/** "On a phone about 2.1 s, on a desktop about 0.3 s". */
export function difficultyText(bits: number): string {
  return i18n.global.t('protection.difficulty.both', {
    phone: deviceText(expectedMs(bits, 'phone')),
    desktop: deviceText(expectedMs(bits, 'desktop')),
  });
}

export function bitsText(bits: number): string {
  return i18n.global.t('protection.difficulty.bits', { count: formatNumber(bits) }, bits);
}
