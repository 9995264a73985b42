// How sites challenge their visitors. Settings are saved complete, so that a later default changes no saved site; a
// site without a row has the defaults.
import type { Knex } from 'knex';
import { DEFAULT_PROTECTION, type ProtectionOfSite } from '../../contract/resources/protection.ts';
import type { ProtectionSettings } from '../../contract/resources/protection-settings.ts';
import type { CcThresholds } from '../../contract/scalars/cc-thresholds.ts';
import { MAX_SUBJECTS } from '../alerts/alert.ts';
import { prepared } from '../db/named-statement.ts';
import { ccTemplateOf, protectionSettingsOf } from './protection-setting.ts';

export interface SiteProtection {
  settings: ProtectionOfSite;
  updatedAt: Date;
}

/** A site's protection, and what applies to all sites. */
export interface SiteProtectionView extends SiteProtection {
  id: string;
  clusterId: string;
  name: string;
  ccTemplate: CcThresholds;
  platform: ProtectionSettings;
}

interface ViewRow {
  id: string;
  cluster_id: string;
  name: string;
  settings: Partial<ProtectionOfSite> | null;
  updated_at: Date;
  cc_template: Partial<CcThresholds> | null;
  platform: Partial<ProtectionSettings> | null;
}

/** Undefined when there is no such site. */
export async function readSiteProtection(sql: Knex, siteId: string): Promise<SiteProtectionView | undefined> {
  return view(sql, siteId, false);
}

/** As {@link readSiteProtection}, with the site locked as lockSite does (site.ts). */
export async function lockSiteProtection(sql: Knex, siteId: string): Promise<SiteProtectionView | undefined> {
  return view(sql, siteId, true);
}

async function view(sql: Knex, siteId: string, lock: boolean): Promise<SiteProtectionView | undefined> {
  const text = 'select * from site_protection_view(?, ?)';
  const [row] = await prepared<ViewRow>(sql, 'site-protection-view', { text, bindings: [siteId, lock] });
  return (
    row && {
      id: row.id,
      clusterId: row.cluster_id,
      name: row.name,
      settings: { ...DEFAULT_PROTECTION, ...row.settings },
      updatedAt: row.updated_at,
      ccTemplate: ccTemplateOf(row.cc_template),
      platform: protectionSettingsOf(row.platform),
    }
  );
}

export async function writeSiteProtection(
  sql: Knex,
  site: { id: string; clusterId: string },
  { settings, updatedAt }: SiteProtection,
): Promise<void> {
  await prepared(sql, 'write-site-protection', {
    text: `insert into site_protection (site_id, cluster_id, settings, updated_at) values (?, ?, ?, ?)
      on conflict (site_id) do update set settings = excluded.settings, updated_at = excluded.updated_at`,
    bindings: [site.id, site.clusterId, JSON.stringify(settings), updatedAt],
  });
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

/** The same with the ids of the sites, one more than `MAX_SUBJECTS` at most. */
export async function sitesUnderAttack(
  sql: Knex,
  clusterId: string | null,
): Promise<{ count: number; subjects: string[] }> {
  const [count, { rows }] = await Promise.all([
    countSitesUnderAttack(sql, clusterId),
    sql.raw<{ rows: { id: string }[] }>(
      `select site_id as id from site_protection where under_attack and (?::text is null or cluster_id = ?)
        order by site_id limit ?`,
      [clusterId, clusterId, MAX_SUBJECTS + 1] as never,
    ),
  ]);
  return { count, subjects: rows.map(({ id }) => id) };
}
