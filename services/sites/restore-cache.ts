// Saves cache rules and cache settings of a site as an earlier revision had them.
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { checkCacheRule } from '../../models/cache/cache-rule.ts';
import { type PublishedCache, SITE_CACHE_KIND } from '../../models/cache/site-cache.entry.ts';
import { compileConditions, writeSiteCache } from '../../models/cache/site-cache.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { keepIpLists } from '../../models/rules/ip-list.ts';
import { siteById, updateSite } from '../../models/sites/site.ts';

export const siteCacheRestorer: SettingsRestorer = {
  kind: SITE_CACHE_KIND,
  locks: 'site',
  async save(sql, clusterId, id, settings, now) {
    const cache = settings as PublishedCache;
    const checked = cache.cacheRules.map(({ expression }) => {
      const one = checkCacheRule(expression);
      return 'error' in one ? null : one;
    });
    const named = checked.flatMap((one, index) =>
      (one?.facts.lists ?? []).map((name) => ({ name, priority: cache.cacheRules[index]!.priority })),
    );
    const lists = await keepIpLists(sql, [...new Set(named.map(({ name }) => name))]);
    const uses = named.flatMap(({ name, priority }) => {
      const listId = lists.get(name);
      return listId === undefined ? [] : [{ priority, listId }];
    });
    await writeSiteCache(sql, { id, clusterId }, compileConditions(cache, checked, lists), uses);
    const before = (await siteById(sql, id))!;
    await updateSite(sql, id, before, nextUpdatedAt(before.updatedAt, now));
  },
};
