// Saves cache rules and cache settings that a client sent.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import {
  type CacheSettings,
  type CacheSettingsInput,
  DEFAULT_CACHE_SETTINGS,
} from '../../contract/resources/site-cache.ts';
import type { CacheOfSite, GivenCache } from '../../models/cache/given-cache.ts';
import { digestOfKey, readPurgeMethod, writePurgeMethod } from '../../models/cache/purge-method.ts';
import { compileConditions, writeSiteCache } from '../../models/cache/site-cache.ts';
import { keepIpLists } from '../../models/rules/ip-list.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import type { Sealer } from '../../runtime/sealer.ts';
import type { Tx } from '../../runtime/write.ts';

const LISTS_IN_REFUSAL = 5;

export const NEW_CACHE: CacheOfSite = { cacheRules: [], cacheSettings: DEFAULT_CACHE_SETTINGS };

/** Saves what differs of the locked site; answers the cache as it is then. Throws IP_LIST_REFERENCE_UNKNOWN, PURGE_KEY_REQUIRED. */
export async function saveCache(
  { sql }: Tx,
  sealer: Sealer,
  site: Pick<SiteRow, 'id' | 'clusterId'> & CacheOfSite,
  given: GivenCache,
): Promise<CacheOfSite & { changed: ('cacheRules' | 'cacheSettings')[] }> {
  const { purgeMethod, ...saved } = site.cacheSettings;
  const { cacheRules, conditions, cacheSettings } = given;
  const rulesDiffer = !isDeepStrictEqual(site.cacheRules, cacheRules);
  const settingsDiffer = !isDeepStrictEqual(saved, cacheSettings);
  if (rulesDiffer || settingsDiffer) {
    const lists = await keepIpLists(sql, [...new Set(conditions.flatMap(({ facts }) => facts.lists))]);
    const named = conditions.flatMap(({ facts }, index) =>
      facts.lists.map((name) => ({ name, priority: cacheRules[index]!.priority })),
    );
    const unknown = new Set(named.map(({ name }) => name).filter((name) => !lists.has(name)));
    if (unknown.size > 0) fail('IP_LIST_REFERENCE_UNKNOWN', { lists: [...unknown].sort().slice(0, LISTS_IN_REFUSAL) });
    const uses = named.map(({ name, priority }) => ({ priority, listId: lists.get(name)! }));
    await writeSiteCache(sql, site, compileConditions({ cacheRules, cacheSettings }, conditions, lists), uses);
  }
  const method = given.purgeMethod && (await savePurgeMethod(sql, sealer, site, given.purgeMethod));
  return {
    cacheRules,
    cacheSettings: { ...cacheSettings, purgeMethod: method?.shown ?? purgeMethod },
    changed: [
      ...(rulesDiffer ? ['cacheRules' as const] : []),
      ...(settingsDiffer || method?.differs ? ['cacheSettings' as const] : []),
    ],
  };
}

async function savePurgeMethod(
  sql: Tx['sql'],
  sealer: Sealer,
  site: Pick<SiteRow, 'id' | 'clusterId'>,
  { enabled, key }: NonNullable<CacheSettingsInput['purgeMethod']>,
): Promise<{ shown: CacheSettings['purgeMethod']; differs: boolean }> {
  const before = await readPurgeMethod(sql, site.id);
  const keyDigest = key === undefined ? before.keyDigest : await digestOfKey(sql, sealer, site, key);
  if (enabled && keyDigest === null) fail('PURGE_KEY_REQUIRED', { path: '/cacheSettings/purgeMethod/key' });
  const differs =
    before.enabled !== enabled || Buffer.compare(before.keyDigest ?? NO_BYTES, keyDigest ?? NO_BYTES) !== 0;
  if (differs) await writePurgeMethod(sql, site, { enabled, keyDigest });
  return { shown: { enabled, keySet: keyDigest !== null }, differs };
}

const NO_BYTES = Buffer.alloc(0);
