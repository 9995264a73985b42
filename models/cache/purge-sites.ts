// Sites that purges are for, by their hosts or ids.
import type { Knex } from 'knex';
import type { DomainForm } from '../../contract/scalars/domain.ts';

export interface HostSite {
  id: string;
  name: string;
  clusterId: string;
  enabled: boolean;
}

const COLUMNS = 's.id, s.name, s.cluster_id as "clusterId", s.enabled';

/** Those of the sites that exist. */
export async function sitesById(sql: Knex, ids: readonly string[]): Promise<HostSite[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.raw<{ rows: HostSite[] }>(
    `select ${COLUMNS} from site s where s.id = any(?) order by s.id`,
    [ids as never],
  );
  return rows;
}

interface Found extends HostSite {
  form: DomainForm;
  domain: string;
}

/**
 * The sites that have the hosts: by the exact domain, else the wildcard, the longest suffix, or patterns. Of patterns all that
 * match, because clusters may differ. A host without a site is left out.
 */
export async function sitesOfHosts(sql: Knex, hosts: readonly string[]): Promise<Map<string, HostSite[]>> {
  const found = new Map<string, HostSite[]>();
  if (hosts.length === 0) return found;
  const names = [...new Set(hosts)];
  const { rows } = await sql.raw<{ rows: Found[] }>(
    `select ${COLUMNS}, d.form, d.name as domain from site_domain d join site s on s.id = d.site_id
      where (d.form = 'exact' and d.name = any(:names)) or (d.form in ('wildcard', 'suffix') and d.name = any(:above))`,
    { names: names as never, above: [...new Set(names.flatMap(above))] as never },
  );
  const byDomain = new Map(rows.map((row) => [`${row.form} ${row.domain}`, row]));
  const left: string[] = [];
  for (const host of names) {
    const parents = above(host);
    const keys = [`exact ${host}`, `wildcard ${parents[0] ?? ''}`, ...parents.map((name) => `suffix ${name}`)];
    const key = keys.find((one) => byDomain.has(one));
    if (key === undefined) left.push(host);
    else found.set(host, [byDomain.get(key)!]);
  }
  if (left.length === 0) return found;
  const patterns = await sql.raw<{ rows: Found[] }>(
    `select ${COLUMNS}, d.form, d.name as domain from site_domain d join site s on s.id = d.site_id where d.form = 'pattern'
      order by s.id, d.position`,
  );
  for (const host of left) {
    const matching = patterns.rows.filter(({ domain }) => new RegExp(`^(?:${domain})$`).test(host));
    if (matching.length > 0) found.set(host, [...new Map(matching.map((site) => [site.id, site])).values()]);
  }
  return found;
}

/** The names above a host, the longest first. */
function above(host: string): string[] {
  const labels = host.split('.');
  return labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'));
}
