// The console's time. A browser's clock may be an hour off, and "expires in" must still be true.
const WORTH_MENDING_MS = 5000;
let offsetMs = 0;

/** Learns from an answer's Date header, which is good to a second. */
export function learnServerTime(date: string | null): void {
  const then = Date.parse(date ?? '');
  if (Number.isNaN(then)) return;
  const offset = then - Date.now();
  offsetMs = Math.abs(offset) > WORTH_MENDING_MS ? offset : 0;
}

/** Now, by the console's clock. */
export function serverNow(): number {
  return Date.now() + offsetMs;
}
