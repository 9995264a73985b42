import type { Knex } from 'knex';

/** Sites whose sampling was to end by a time, those that wait longest first. */
export async function sitesSampledUntil(sql: Knex, now: Date, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `select site_id as id from site_logs where settings->>'sampleUntil' <= ? order by settings->>'sampleUntil' limit ?`,
    [now.toISOString(), limit],
  );
  return rows.map(({ id }) => id);
}
