// Cache rules and cache settings of sites, with their conditions as nodes get them. Whoever writes holds the site's lock.
import type { Knex } from 'knex';
import type { ListIds } from '../rules/rule-message.ts';
import { type CheckedCacheCondition, encodeCacheCondition } from './cache-rule.ts';
import type { PublishedCache, StoredCache } from './site-cache.entry.ts';

/** Rules and settings with what was compiled of the conditions; `lists` has every list that they name. */
export function compileConditions(
  cache: PublishedCache,
  checked: readonly (CheckedCacheCondition | null)[],
  lists: ListIds,
): StoredCache {
  const known = checked.filter((one) => one !== null);
  return {
    ...cache,
    // A condition that does not compile any more is one that no node can use: nodes keep what they run.
    conditions: checked.map((one) => (one ? encodeCacheCondition(one, lists) : new Uint8Array())),
    features: union(known.flatMap(({ facts }) => facts.capabilities)),
    refs: union(known.flatMap((one) => listsOfCondition(one).map((name) => `list:${lists.get(name)}`))),
  };
}

export function listsOfCondition({ facts }: CheckedCacheCondition): readonly string[] {
  return facts.lists;
}

export async function writeSiteCache(
  sql: Knex,
  { id, clusterId }: { id: string; clusterId: string },
  stored: StoredCache,
  uses: readonly { priority: number; listId: string }[],
): Promise<void> {
  await sql.raw(
    `insert into site_cache (site_id, cluster_id, rules, settings, conditions, features, refs) values (?, ?, ?, ?, ?, ?, ?)
     on conflict (site_id) do update set rules = excluded.rules, settings = excluded.settings,
       conditions = excluded.conditions, features = excluded.features, refs = excluded.refs`,
    [
      id,
      clusterId,
      JSON.stringify(stored.cacheRules),
      JSON.stringify(stored.cacheSettings),
      stored.conditions.map((bytes) => Buffer.from(bytes)) as never,
      stored.features as never,
      stored.refs as never,
    ],
  );
  await sql.raw('delete from cache_rule_ip_list where site_id = ?', [id]);
  if (uses.length === 0) return;
  await sql.raw(
    `insert into cache_rule_ip_list (ip_list_id, site_id, priority)
     select list, ?, priority from unnest(?::text[], ?::smallint[]) as uses(list, priority)`,
    [id, uses.map(({ listId }) => listId) as never, uses.map(({ priority }) => priority) as never],
  );
}

function union(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}
