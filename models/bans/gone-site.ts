// Bans of deleted sites. A deletion commits without touching them, and from then on nobody sees or counts them; a job
// lifts them in batches, so that nodes drop them while no other ban waits long.
import type { Knex } from 'knex';
import type { Tx } from '../../runtime/write.ts';
import { announceBans } from './ban-numbers.ts';

/** Condition of a `ban b` that may be seen. Few sites are on their way out, mostly none. */
export const OF_NO_GONE_SITE = 'not exists (select from gone_site g where g.site_id = b.site_id)';

/** Bans lifted in one transaction, at most: some 20 ms in which other bans wait. */
export const LIFTED_AT_ONCE = 500;
/** Sites looked at in one turn. */
const MOST_SITES = 100;

/** Leaves the bans of a site, which is locked and deleted in this transaction, to the job; answers how many are active. */
export async function abandonBans(tx: Tx, siteId: string): Promise<number> {
  const { rows } = await tx.sql.raw<{ rows: { bans: number }[] }>(
    `with gone as (insert into gone_site (site_id, deleted_at) values (:siteId, :now) on conflict do nothing)
     select count(*)::int as bans from ban where site_id = :siteId and lifted_at is null and expires_at > :now`,
    { siteId, now: tx.now } as never,
  );
  return rows[0]!.bans;
}

/** Deleted sites that may have active bans, those that wait longest first; at most 100. */
export async function goneSites(sql: Knex): Promise<string[]> {
  const rows: { site_id: string }[] = await sql('gone_site').orderBy('deleted_at').limit(MOST_SITES).select('site_id');
  return rows.map(({ site_id }) => site_id);
}

/** Lifts active bans of a deleted site, at most 500; answers whether there may be more, else the site is done with. */
export async function liftBansOfGoneSite(tx: Tx, siteId: string): Promise<boolean> {
  const { rows } = await tx.sql.raw<{ rows: { id: string }[] }>(
    `update ban set lifted_at = :now where id = any(array(
       select id from ban where site_id = :siteId and lifted_at is null and expires_at > :now
        order by id limit ${LIFTED_AT_ONCE} for update)) returning id`,
    { siteId, now: tx.now } as never,
  );
  if (rows.length < LIFTED_AT_ONCE) await tx.sql('gone_site').where({ site_id: siteId }).delete();
  await announceBans(
    tx,
    rows.map(({ id }) => id),
  );
  return rows.length === LIFTED_AT_ONCE;
}
