import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { NODE_WORDS } from '../../contract/resources/overview.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import { type ClusterSpan, fleetView } from '../../models/overview/overview-nodes.ts';
import { type SiteFigures, siteFigures } from '../../models/security/site-level.ts';
import { siteCount, sitePage } from '../../models/sites/site.ts';
import { siteView } from '../../models/sites/site-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentSites, presentWith, type SiteOutput } from './present-site.ts';

export async function listSites(
  { pools }: Runtime,
  input: Input<typeof sites.list>,
): Promise<Output<typeof sites.list>> {
  const { limit, offset } = pageOf({ pageSize: 20, ...input });
  const { state: is, ...rest } = input;
  const filter = { ...rest, state: is && { is, spans: await spansOf(pools.api, input.clusterId) } };
  const [rows, total] = await Promise.all([sitePage(pools.api, filter, limit, offset), siteCount(pools.api, filter)]);
  const [items, figures] = await Promise.all([presentSites(pools.api, rows), siteFigures(pools.api, rows)]);
  return { items: items.map((site) => listed(site, figures.get(site.id))), total };
}

async function spansOf(sql: Runtime['pools']['api'], clusterId: string | undefined): Promise<ClusterSpan[]> {
  return (await fleetView(sql, NODE_WORDS, clusterId ?? null)).spans;
}

function listed(site: SiteOutput, figures: SiteFigures | undefined): Output<typeof sites.list>['items'][number] {
  return { ...site, ...presentFigures(figures) };
}

/** What nodes told of a site, as the contract shows it. */
export function presentFigures(
  figures: SiteFigures | undefined,
): Pick<Output<typeof sites.list>['items'][number], 'level' | 'requestsPerSecond'> {
  const { level = null, requestsPerSecond = null } = figures ?? {};
  return { level: level === null ? null : LEVELS[level]!, requestsPerSecond };
}

/** Throws SITE_NOT_FOUND. */
export async function getSite({ pools }: Runtime, input: Input<typeof sites.get>): Promise<SiteOutput> {
  const { site, delivery } = (await siteView(pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return presentWith(site, delivery);
}
