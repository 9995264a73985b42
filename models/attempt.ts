// Attempts to prove who one is, counted per client address in the database, so that every console counts the same.
import { isIPv6 } from 'node:net';
import type { Knex } from 'knex';
import { fail } from '../contract/errors.ts';
import type { Runtime } from '../mixins/runtime.ts';

const WINDOW = "interval '10 seconds'";
const ATTEMPTS = 3;

/** In production at most 3 attempts of an address in 10 s: SIGN_IN_RATE_LIMITED. Elsewhere everything passes. */
export async function admitAttempt({ env, pools }: Runtime, ip: string | null): Promise<void> {
  if (!env.production) return;
  const { count, seconds } = await countAttempt(pools.api, countedAddress(ip));
  if (count > ATTEMPTS) fail('SIGN_IN_RATE_LIMITED', { retryAfterSeconds: Math.max(1, seconds) });
}

/**
 * Counts an attempt of an address; answers which one it is in the running window of 10 s, and the seconds until the
 * next window.
 */
async function countAttempt(sql: Knex, address: string): Promise<{ count: number; seconds: number }> {
  await sql.raw("delete from sign_in_attempt where window_started_at < now() - interval '1 minute'");
  const { rows } = await sql.raw(
    `insert into sign_in_attempt as a (address, count) values (?, 1)
     on conflict (address) do update set
       count = case when a.window_started_at < now() - ${WINDOW} then 1 else least(a.count + 1, 1000000) end,
       window_started_at = case when a.window_started_at < now() - ${WINDOW} then now() else a.window_started_at end
     returning count, ceil(extract(epoch from window_started_at + ${WINDOW} - now()))::int as seconds`,
    [address],
  );
  return rows[0] as { count: number; seconds: number };
}

/** Whoever has an IPv6 address usually has its whole /64. */
function countedAddress(ip: string | null): string {
  if (ip === null || !isIPv6(ip)) return ip ?? 'unknown';
  const [head = '', tail] = ip.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  const groups = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(':')}::/64`;
}
