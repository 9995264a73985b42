// A site with its delivery, in one statement: what a page or a script asks for most.
import type { Knex } from 'knex';
import {
  type Delivery,
  delivery,
  deliveryOf,
  INTERVAL_COLUMNS,
  type Interval,
  isUnderWay,
  mostBehind,
  recentSituation,
  type Situation,
  situationNow,
} from './delivery.ts';
import { named } from './named-statement.ts';
import { SITE_COLUMNS, SITE_JOINS, type SiteRow } from './site.ts';

/** The latest versions nearly always hold all that a node can run. */
const VERSIONS = 8;

const VIEW = `
  select ${SITE_COLUMNS}, v.versions from site s ${SITE_JOINS}
  cross join lateral (
    select coalesce(jsonb_agg(i), '[]') as versions from (
      select ${INTERVAL_COLUMNS} from config_entry e
       where e.cluster_id = s.cluster_id and e.resource_id = s.id and e.kind = 'site' and e.track = 'S'
         and e.blob_hash is not null
       order by e.from_revision desc limit ${VERSIONS}) i) v
  where s.id = $1`;

export interface SiteView {
  site: SiteRow;
  delivery: Delivery;
}

/** The site as it is; its delivery is up to a second old once every node has it. */
export async function siteView(sql: Knex, id: string): Promise<SiteView | undefined> {
  const [row] = await named<SiteRow & { versions: Interval[] }>(sql, 'site-view', VIEW, [id]);
  if (!row) return undefined;
  const { versions, ...site } = row;
  const seenIn = async (situation: Situation): Promise<Delivery> => {
    const behind = mostBehind(situation);
    const complete = versions.length < VERSIONS || behind === null || versions.at(-1)!.from <= behind;
    if (complete) return delivery(site, situation, versions);
    return (await deliveryOf(sql, [site], async () => situation)).get(id)!;
  };
  const seen = await seenIn(await recentSituation(sql, site.clusterId));
  return { site, delivery: isUnderWay(seen) ? await seenIn(await situationNow(sql, site.clusterId)) : seen };
}
