// Whom else a ban would meet: origins that may be clients of their own sites, and people who are signed in.
import type { Knex } from 'knex';

/** Counting ends here. */
const MOST = 100;

export interface Met {
  /** One of the addresses. */
  address: string;
  /** At most 100. */
  count: number;
}

/** Sites with an origin, given by its address, in the range; only the one site when there is one. */
export async function originsIn(sql: Knex, cidr: string, siteId: string | null): Promise<Met | null> {
  return met(
    sql,
    `select distinct on (s.id) o.origin->>'address' as address from site s
       cross join lateral jsonb_array_elements(s.origins) as o(origin)
      where case when pg_input_is_valid(o.origin->>'address', 'inet') then (o.origin->>'address')::inet <<= :cidr::inet end
        ${siteId === null ? '' : 'and s.id = :siteId'}`,
    { cidr, ...(siteId === null ? {} : { siteId }) },
  );
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

async function met(sql: Knex, rows: string, bindings: Record<string, string>): Promise<Met | null> {
  const { rows: found } = await sql.raw<{ rows: (Met & { address: string | null })[] }>(
    `select min(address) as address, count(*)::int as count from (${rows} limit ${MOST}) m`,
    bindings,
  );
  const [{ address, count }] = found as [Met];
  return count === 0 ? null : { address, count };
}
