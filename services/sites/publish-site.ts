import type { Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { readPurgeMethod } from '../../models/cache/purge-method.ts';
import { compileCache, SITE_CACHE_KIND } from '../../models/cache/site-cache.entry.ts';
import { compilePurgeMethod, SITE_PURGE_METHOD_KIND } from '../../models/cache/site-purge-method.entry.ts';
import { siteOwner } from '../../models/config/entry-owner.ts';
import { type ChangedEntry, publish } from '../../models/config/publish.ts';
import { featuresOfOwner } from '../../models/config/required-capabilities.ts';
import {
  type Delivery,
  deliveryAfterChange,
  deliveryOf,
  recentSituation,
  type Situation,
} from '../../models/overview/delivery.ts';
import { entryOfRules } from '../../models/rules/rule-set.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { capabilitiesOfSite, compileSite, siteKind } from '../../models/sites/site.entry.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import { compileContent, SITE_CONTENT_KIND } from '../../models/sites/site-content.entry.ts';
import { entriesBeside } from '../../models/sites/site-ports.ts';
import { compileRequests, SITE_REQUESTS_KIND } from '../../models/sites/site-requests.entry.ts';
import { siteViewNow } from '../../models/sites/site-view.ts';
import { readStoredParts, type StoredParts } from '../../models/sites/stored-parts.ts';
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
  const view = await siteViewNow(pools.api, id);
  if (!view) return undefined;
  const { site, delivery, situation } = view;
  return { clusterId: site.clusterId, enabled: site.enabled, delivery, situation };
}

/** A site about to be created in the cluster. */
export async function newSite({ pools }: Runtime, clusterId: string): Promise<KnownSite> {
  const situation = await recentSituation(pools.api, clusterId);
  const made = { id: '', clusterId, enabled: true, updatedAt: new Date() };
  const deliveries = await deliveryOf(pools.api, [made], async () => situation);
  return { clusterId, enabled: true, delivery: deliveries.get('')!, situation };
}

/** What a change of a site is called. */
export interface NamedChange {
  reason: string;
  /** Action of the audit entry, and what it says. */
  action: string;
  metadata?: Record<string, unknown>;
  /** What else of the site it touches. */
  entries?: readonly ChangedEntry[];
  /** As of a publication: it was saved before. */
  again?: boolean;
  /** What is saved of the site beside, where it was read under the site's lock and is the same still. */
  stored?: StoredParts;
}

/** Publishes the site, as it was locked and saved in this transaction, with its audit entry; answers it with the revision. */
export async function publishSite(
  tx: Tx,
  site: SiteRow,
  { reason, action, metadata = {}, entries = [], again = false, stored }: NamedChange,
  known: KnownSite,
): Promise<SiteChange> {
  const { id, clusterId, name } = site;
  const revision = await publish(tx, {
    clusterId,
    entries: [...(await entriesOf(tx, site, stored)), ...entries],
    reason,
    params: { site: name, siteId: id, ...(metadata.changed ? { changed: metadata.changed } : {}) },
    audit: { action, target: { type: 'site', id, name }, metadata },
    again,
  });
  const delivery = deliveryAfterChange(known.delivery, known.situation, capabilitiesOfSite(site), {
    enabled: site.enabled,
    wasEnabled: known.enabled,
  });
  return { site: presentWith(site, delivery), revision };
}

/** Capabilities that nodes need for the site as it is here and for everything that they have of it beside. */
export async function featuresWith(tx: Tx, site: SiteRow): Promise<string[]> {
  const entries = await entriesOf(tx, site);
  const kinds = entries.map(({ kind }) => kind);
  const others = await featuresOfOwner(tx.sql, site.clusterId, siteOwner(site.id), kinds);
  return [...new Set([...entries.flatMap(({ compiled }) => compiled?.features ?? []), ...others])];
}

/** Rules name groups of origins: after a rollback, which leaves what is saved as it is, nodes get both as they are saved. */
async function entriesOf(tx: Tx, site: SiteRow, stored?: StoredParts): Promise<ChangedEntry[]> {
  const { id } = site;
  const { rules, cache } = stored ?? (await readStoredParts(tx.sql, id));
  const purge = site.cacheSettings.purgeMethod.keySet
    ? [{ kind: SITE_PURGE_METHOD_KIND, id, compiled: compilePurgeMethod(await readPurgeMethod(tx.sql, id)) }]
    : [];
  return [
    { kind: siteKind.kind, id, compiled: compileSite(site) },
    { kind: SITE_REQUESTS_KIND, id, compiled: compileRequests(site.contentSettings) },
    { kind: SITE_CONTENT_KIND, id, compiled: compileContent(site.contentSettings) },
    ...(site.enabled ? entriesBeside(site.ports) : []),
    ...(rules ? [{ kind: SITE_RULES_KIND, id, compiled: await entryOfRules(tx.sql, rules) }] : []),
    ...(cache ? [{ kind: SITE_CACHE_KIND, id, compiled: compileCache(cache) }] : []),
    ...purge,
  ];
}

/** Answers a site that a call left as it was. */
export function unchanged(site: SiteRow, { delivery }: KnownSite): SiteChange {
  return { site: presentWith(site, delivery), revision: null };
}
