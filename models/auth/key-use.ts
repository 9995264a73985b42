// When keys of the public API were last used.
import type { Knex } from 'knex';

export interface KeyUse {
  id: string;
  at: string;
}

/** Notes when keys were last used; an older time than the one stored changes nothing. */
export async function noteKeyUse(
  sql: Knex,
  table: 'access_key' | 'service_account_key',
  keys: readonly KeyUse[],
): Promise<void> {
  await sql.raw(
    `update ?? k set last_used_at = used.at
       from unnest(?::text[], ?::timestamptz[]) as used (id, at)
      where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at)`,
    [table, keys.map((key) => key.id), keys.map((key) => key.at)],
  );
}
