// A site with its delivery, in one statement: what a page or a script asks for most.
import type { Knex } from 'knex';
import {
  type Delivery,
  delivery,
  deliveryOf,
  EARLIER,
  type Interval,
  intervalsSql,
  isUnderWay,
  mostBehind,
  NONE_BEHIND,
  recentSituation,
  type Situation,
  situationNow,
} from './delivery.ts';
import { named } from './named-statement.ts';
import { SITE_COLUMNS, SITE_JOINS, type SiteRow } from './site.ts';

// The latest versions nearly always hold all that a node can run.
const VIEW = `
  select ${SITE_COLUMNS}, ${intervalsSql('s.cluster_id', "('site:' || s.id)", NONE_BEHIND)} as versions
  from site s ${SITE_JOINS}
  where s.id = $1`;

export interface SiteView {
  site: SiteRow;
  delivery: Delivery;
  /** The nodes that the delivery is about. */
  situation: Situation;
}

/** The site as it is; its delivery is up to a second old once every node has it. */
export async function siteView(sql: Knex, id: string): Promise<SiteView | undefined> {
  const [row] = await named<SiteRow & { versions: Interval[] }>(sql, 'site-view', VIEW, [id]);
  if (!row) return undefined;
  const { versions, ...site } = row;
  const ends = versions.flatMap(({ to }) => (to === null ? [] : [to]));
  const seenIn = async (situation: Situation): Promise<SiteView> => {
    const behind = mostBehind(situation);
    const complete = ends.length < EARLIER || behind === null || Math.min(...ends) <= behind;
    const seen = complete
      ? delivery(site, situation, versions)
      : (await deliveryOf(sql, [site], async () => situation)).get(id)!;
    return { site, delivery: seen, situation };
  };
  const seen = await seenIn(await recentSituation(sql, site.clusterId));
  return isUnderWay(seen.delivery) ? seenIn(await situationNow(sql, site.clusterId)) : seen;
}
