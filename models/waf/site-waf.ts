// How requests of sites are inspected. Settings are saved complete, so that a later default changes no saved site; a site
// without a row has the defaults.
import type { Knex } from 'knex';
import { DEFAULT_WAF, type WafOfSite } from '../../contract/resources/site-waf.ts';

export interface SiteWaf {
  settings: WafOfSite;
  /** Null while nothing was saved. */
  updatedAt: Date | null;
}

/** Undefined when there is no such site. Whoever changes it holds the site's lock. */
export async function readSiteWaf(sql: Knex, siteId: string): Promise<SiteWaf | undefined> {
  const { rows } = await sql.raw<{ rows: { settings: Partial<WafOfSite> | null; updatedAt: Date | null }[] }>(
    `select w.settings, w.updated_at as "updatedAt" from site s left join site_waf w on w.site_id = s.id where s.id = ?`,
    [siteId],
  );
  const [row] = rows;
  return row && { settings: { ...DEFAULT_WAF, ...row.settings }, updatedAt: row.updatedAt };
}

/** Saves the settings of a site whose lock is held. */
export async function writeSiteWaf(
  sql: Knex,
  site: { id: string; clusterId: string },
  { settings, updatedAt }: { settings: WafOfSite; updatedAt: Date },
): Promise<void> {
  await sql.raw(
    `insert into site_waf as w (site_id, cluster_id, settings, updated_at, mode_since) values (?, ?, ?, ?, ?)
     on conflict (site_id) do update set settings = excluded.settings, updated_at = excluded.updated_at,
       mode_since = case when w.settings -> 'mode' = excluded.settings -> 'mode' then w.mode_since
         else excluded.mode_since end`,
    [site.id, site.clusterId, JSON.stringify(settings), updatedAt, updatedAt],
  );
}
