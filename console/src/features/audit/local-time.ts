// Between the value of <input type="datetime-local"> and UTC. Empty stands for no time. Pure.
const MINUTE_MS = 60_000;

/** 2026-11-21T18:20 of the browser's zone. */
export function localTime(utc: string): string {
  const time = new Date(utc);
  if (utc === '' || Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

export function utcTime(local: string): string {
  const time = new Date(local);
  return local === '' || Number.isNaN(time.getTime()) ? '' : time.toISOString();
}
