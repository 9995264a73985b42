import type { Knex } from 'knex';

const WINDOW = "interval '10 seconds'";

/**
 * Counts an attempt of an address; answers which one it is in the running window of 10 s, and the seconds until the
 * next window.
 */
export async function countSignInAttempt(sql: Knex, address: string): Promise<{ count: number; seconds: number }> {
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
