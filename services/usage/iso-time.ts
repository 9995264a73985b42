// Times as texts, for pages of thousands: Date took half of the time of a page to write them.
const DAY_MS = 86_400_000;
const TWO = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));
const THREE = Array.from({ length: 1000 }, (_, value) => String(value).padStart(3, '0'));

let lastDay = Number.NaN;
let date = '';

/** The same text as of Date.toISOString, of whole milliseconds in years of four digits. */
export function isoTime(millis: number): string {
  const day = Math.floor(millis / DAY_MS);
  if (day !== lastDay) {
    date = new Date(day * DAY_MS).toISOString().slice(0, 11);
    lastDay = day;
  }
  const rest = millis - day * DAY_MS;
  const seconds = Math.floor(rest / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${date}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${THREE[rest % 1000]}Z`;
}
