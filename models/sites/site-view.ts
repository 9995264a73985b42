// A site with its delivery, in one statement: what a page or a script asks for most.
import type { Knex } from 'knex';
import { named } from '../db/named-statement.ts';
import {
  type Delivery,
  delivery,
  deliveryOf,
  EARLIER,
  type GroupRow,
  type Interval,
  intervalsSql,
  isUnderWay,
  mostBehind,
  NONE_BEHIND,
  nodesSql,
  recentSituation,
  type Situation,
  situationNow,
  situationOf,
} from '../overview/delivery.ts';
import { SITE_COLUMNS, SITE_JOINS, type SiteRow } from './site.ts';

// The latest versions nearly always hold all that a node can run.
const COLUMNS = `${SITE_COLUMNS}, ${intervalsSql('s.cluster_id', "('site:' || s.id)", NONE_BEHIND)} as versions`;
const VIEW = `select ${COLUMNS} from site s ${SITE_JOINS} where s.id = $1`;
const VIEW_NOW = `select ${COLUMNS}, ${nodesSql('s.cluster_id')} as nodes from site s ${SITE_JOINS} where s.id = $1`;

interface ViewRow extends SiteRow {
  versions: Interval[];
}

export interface SiteView {
  site: SiteRow;
  delivery: Delivery;
  /** The nodes that the delivery is about. */
  situation: Situation;
}

/** The site as it is; its delivery is up to a second old once every node has it. */
export async function siteView(sql: Knex, id: string): Promise<SiteView | undefined> {
  const [row] = await named<ViewRow>(sql, 'site-view', VIEW, [id]);
  if (!row) return undefined;
  const seen = await seenIn(sql, row, await recentSituation(sql, row.clusterId));
  return isUnderWay(seen.delivery) ? seenIn(sql, row, await situationNow(sql, row.clusterId)) : seen;
}

/** The site and its delivery as they are now: what a change begins with, in one statement. */
export async function siteViewNow(sql: Knex, id: string): Promise<SiteView | undefined> {
  const [row] = await named<ViewRow & { nodes: GroupRow[] }>(sql, 'site-view-now', VIEW_NOW, [id]);
  if (!row) return undefined;
  const { nodes, ...view } = row;
  return seenIn(sql, view, situationOf(nodes));
}

async function seenIn(sql: Knex, { versions, ...site }: ViewRow, situation: Situation): Promise<SiteView> {
  const ends = versions.flatMap(({ to }) => (to === null ? [] : [to]));
  const behind = mostBehind(situation);
  const complete = ends.length < EARLIER || behind === null || Math.min(...ends) <= behind;
  const seen = complete
    ? delivery(site, situation, versions)
    : (await deliveryOf(sql, [site], async () => situation)).get(site.id)!;
  return { site, delivery: seen, situation };
}
