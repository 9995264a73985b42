// Times and sizes as people write them: "1h30m", "100 MiB". Exact: what is no whole number of the field's unit is no
// value, and what is shown is read again as the same. Pure.

/** What a number of the contract counts. */
export type Measure = 'milliseconds' | 'seconds' | 'bytes';

interface Unit {
  /** As it is shown; in both languages the same. */
  name: string;
  /** In the smallest unit of its kind. */
  size: bigint;
  /** Further ways to write it, in small letters. */
  also: readonly string[];
}

const TIMES: readonly Unit[] = [
  { name: 'd', size: 86_400_000n, also: ['day', 'days', '天', '日'] },
  { name: 'h', size: 3_600_000n, also: ['hr', 'hour', 'hours', '小时', '时'] },
  { name: 'min', size: 60_000n, also: ['m', 'mins', 'minute', 'minutes', '分', '分钟'] },
  { name: 's', size: 1000n, also: ['sec', 'secs', 'second', 'seconds', '秒'] },
  { name: 'ms', size: 1n, also: ['msec', 'millisecond', 'milliseconds', '毫秒'] },
];

/** Letters alone are powers of 1024, as servers read them; "MB" is a million bytes. */
const SIZES: readonly Unit[] = [
  { name: 'TiB', size: 1024n ** 4n, also: ['t'] },
  { name: 'TB', size: 1000n ** 4n, also: [] },
  { name: 'GiB', size: 1024n ** 3n, also: ['g'] },
  { name: 'GB', size: 1000n ** 3n, also: [] },
  { name: 'MiB', size: 1024n ** 2n, also: ['m'] },
  { name: 'MB', size: 1000n ** 2n, also: [] },
  { name: 'KiB', size: 1024n, also: ['k'] },
  { name: 'kB', size: 1000n, also: [] },
  { name: 'B', size: 1n, also: ['byte', 'bytes', '字节'] },
];

const MEASURES: Readonly<Record<Measure, { units: readonly Unit[]; own: string; size: bigint }>> = {
  milliseconds: { units: TIMES, own: 'ms', size: 1n },
  seconds: { units: TIMES, own: 's', size: 1000n },
  bytes: { units: SIZES, own: 'B', size: 1n },
};

/** Longer texts are no amounts; the work stays small, whatever is pasted. */
const LONGEST = 60;

/** The value of a text in the field's unit, which a number alone is in; null: it is none, or no whole number of them. */
export function readAmount(text: string, measure: Measure): number | null {
  const { units, own, size } = MEASURES[measure];
  const typed = text.trim().toLowerCase();
  if (typed === '' || typed.length > LONGEST) return null;
  const parts = [...typed.matchAll(/(\d+)(?:\.(\d+))?\s*(\p{L}*)\s*/gu)];
  if (parts.map(([whole]) => whole).join('') !== typed) return null;
  let sum = 0n;
  let scale = 1n;
  for (const [, whole = '', decimals = '', name = ''] of parts) {
    // A number without its unit says something only by itself.
    if (name === '' && parts.length > 1) return null;
    const unit = units.find((one) => one.name.toLowerCase() === (name || own.toLowerCase()) || one.also.includes(name));
    if (!unit) return null;
    const tens = 10n ** BigInt(decimals.length);
    sum = sum * tens + BigInt(whole + decimals) * unit.size * scale;
    scale *= tens;
  }
  const [divisor, value] = [scale * size, Number(sum / (scale * size))];
  return sum % divisor === 0n && Number.isSafeInteger(value) ? value : null;
}

/** A value of the field's unit as it is written, in as few parts as say it exactly: `1 h 30 min`, `100 MiB`. */
export function amountText(value: number, measure: Measure): string {
  const { units, own, size } = MEASURES[measure];
  if (!Number.isSafeInteger(value) || value <= 0) return String(value);
  let rest = BigInt(value) * size;
  if (measure === 'bytes') {
    const unit = units.find((one) => rest % one.size === 0n && (one.size === 1n || rest / one.size < 10_000n));
    return `${rest / (unit?.size ?? 1n)} ${unit?.name ?? own}`;
  }
  const parts: string[] = [];
  for (const unit of units) {
    if (rest >= unit.size) parts.push(`${rest / unit.size} ${unit.name}`);
    rest %= unit.size;
  }
  // More than two parts are harder to read than the number.
  return parts.length > 2 ? `${value} ${own}` : parts.join(' ');
}
