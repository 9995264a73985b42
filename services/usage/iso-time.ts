// Times as texts, for pages of thousands: Date took half of the time of a page to write them.
const MINUTE_MS = 60_000;
const TWO = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));
const THREE = Array.from({ length: 1000 }, (_, value) => String(value).padStart(3, '0'));
const MOST_MINUTES = 5_000;

/** Up to the minute, by its number: records of one window share those of its ends, and those of one roll-up the last. */
const minutes = new Map<number, string>();

/** The same text as of Date.toISOString, of whole milliseconds in years of four digits. */
export function isoTime(millis: number): string {
  const minute = Math.floor(millis / MINUTE_MS);
  let text = minutes.get(minute);
  if (text === undefined) {
    if (minutes.size >= MOST_MINUTES) minutes.clear();
    text = new Date(minute * MINUTE_MS).toISOString().slice(0, 17);
    minutes.set(minute, text);
  }
  const rest = millis - minute * MINUTE_MS;
  const seconds = Math.floor(rest / 1000);
  return `${text}${TWO[seconds]}.${THREE[rest - seconds * 1000]}Z`;
}
