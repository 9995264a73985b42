import type { Knex } from 'knex';

export interface LockedSite {
  name: string;
  clusterId: string;
}

/**
 * Everything a creator of a manual ban locks, in one statement: the guard with all other creators, the address alone
 * (two creates of one address are a create and a renewal), the site against deletion. Answers the site, undefined when
 * there is none, and an id for the ban.
 */
export async function lockForBan(
  sql: Knex,
  siteId: string | null,
  cidr: string,
): Promise<{ site: LockedSite | undefined; newId: string }> {
  const { rows } = await sql.raw(
    `select (select 1 from ban_guard for share), pg_advisory_xact_lock(hashtextextended(:key, 1398162181)),
       (select jsonb_build_object('name', name, 'clusterId', cluster_id) from site where id = :site for key share) as site,
       uuidv7()::text as "newId"`,
    { key: `${siteId ?? ''} ${cidr}`, site: siteId },
  );
  return { site: rows[0].site ?? undefined, newId: rows[0].newId };
}
