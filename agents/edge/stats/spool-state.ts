// What the spool knows beside its batches, in one file that is replaced as a whole.
import type { SpoolFiles } from './spool-files.ts';

export const STATE_FILE = 'state.json';
/** More than these are joined: what is missing in between is then said to be missing too. */
const MAX_GAPS = 50;

/** From and to, Unix seconds. */
export type Span = readonly [number, number];

export interface SpoolState {
  /** Added to a batch's own number it is the console's. */
  shift: bigint;
  /** No batch from this one on was ever sent; undefined once the console has said what it has. */
  unsentFrom: bigint | undefined;
  /** Start of the first minute given up for want of room, and until when that holds the watermark, Unix seconds; 0 = nothing. */
  lostFrom: number;
  lostUntil: number;
  /** What is missing and no batch says yet. */
  gaps: readonly Span[];
}

export const NEW_STATE: SpoolState = { shift: 0n, unsentFrom: undefined, lostFrom: 0, lostUntil: 0, gaps: [] };

/** Undefined when there is none that makes sense. */
export function readState(files: SpoolFiles): SpoolState | undefined {
  try {
    const value = JSON.parse(Buffer.from(files.read(STATE_FILE)).toString('utf8')) as Record<string, unknown>;
    const { shift, unsentFrom, lostFrom, lostUntil, gaps } = value;
    if (!isDecimal(shift) || !(unsentFrom === null || isDecimal(unsentFrom))) return undefined;
    if (!isTime(lostFrom) || !isTime(lostUntil) || !Array.isArray(gaps) || !gaps.every(isSpan)) return undefined;
    return {
      shift: BigInt(shift),
      unsentFrom: unsentFrom === null ? undefined : BigInt(unsentFrom),
      lostFrom,
      lostUntil,
      gaps: joined(gaps),
    };
  } catch {
    return undefined;
  }
}

/** Throws when the disk refuses. */
export function writeState(files: SpoolFiles, state: SpoolState): void {
  const { shift, unsentFrom, lostFrom, lostUntil, gaps } = state;
  const text = { shift: String(shift), unsentFrom: unsentFrom?.toString() ?? null, lostFrom, lostUntil, gaps };
  files.write(STATE_FILE, `${JSON.stringify(text)}\n`);
}

/** The same times in order, what touches as one. */
export function joined(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const [from, to] of spans.filter(([from, to]) => from < to).toSorted((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && from <= last[1]) result[result.length - 1] = [last[0], Math.max(last[1], to)];
    else result.push([from, to]);
  }
  const over = result.length - MAX_GAPS;
  if (over > 0) result.splice(0, over + 1, [result[0]![0], result[over]![1]]);
  return result;
}

function isDecimal(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,19}$/.test(value);
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isSpan(value: unknown): value is Span {
  return Array.isArray(value) && value.length === 2 && value.every(isTime);
}
