import type { CacheZone } from '../../contract/resources/cache-zone.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { CACHE_ZONE, cacheZoneKind } from '../../models/cache/cache-zone.entry.ts';
import { writeClusterSetting } from '../../models/clusters/cluster-settings.ts';

export const feature = {
  restores: [
    {
      kind: cacheZoneKind.kind,
      locks: 'cluster',
      whole: true,
      save: (sql, clusterId, _id, settings) => writeClusterSetting(sql, clusterId, CACHE_ZONE, settings as CacheZone),
    },
  ],
} satisfies ServiceFeature;
