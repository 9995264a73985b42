import type { Input, Output } from '../../contract/procedure.ts';
import { type CacheZone, type clusterCache, DEFAULT_CACHE_ZONE } from '../../contract/resources/cache-zone.ts';
import { CACHE_ZONE, cacheZoneKind } from '../../models/cache/cache-zone.entry.ts';
import { type ClusterSetting, clusterSettingState, saveClusterSetting } from '../../pipeline/cluster-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const SETTING: ClusterSetting<CacheZone> = {
  setting: CACHE_ZONE,
  kind: cacheZoneKind.kind,
  capability: 'cache-zone-v1',
  audit: 'cluster.cache_update',
  reason: 'cluster_cache_updated',
};

/** Throws CLUSTER_NOT_FOUND. */
export async function getClusterCache(
  runtime: Runtime,
  { clusterId }: Input<typeof clusterCache.get>,
): Promise<Output<typeof clusterCache.get>> {
  const { settings, ...rest } = await clusterSettingState(runtime, SETTING, clusterId);
  return { ...settings, ...rest };
}

/** Saves and publishes the zone; an equal one changes nothing. Throws CLUSTER_NOT_FOUND. */
export async function setClusterCache(
  runtime: Runtime,
  { clusterId, ...given }: Input<typeof clusterCache.set>,
  call: Call,
): Promise<Output<typeof clusterCache.set>> {
  return saveClusterSetting(runtime, call, SETTING, {
    clusterId,
    settings: { ...DEFAULT_CACHE_ZONE, ...given },
    present: ({ settings, ...rest }) => ({ ...settings, ...rest }),
  });
}
