// Certificates that sites lose soon, and certificates that cannot be issued.
import type { Knex } from 'knex';

/** Enabled sites with a certificate that ends within so many hours, and when the first of them ends. */
export async function sitesLosingCertificates(
  sql: Knex,
  hours: number,
  limit: number,
): Promise<{ siteId: string; notAfter: Date }[]> {
  const { rows } = await sql.raw<{ rows: { siteId: string; notAfter: Date }[] }>(
    `select u.site_id as "siteId", min(c.not_after) as "notAfter"
       from certificate c join site_certificate u on u.certificate_id = c.id join site s on s.id = u.site_id and s.enabled
      where not c.rehearsal and c.not_after < now() + make_interval(hours => :hours)
      group by u.site_id order by u.site_id limit :limit`,
    { hours, limit },
  );
  return rows;
}

export async function failedCertificates(sql: Knex, limit: number): Promise<{ id: string; error: string }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; error: string }[] }>(
    `select id, coalesce(last_error, '') as error from certificate
      where status = 'error' and not rehearsal order by id limit ?`,
    [limit],
  );
  return rows;
}
