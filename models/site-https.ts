// HTTPS and compression of sites. Settings are saved complete, so that a later default changes no saved site; a site
// without a row has the defaults.
import type { Knex } from 'knex';
import {
  type CompressionSettings,
  DEFAULT_COMPRESSION,
  DEFAULT_HTTPS,
  type HttpsSettings,
} from '../contract/resources/site-https.ts';
import { uncoveredDomains } from '../contract/scalars/certificate-coverage.ts';
import { type Domain, formatDomain } from '../contract/scalars/domain.ts';
import { certificateIds } from './entries/site-https.ts';

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
 * Domains of sites that only this certificate covers of all that they name: what another chain for it has to cover, too.
 */
export async function domainsOnlyOf(sql: Knex, certificateId: string): Promise<Domain[]> {
  const { rows } = await sql.raw<{ rows: { domains: Domain[]; own: string[]; others: string[] }[] }>(
    `select (select jsonb_agg(jsonb_build_object('form', form, 'name', name) order by position)
               from site_domain where site_id = u.site_id) as domains,
            c.names as own,
            array(select unnest(o.names) from site_certificate other join certificate o on o.id = other.certificate_id
               where other.site_id = u.site_id and o.id <> u.certificate_id and o.fingerprint is not null) as others
       from site_certificate u join certificate c on c.id = u.certificate_id where u.certificate_id = ?`,
    [certificateId],
  );
  return rows.flatMap(({ domains, own, others }) => {
    const alone = uncoveredDomains(domains, others);
    const without = new Set(uncoveredDomains(alone, own).map(formatDomain));
    return alone.filter((domain) => !without.has(formatDomain(domain)));
  });
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
