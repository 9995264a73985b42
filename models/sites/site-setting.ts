// Settings of sites that are saved complete in a table of their own, so that a later default changes no saved site. A site
// without a row has the defaults.
import type { Knex } from 'knex';

export interface SiteSetting<S> {
  settings: S;
  /** Null while nothing was saved. */
  updatedAt: Date | null;
}

export type SettingTable = 'site_pages' | 'site_maintenance' | 'site_logs';

/** Undefined when there is no such site. Whoever changes it holds the site's lock. */
export async function readSiteSetting<S>(
  sql: Knex,
  table: SettingTable,
  siteId: string,
  defaults: S,
): Promise<SiteSetting<S> | undefined> {
  const { rows } = await sql.raw<{ rows: { settings: Partial<S> | null; updatedAt: Date | null }[] }>(
    `select t.settings, t.updated_at as "updatedAt" from site s left join ${table} t on t.site_id = s.id where s.id = ?`,
    [siteId],
  );
  const [row] = rows;
  return row && { settings: { ...defaults, ...row.settings }, updatedAt: row.updatedAt };
}

/** Saves the settings of a site whose lock is held. */
export async function writeSiteSetting<S>(
  sql: Knex,
  table: SettingTable,
  site: { id: string; clusterId: string },
  { settings, updatedAt }: { settings: S; updatedAt: Date },
): Promise<void> {
  await sql.raw(
    `insert into ${table} (site_id, cluster_id, settings, updated_at) values (?, ?, ?, ?)
     on conflict (site_id) do update set settings = excluded.settings, updated_at = excluded.updated_at`,
    [site.id, site.clusterId, JSON.stringify(settings), updatedAt],
  );
}
