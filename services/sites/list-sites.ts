import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { siteCount, sitePage } from '../../models/site.ts';
import { siteView } from '../../models/site-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentSites, presentWith, type SiteOutput } from './present-site.ts';

export async function listSites(
  { pools }: Runtime,
  input: Input<typeof sites.list>,
): Promise<Output<typeof sites.list>> {
  const { limit, offset } = pageOf({ pageSize: 20, ...input });
  const [rows, total] = await Promise.all([sitePage(pools.api, input, limit, offset), siteCount(pools.api, input)]);
  return { items: await presentSites(pools.api, rows), total };
}

/** Throws SITE_NOT_FOUND. */
export async function getSite({ pools }: Runtime, input: Input<typeof sites.get>): Promise<SiteOutput> {
  const { site, delivery } = (await siteView(pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return presentWith(site, delivery);
}
