// What usage counts, and how it is said. Exact numbers are decimal texts, which may be larger than numbers can be.
import { formatBytes, formatNumber } from '@/shared/i18n/format.ts';

export const AMOUNTS = ['bytesSent', 'bytesReceived', 'requests'] as const;
export type Amount = (typeof AMOUNTS)[number];

export const isAmount = (text: string): text is Amount => (AMOUNTS as readonly string[]).includes(text);

/** 12.3 GB, or 12,345 requests, of which there are no parts. */
export function amountText(amount: Amount, value: number | string): string {
  return amount === 'requests' ? exactText(value) : formatBytes(Number(value));
}

/** 12,345,678,901, however large. */
export function exactText(value: number | string): string {
  return formatNumber(typeof value === 'string' ? BigInt(value) : value);
}
