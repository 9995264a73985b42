// Whom else a ban would meet: proxies, origins that may be clients of their own sites, and people who are signed in.
import type { Knex } from 'knex';

/** Counting ends here. */
const MOST = 100;

export interface Met {
  /** One of the addresses. */
  address: string;
  /** At most 100. */
  count: number;
}

/** Most origins of a site, so that the rows read hold as many sites as are counted. */
const ORIGINS_OF_A_SITE = 32;

/** Sites with an origin, given by its address, in the range; only the one site when there is one. */
export async function originsIn(sql: Knex, cidr: string, siteId: string | null): Promise<Met | null> {
  return met(sql, originRows(siteId), { cidr, ...(siteId === null ? {} : { siteId }) });
}

/** One row a site, found by the range; however many addresses it covers, a bounded number of them is read. */
export function originRows(siteId: string | null): string {
  return `select distinct on (site_id) host(address) as address from (
      select site_id, address from site_origin_address
       where address <<= :cidr::inet ${siteId === null ? '' : 'and site_id = :siteId'}
       limit ${MOST * ORIGINS_OF_A_SITE}) o`;
}

/** Sessions that were begun from an address in the range. */
export async function sessionsIn(sql: Knex, cidr: string): Promise<Met | null> {
  return met(
    sql,
    `select ip::text as address from session
      where expires_at > now()
        and case when pg_input_is_valid(ip::text, 'inet') then ip::text::inet <<= :cidr::inet end`,
    { cidr },
  );
}

/** Networks in front of clusters, or of the cluster of the one site, that the range overlaps; at most 100. */
export async function trustedByClusters(sql: Knex, cidr: string, siteId: string | null): Promise<string[]> {
  const ofSite = siteId === null ? '' : 'and c.id = (select cluster_id from site where id = :siteId)';
  const { rows } = await sql.raw<{ rows: { trusted: string }[] }>(
    `select distinct t.trusted from cluster c, jsonb_array_elements_text(c.client_ip->'trustedCidrs') as t(trusted)
      where :cidr::inet && t.trusted::inet ${ofSite} order by t.trusted limit ${MOST}`,
    { cidr, ...(siteId === null ? {} : { siteId }) },
  );
  return rows.map(({ trusted }) => trusted);
}

async function met(sql: Knex, rows: string, bindings: Record<string, string>): Promise<Met | null> {
  const { rows: found } = await sql.raw<{ rows: (Met & { address: string | null })[] }>(
    `select min(address) as address, count(*)::int as count from (${rows} limit ${MOST}) m`,
    bindings,
  );
  const [{ address, count }] = found as [Met];
  return count === 0 ? null : { address, count };
}
