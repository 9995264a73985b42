// HTTPS and compression of sites. Settings are saved complete, so that a later default changes no saved site; a site
// without a row has the defaults.
import type { Knex } from 'knex';
import {
  type CompressionSettings,
  DEFAULT_COMPRESSION,
  DEFAULT_HTTPS,
  type HttpsSettings,
} from '../../contract/resources/site-https.ts';
import { uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import type { Domain } from '../../contract/scalars/domain.ts';
import { certificateIds } from './site-https.entry.ts';

const SITES_PER_PAGE = 1000;

export interface SiteHttps {
  https: HttpsSettings;
  compression: CompressionSettings;
  /** The site's creation while nothing was saved. */
  updatedAt: Date;
}

/** Undefined when there is no such site. Whoever changes it holds the site's lock. */
export async function readSiteHttps(sql: Knex, siteId: string): Promise<SiteHttps | undefined> {
  const { rows } = await sql.raw<{
    rows: {
      https: Partial<HttpsSettings> | null;
      compression: Partial<CompressionSettings> | null;
      updated_at: Date;
    }[];
  }>(
    `select h.https, h.compression, coalesce(h.updated_at, s.created_at) as updated_at
       from site s left join site_https h on h.site_id = s.id where s.id = ?`,
    [siteId],
  );
  const [row] = rows;
  return (
    row && {
      https: { ...DEFAULT_HTTPS, ...row.https },
      compression: { ...DEFAULT_COMPRESSION, ...row.compression },
      updatedAt: row.updated_at,
    }
  );
}

/** Saves the settings of a site whose lock is held. Certificates that are gone violate a constraint. */
export async function writeSiteHttps(
  sql: Knex,
  site: { id: string; clusterId: string },
  { https, compression, updatedAt }: SiteHttps,
): Promise<void> {
  await sql.raw(
    `insert into site_https (site_id, cluster_id, https, compression, updated_at) values (?, ?, ?, ?, ?)
     on conflict (site_id) do update
       set https = excluded.https, compression = excluded.compression, updated_at = excluded.updated_at`,
    [site.id, site.clusterId, JSON.stringify(https), JSON.stringify(compression), updatedAt],
  );
  await sql.raw('delete from site_certificate where site_id = ?', [site.id]);
  await sql.raw(
    `insert into site_certificate (site_id, position, certificate_id)
     select ?, c.position - 1, c.id from unnest(?::text[]) with ordinality c(id, position)`,
    [site.id, certificateIds(https) as never],
  );
}

/**
 * Domains that sites would lose if the certificate had other names: those that it covers and none of their other
 * certificates does. Sites are read in pages and names once each, however many sites there are.
 */
export async function lostDomains(sql: Knex, certificateId: string, next: readonly string[]): Promise<Domain[]> {
  const names = new Map<string, ReadonlySet<string>>();
  await readNames(sql, [certificateId], names);
  const given = new Set(next);
  const lost: Domain[] = [];
  let after = '';
  for (;;) {
    const { rows } = await sql.raw<{ rows: { siteId: string; domains: Domain[] | null; others: string[] }[] }>(
      `select u.site_id as "siteId",
           (select jsonb_agg(jsonb_build_object('form', form, 'name', name) order by position)
              from site_domain where site_id = u.site_id) as domains,
           array(select o.certificate_id from site_certificate o
              where o.site_id = u.site_id and o.certificate_id <> u.certificate_id) as others
         from site_certificate u where u.certificate_id = ? and u.site_id > ? order by u.site_id limit ?`,
      [certificateId, after, SITES_PER_PAGE],
    );
    if (rows.length === 0) return lost;
    const unread = rows.flatMap(({ others }) => others).filter((id) => !names.has(id));
    if (unread.length > 0) await readNames(sql, [...new Set(unread)], names);
    for (const { domains, others } of rows) {
      const left = [given, ...others.map((id) => names.get(id)!)].reduce<Domain[]>(uncoveredDomains, domains ?? []);
      const never = new Set(uncoveredDomains(left, names.get(certificateId)!));
      lost.push(...left.filter((domain) => !never.has(domain)));
    }
    after = rows.at(-1)!.siteId;
  }
}

/** Adds the names that the certificates cover: none of one that was not issued. */
async function readNames(sql: Knex, ids: readonly string[], names: Map<string, ReadonlySet<string>>): Promise<void> {
  const { rows } = await sql.raw<{ rows: { id: string; names: string[]; issued: boolean }[] }>(
    'select id, names, fingerprint is not null as issued from certificate where id = any(?)',
    [ids as never],
  );
  for (const { id, names: own, issued } of rows) names.set(id, new Set(issued ? own : []));
}

/** Names that the certificates of a site have, as far as they were issued. */
export async function namesOfCertificates(sql: Knex, siteId: string): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select distinct unnest(c.names) as name from site_certificate u join certificate c on c.id = u.certificate_id
      where u.site_id = ? and c.fingerprint is not null`,
    [siteId],
  );
  return rows.map(({ name }) => name);
}
