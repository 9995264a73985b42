// Which alerts a channel is sent. A subscription to single sites ends with the last of them.
import type { Knex } from 'knex';
import type { AlertKind } from '../../contract/resources/alerts.ts';

export interface AlertSubscriptionRow {
  id: string;
  channelId: string;
  channelName: string;
  kinds: AlertKind[];
  enabled: boolean;
  allSites: boolean;
  siteIds: string[];
  createdAt: Date;
  updatedAt: Date;
}

export type SavedSubscription = Pick<
  AlertSubscriptionRow,
  'id' | 'channelId' | 'kinds' | 'enabled' | 'allSites' | 'siteIds'
>;

const SELECT = `
  select u.id, u.channel_id as "channelId", c.name as "channelName", u.kinds, u.enabled, u.all_sites as "allSites",
      array(select x.site_id from alert_subscription_site x where x.subscription_id = u.id order by 1) as "siteIds",
      u.created_at as "createdAt", u.updated_at as "updatedAt"
    from alert_subscription u join alert_channel c on c.id = u.channel_id
   where (u.all_sites or exists (select from alert_subscription_site x where x.subscription_id = u.id))`;

/** All of them, by the name of the channel; each channel has one at most. */
export async function alertSubscriptions(sql: Knex): Promise<AlertSubscriptionRow[]> {
  const { rows } = await sql.raw<{ rows: AlertSubscriptionRow[] }>(`${SELECT} order by lower(c.name), u.id`);
  return rows;
}

/** Undefined: there is none. `lock` keeps it until the end of the transaction. */
export async function alertSubscriptionById(
  sql: Knex,
  id: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<AlertSubscriptionRow | undefined> {
  const { rows } = await sql.raw<{ rows: AlertSubscriptionRow[] }>(
    `${SELECT} and u.id = ? ${lock ? 'for update of u' : ''}`,
    [id],
  );
  return rows[0];
}

/** Returns false where the channel has one already. */
export async function insertSubscription(sql: Knex, given: SavedSubscription, now: Date): Promise<boolean> {
  const { id, channelId, kinds, enabled, allSites, siteIds } = given;
  await deleteEmptySubscriptions(sql);
  const made = await sql('alert_subscription')
    .insert({ id, channel_id: channelId, kinds, enabled, all_sites: allSites, created_at: now, updated_at: now })
    .onConflict('channel_id')
    .ignore()
    .returning('id');
  if (made.length === 0) return false;
  await insertSites(sql, id, siteIds);
  return true;
}

export async function updateSubscription(
  sql: Knex,
  { id, kinds, enabled, allSites, siteIds }: Omit<SavedSubscription, 'channelId'>,
  updatedAt: Date,
): Promise<void> {
  await sql('alert_subscription').where({ id }).update({ kinds, enabled, all_sites: allSites, updated_at: updatedAt });
  await sql('alert_subscription_site').where({ subscription_id: id }).delete();
  await insertSites(sql, id, siteIds);
}

async function insertSites(sql: Knex, id: string, siteIds: readonly string[]): Promise<void> {
  await sql.raw(
    'insert into alert_subscription_site (subscription_id, site_id) select ?, s from unnest(?::text[]) as s',
    [id, siteIds as never],
  );
}

export async function deleteSubscription(sql: Knex, id: string): Promise<void> {
  await sql('alert_subscription').where({ id }).delete();
}

/** Deletes those whose last site was deleted; returns how many. */
export async function deleteEmptySubscriptions(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from alert_subscription u
      where not u.all_sites and not exists (select from alert_subscription_site x where x.subscription_id = u.id)`,
  );
  return rowCount;
}
