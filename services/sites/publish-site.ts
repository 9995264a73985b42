import type { Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import {
  type Delivery,
  deliveryAfterChange,
  deliveryOf,
  recentSituation,
  type Situation,
} from '../../models/delivery.ts';
import { featuresOfDomains } from '../../models/entries/site.ts';
import { publish } from '../../models/publish.ts';
import type { SiteRow } from '../../models/site.ts';
import { siteView } from '../../models/site-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Tx } from '../../runtime/write.ts';
import { presentWith } from './present-site.ts';

export type SiteChange = Output<typeof sites.update>;

/** A site before a change. Its delivery is read outside the transaction: the cluster's other changes wait for that. */
export interface KnownSite {
  clusterId: string;
  enabled: boolean;
  delivery: Delivery;
  situation: Situation;
}

/** The site as it is known before it is locked; undefined when there is none. */
export async function knownSite({ pools }: Runtime, id: string): Promise<KnownSite | undefined> {
  const view = await siteView(pools.api, id);
  if (!view) return undefined;
  const { site, delivery, situation } = view;
  return { clusterId: site.clusterId, enabled: site.enabled, delivery, situation };
}

/** A site about to be created in the cluster. */
export async function newSite({ pools }: Runtime, clusterId: string): Promise<KnownSite> {
  const situation = await recentSituation(pools.api, clusterId);
  const deliveries = await deliveryOf(pools.api, [{ id: '', clusterId, enabled: true }], async () => situation);
  return { clusterId, enabled: true, delivery: deliveries.get('')!, situation };
}

/** Publishes the site, as it was saved in this transaction, and answers it with the revision. */
export async function publishSite(tx: Tx, site: SiteRow, reason: string, known: KnownSite): Promise<SiteChange> {
  const { id, clusterId } = site;
  const params = { site: site.name, siteId: id };
  const revision = await publish(tx, { clusterId, entries: [{ kind: 'site', id }], reason, params });
  const delivery = deliveryAfterChange(known.delivery, known.situation, featuresOfDomains(site.domains), {
    enabled: site.enabled,
    wasEnabled: known.enabled,
  });
  return { site: presentWith(site, delivery), revision };
}

/** Answers a site that a call left as it was. */
export function unchanged(site: SiteRow, { delivery }: KnownSite): SiteChange {
  return { site: presentWith(site, delivery), revision: null };
}
