// What attention entries are computed from: nodes, and how far the sites of each cluster are delivered.
import type { Knex } from 'knex';
import { NODE_WORDS } from '../../contract/resources/overview.ts';
import { type FleetView, fleetView } from './overview-nodes.ts';
import { type SiteCount, type SitesBehind, siteCounts, sitesBehind } from './overview-sites.ts';

/** Of all clusters, or of the one asked about. */
export interface FleetFacts {
  view: FleetView;
  counts: readonly SiteCount[];
  behind: readonly SitesBehind[];
}

export async function readFleetFacts(sql: Knex, clusterId: string | null): Promise<FleetFacts> {
  const [counts, [view, behind]] = await Promise.all([
    siteCounts(sql, clusterId === null ? null : [clusterId]),
    readNodes(sql, clusterId),
  ]);
  return { view, counts, behind };
}

/** The same of all clusters. Sites are counted only of clusters where no node has a configuration: others need no count. */
export async function readFleetFactsToReview(sql: Knex): Promise<FleetFacts> {
  const [view, behind] = await readNodes(sql, null);
  const unserved = view.spans.filter(({ most }) => most === null || most < 0).map(({ clusterId }) => clusterId);
  const counts = unserved.length > 0 ? await siteCounts(sql, unserved) : [];
  return { view, counts, behind };
}

async function readNodes(sql: Knex, clusterId: string | null): Promise<[FleetView, SitesBehind[]]> {
  const view = await fleetView(sql, NODE_WORDS, clusterId);
  return [view, await sitesBehind(sql, view.spans)];
}
