// The cache of a site as the page edits it.
import type { Input, Output } from '@contract/procedure.ts';
import type { CacheRule } from '@contract/resources/site-cache.ts';
import type { sites } from '@contract/resources/sites.ts';

export type Site = Output<typeof sites.get>;
type CacheSettings = NonNullable<Input<typeof sites.update>['cacheSettings']>;

/** A site whose cache settings are those that a save takes. */
export type EditedSite = Omit<Site, 'cacheSettings'> & { cacheSettings: CacheSettings };

export function editedSite(site: Site): EditedSite {
  const { purgeMethod, ...settings } = site.cacheSettings;
  return { ...site, cacheSettings: { ...settings, purgeMethod: { enabled: purgeMethod.enabled } } };
}

const STEP = 10;

/** Rules with priorities in their order. */
export function inOrder(rules: readonly CacheRule[]): CacheRule[] {
  return rules.map((rule, index) => ({ ...rule, priority: (index + 1) * STEP }));
}

/** Whether lists say what the rule is about: it has some, or is about everything. */
export function hasLists({ expression, pathPrefixes, paths, extensions }: CacheRule): boolean {
  return pathPrefixes.length + paths.length + extensions.length > 0 || expression === '' || expression === 'true';
}
