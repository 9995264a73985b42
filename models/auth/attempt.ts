// Attempts to prove who one is, counted per kind and client address in the database, so that every console counts the
// same.
import type { Knex } from 'knex';
import type { AttemptKind } from '../../contract/auth-endpoints.ts';
import { fail } from '../../contract/errors.ts';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const WINDOW = "interval '10 seconds'";
const ATTEMPTS = 3;

/** In production at most 3 attempts of a kind from an address in 10 s: SIGN_IN_RATE_LIMITED. Elsewhere all pass. */
export async function admitAttempt({ env, pools }: Runtime, kind: AttemptKind, ip: string | null): Promise<void> {
  if (!env.production) return;
  const { count, seconds } = await countAttempt(pools.api, kind, countedAddress(ip));
  if (count > ATTEMPTS) fail('SIGN_IN_RATE_LIMITED', { retryAfterSeconds: Math.max(1, seconds) });
}

/** Answers which attempt it is in the running window of 10 s, and the seconds until the next window. */
async function countAttempt(
  sql: Knex,
  kind: AttemptKind,
  address: string,
): Promise<{ count: number; seconds: number }> {
  await sql.raw("delete from attempt where window_started_at < now() - interval '1 minute'");
  const { rows } = await sql.raw(
    `insert into attempt as a (kind, address, count) values (?, ?, 1)
     on conflict (kind, address) do update set
       count = case when a.window_started_at < now() - ${WINDOW} then 1 else least(a.count + 1, 1000000) end,
       window_started_at = case when a.window_started_at < now() - ${WINDOW} then now() else a.window_started_at end
     returning count, ceil(extract(epoch from window_started_at + ${WINDOW} - now()))::int as seconds`,
    [kind, address],
  );
  return rows[0] as { count: number; seconds: number };
}
