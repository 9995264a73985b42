// Kind "site-cache": cache rules and cache settings of a site. Without an entry it has no rules and the default settings.
import { isDeepStrictEqual } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import {
  type CacheRule,
  type CacheSettings,
  DEFAULT_CACHE_SETTINGS,
  type KEY_QUERIES,
} from '../../contract/resources/site-cache.ts';
import { CacheKeySchema, CacheQuery, SiteCacheSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { siteSettingsKind } from '../config/site-settings-kind.ts';
import { cacheRuleMessage, capabilitiesOfCacheRule } from './cache-rule.ts';

export const SITE_CACHE_KIND = 'site-cache';
const TABLE = 'site_cache';
/** 64 conditions of the largest size, with characters of three bytes. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** What of the settings is in the entry: that purges by PURGE have one of their own. */
export type StoredCacheSettings = Omit<CacheSettings, 'purgeMethod'>;

/** As snapshots have it. */
export interface PublishedCache {
  cacheRules: CacheRule[];
  cacheSettings: StoredCacheSettings;
}

/** A site's cache as it is saved. */
export interface StoredCache extends PublishedCache {
  /** Of each rule: its condition as nodes get it. */
  conditions: readonly Uint8Array[];
  /** What the conditions need of nodes, sorted. */
  features: readonly string[];
  /** `list:<id>` of every list that they name, sorted. */
  refs: readonly string[];
}

const { purgeMethod: _, ...DEFAULT_SETTINGS } = DEFAULT_CACHE_SETTINGS;
export const DEFAULT_CACHE: PublishedCache = { cacheRules: [], cacheSettings: DEFAULT_SETTINGS };

const QUERIES: Readonly<Record<(typeof KEY_QUERIES)[number], CacheQuery>> = {
  all: CacheQuery.ALL,
  ignore: CacheQuery.IGNORE,
  include: CacheQuery.INCLUDE,
  exclude: CacheQuery.EXCLUDE,
};

export const siteCacheKind = siteSettingsKind<PublishedCache>(
  SITE_CACHE_KIND,
  { table: TABLE, defaults: DEFAULT_CACHE },
  {
    compilerVersion: 1,
    maxBodyBytes: MAX_BODY_BYTES,
    shown: (settings) => shownCache(settings as PublishedCache),
    async compile(sql, clusterId, ids) {
      const rows = await storedCaches(sql, clusterId, ids);
      return new Map(
        rows.flatMap(({ id, ...stored }): [string, CompiledEntry][] => {
          const entry = compileCache(stored);
          return entry ? [[id, entry]] : [];
        }),
      );
    },
  },
);

async function storedCaches(
  sql: Knex,
  clusterId: string,
  ids: readonly string[],
): Promise<(StoredCache & { id: string })[]> {
  const { rows } = await sql.raw(
    `select site_id as id, rules as "cacheRules", settings as "cacheSettings", conditions, features, refs
       from site_cache where cluster_id = ? and site_id = any(?)`,
    [clusterId, ids as never],
  );
  return rows;
}

/** The entry of a site's cache; null for the defaults. */
export function compileCache({ cacheRules, cacheSettings, ...compiled }: StoredCache): CompiledEntry | null {
  if (cacheRules.length === 0 && isDeepStrictEqual(cacheSettings, DEFAULT_SETTINGS)) return null;
  const { cacheKey, rangeSlice, keepCacheTag, xCache } = cacheSettings;
  const { query, includeHost, ...key } = cacheKey;
  const message = create(SiteCacheSchema, {
    rules: cacheRules.map((rule, index) => cacheRuleMessage(rule, compiled.conditions[index]!)),
    key: create(CacheKeySchema, { ...key, query: QUERIES[query], ignoreHost: !includeHost }),
    rangeSlice,
    keepCacheTag,
    hideXCache: !xCache,
  });
  const newer = keepCacheTag || !xCache || query === 'exclude';
  const features = [
    'cache-v1',
    ...compiled.features,
    ...cacheRules.flatMap(capabilitiesOfCacheRule),
    ...(newer ? ['site-content-v1'] : []),
    ...(rangeSlice ? ['range-slice-v1'] : []),
  ];
  return {
    body: toBinary(SiteCacheSchema, message),
    features: [...new Set(features)].sort(),
    refs: [...compiled.refs],
    settings: { cacheRules, cacheSettings } satisfies PublishedCache,
  };
}

/** Rules by their priority, so that one that moved is the same. */
function shownCache({ cacheRules, cacheSettings }: PublishedCache): object {
  return { cacheRules: Object.fromEntries(cacheRules.map(({ priority, ...rule }) => [priority, rule])), cacheSettings };
}
