// Numbers, times and durations by language. Everything shown to a person goes through here.
import { i18n, locale } from './i18n.ts';

const DIVISIONS: readonly [limit: number, seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, 'second'],
  [3600, 60, 'minute'],
  [86_400, 3600, 'hour'],
  [604_800, 86_400, 'day'],
  [2_629_800, 604_800, 'week'],
  [31_557_600, 2_629_800, 'month'],
  [Number.POSITIVE_INFINITY, 31_557_600, 'year'],
];

/** 12,345 */
export function formatNumber(value: number | bigint, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(locale(), options).format(value);
}

/** 12.3 kB, by thousands as disks and networks count. */
export function formatBytes(bytes: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'petabyte'] as const;
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const maximumFractionDigits = unit === 0 || value >= 100 ? 0 : 1;
  return formatNumber(value, { style: 'unit', unit: units[unit]!, unitDisplay: 'short', maximumFractionDigits });
}

/** Date and time of day in the browser's zone. */
export function formatTime(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(iso));
}

/** The day in the browser's zone. */
export function formatDay(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: 'medium' }).format(new Date(iso));
}

/** The time of day in the browser's zone, to the minute. */
export function formatClock(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { timeStyle: 'short' }).format(new Date(iso));
}

const DAY: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short', day: 'numeric', timeZone: 'UTC' };

/** Date and time of day in UTC, which it says: for what is counted by days of UTC. */
export function formatUtc(milliseconds: number, seconds = false): string {
  const clock: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(seconds ? { second: '2-digit' } : {}),
    timeZoneName: 'short',
  };
  return new Intl.DateTimeFormat(locale(), { ...DAY, ...clock }).format(milliseconds);
}

/** The day in UTC. */
export function formatUtcDay(milliseconds: number): string {
  return new Intl.DateTimeFormat(locale(), DAY).format(milliseconds);
}

/** "Nov 27, 14:00 – 15:30", in milliseconds: in the browser's zone, or in UTC. */
export function formatRange(from: number, to: number, utc: boolean): string {
  const { year: _, ...day } = DAY;
  const clock: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  const zone = utc ? 'UTC' : undefined;
  return new Intl.DateTimeFormat(locale(), { ...day, ...clock, timeZone: zone }).formatRange(from, to);
}

/** "3 minutes ago". `now` in milliseconds: `useClock` where it is shown, so that it stays true. */
export function formatAgo(iso: string, now: number): string {
  const seconds = (new Date(iso).getTime() - now) / 1000;
  const [, divisor, unit] = DIVISIONS.find(([limit]) => Math.abs(seconds) < limit)!;
  return new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' }).format(Math.trunc(seconds / divisor), unit);
}

/** "1 h 30 min", "45 s", "140 ms": the two largest units. */
export function formatDuration(milliseconds: number): string {
  const unit = (value: number, name: string) =>
    formatNumber(value, { style: 'unit', unit: name, unitDisplay: 'short', maximumFractionDigits: 1 });
  if (milliseconds < 1000) return unit(Math.round(milliseconds), 'millisecond');
  const seconds = milliseconds / 1000;
  if (seconds < 60) return unit(seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds), 'second');
  const parts: string[] = [];
  let rest = Math.round(seconds);
  for (const [size, name] of [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ] as const) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(unit(count, name));
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** A list in words: "a, b and c". */
export function formatList(items: readonly string[]): string {
  return new Intl.ListFormat(locale(), { type: 'conjunction' }).format(items);
}

/** Whether both the present language and its fallback have a message. */
export function hasMessage(key: string): boolean {
  return i18n.global.te(key, locale()) || i18n.global.te(key, 'en');
}
