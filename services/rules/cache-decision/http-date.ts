// Dates of headers (RFC 9110, section 5.6.7), to the letter: anything else is no date.
import type { Bytes } from '../evaluate/bytes.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';
import { linesOf, trimmed } from './header-lines.ts';

const DAYS = 'Mon|Tue|Wed|Thu|Fri|Sat|Sun';
const LONG_DAYS = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday';
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH = MONTHS.join('|');
const TIME = '(\\d\\d):(\\d\\d):(\\d\\d)';
const USUAL = new RegExp(`^(?:${DAYS}), (\\d\\d) (${MONTH}) (\\d{4}) ${TIME} GMT$`);
const OLDER = new RegExp(`^(?:${LONG_DAYS}), (\\d\\d)-(${MONTH})-(\\d\\d) ${TIME} GMT$`);
const OF_C = new RegExp(`^(?:${DAYS}) (${MONTH}) ([ \\d]\\d) ${TIME} (\\d{4})$`);
const AHEAD_YEARS = 50;

/** In seconds since 1970; null where the field is missing, doubled or not valid. `now` is in seconds. */
export function dateIn(headers: readonly HeaderLine[], name: string, now: number): number | null {
  const [line, ...more] = linesOf(headers, name) ?? [];
  return line === undefined || more.length > 0 ? null : httpDate(trimmed(line), now);
}

function httpDate(text: Bytes, now: number): number | null {
  const usual = USUAL.exec(text);
  if (usual) return secondsOf(Number(usual[3]), usual[2]!, usual[1]!, usual.slice(4));
  const older = OLDER.exec(text);
  if (older) return nearest(Number(older[3]), older[2]!, older[1]!, older.slice(4), now);
  const ofC = OF_C.exec(text);
  if (ofC && !ofC[2]!.startsWith('0')) return secondsOf(Number(ofC[6]), ofC[1]!, ofC[2]!, ofC.slice(3, 6));
  return null;
}

/** A year of two digits that would be more than 50 years ahead is of the past. */
function nearest(year: number, month: string, day: string, time: string[], now: number): number | null {
  const current = new Date(now * 1000);
  const full = current.getUTCFullYear() - (current.getUTCFullYear() % 100) + year;
  const date = secondsOf(full, month, day, time);
  const limit = new Date(now * 1000);
  limit.setUTCFullYear(limit.getUTCFullYear() + AHEAD_YEARS);
  return date !== null && date > limit.getTime() / 1000 ? secondsOf(full - 100, month, day, time) : date;
}

function secondsOf(year: number, month: string, day: string, time: readonly string[]): number | null {
  const [hour = 0, minute = 0, second = 0] = time.map(Number);
  if (hour > 23 || minute > 59 || second > 59) return null;
  const at = new Date(0);
  at.setUTCFullYear(year, MONTHS.indexOf(month), Number(day));
  if (at.getUTCDate() !== Number(day)) return null;
  return at.getTime() / 1000 + hour * 3600 + minute * 60 + second;
}
