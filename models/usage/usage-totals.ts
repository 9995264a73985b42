// Sums of all sites' usage by window, hour and day, kept beside those of each site and written with them.
import type { Knex } from 'knex';

export const WINDOW_SECONDS = 300;
export const HOUR_SECONDS = 3600;
export const DAY_SECONDS = 86_400;

const SUMS = 'sum(requests) as requests, sum(bytes_sent) as bytes_sent, sum(bytes_received) as bytes_received';
const DIFFERS = `(t.requests, t.bytes_sent, t.bytes_received)
  is distinct from (excluded.requests, excluded.bytes_sent, excluded.bytes_received)`;

/**
 * Sums windows again of which a record was made or revised, and the hours and days they are in. In the transaction that
 * wrote the records, so that nobody sees the one without the other.
 */
export async function writeTotals(trx: Knex, changed: readonly Date[]): Promise<void> {
  await write(trx, WINDOW_SECONDS, 'usage_record where window_start = c.start', changed);
  await write(trx, HOUR_SECONDS, within(WINDOW_SECONDS, HOUR_SECONDS), changed);
  await write(trx, DAY_SECONDS, within(HOUR_SECONDS, DAY_SECONDS), changed);
}

function within(parts: number, seconds: number): string {
  return `usage_total where seconds = ${parts} and starts_at >= c.start and starts_at < c.start + ${interval(seconds)}`;
}

async function write(trx: Knex, seconds: number, source: string, changed: readonly Date[]): Promise<void> {
  await trx.raw(
    `insert into usage_total as t (seconds, starts_at, requests, bytes_sent, bytes_received)
      select ${seconds}, c.start, s.* from (
          select distinct ${startOf(seconds, 'w')} as start from unnest(?::timestamptz[]) as w) c
        cross join lateral (select ${SUMS} from ${source}) s
       where s.requests is not null
      on conflict (seconds, starts_at) do update set requests = excluded.requests, bytes_sent = excluded.bytes_sent,
        bytes_received = excluded.bytes_received
        where ${DIFFERS}`,
    [changed] as never,
  );
}

/** Start of the window, hour or day that a column's time is in; days are those of UTC. */
export function startOf(seconds: number, column: string): string {
  return `date_bin(${interval(seconds)}, ${column}, timestamptz '2000-01-01 00:00:00+00')`;
}

function interval(seconds: number): string {
  return `interval '${seconds} seconds'`;
}
