// How sites challenge their visitors. Settings are saved complete, so that a later default changes no saved site; a
// site without a row has the defaults.
import type { Knex } from 'knex';
import { DEFAULT_PROTECTION, type ProtectionOfSite } from '../contract/resources/protection.ts';

export interface SiteProtectionRow {
  settings: ProtectionOfSite;
  updatedAt: Date;
}

/** Undefined when there is no such site. */
export async function readSiteProtection(sql: Knex, siteId: string): Promise<SiteProtectionRow | undefined> {
  const { rows } = await sql.raw<{ rows: { settings: Partial<ProtectionOfSite> | null; updatedAt: Date }[] }>(
    `select p.settings, coalesce(p.updated_at, s.created_at) as "updatedAt"
       from site s left join site_protection p on p.site_id = s.id where s.id = ?`,
    [siteId],
  );
  return rows[0] && { settings: { ...DEFAULT_PROTECTION, ...rows[0].settings }, updatedAt: rows[0].updatedAt };
}

export async function writeSiteProtection(
  sql: Knex,
  site: { id: string; clusterId: string },
  settings: ProtectionOfSite,
  updatedAt: Date,
): Promise<void> {
  await sql('site_protection')
    .insert({ site_id: site.id, cluster_id: site.clusterId, settings: JSON.stringify(settings), updated_at: updatedAt })
    .onConflict('site_id')
    .merge(['settings', 'updated_at']);
}

/** Whether a site of the cluster follows the template with its policy on. */
export async function hasFollowers(sql: Knex, clusterId: string): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: { followed: boolean }[] }>(
    'select exists (select from site_protection where cluster_id = ? and follows_template) as followed',
    [clusterId],
  );
  return rows[0]!.followed;
}

/** Clusters with such sites. */
export async function clustersWithFollowers(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { cluster_id: string }[] }>(
    'select distinct cluster_id from site_protection where follows_template',
  );
  return rows.map(({ cluster_id }) => cluster_id);
}

/** Sites that have Under Attack on by themselves. */
export async function countSitesUnderAttack(sql: Knex, clusterId: string | null): Promise<number> {
  const { rows } = await sql.raw<{ rows: { count: number }[] }>(
    'select count(*)::int as count from site_protection where under_attack and (?::text is null or cluster_id = ?)',
    [clusterId, clusterId],
  );
  return rows[0]!.count;
}
