// Kind "cache-zone": disk space for the cache of each node. Without an entry nodes use 10 GiB and keep responses 7 days.
import { isDeepStrictEqual } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import { type CacheZone, DEFAULT_CACHE_ZONE } from '../../contract/resources/cache-zone.ts';
import { CacheZoneSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import type { SettingColumn } from '../clusters/cluster-settings.ts';
import { singleClusterKind } from '../config/single-cluster-kind.ts';

export const CACHE_ZONE: SettingColumn<CacheZone> = {
  column: 'cache_zone',
  read: (saved) => ({ ...DEFAULT_CACHE_ZONE, ...(saved as Partial<CacheZone> | null) }),
};

export const cacheZoneKind = singleClusterKind({
  kind: 'cache-zone',
  setting: CACHE_ZONE,
  compilerVersion: 1,
  compile(zone) {
    if (isDeepStrictEqual(zone, DEFAULT_CACHE_ZONE)) return null;
    return {
      body: toBinary(CacheZoneSchema, create(CacheZoneSchema, zone)),
      features: ['cache-zone-v1'],
      refs: [],
    };
  },
});
