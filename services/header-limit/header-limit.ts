import type { Input, Output } from '../../contract/procedure.ts';
import { DEFAULT_FIELD_BYTES, type headerLimit } from '../../contract/resources/header-limit.ts';
import { HEADER_LIMIT, type HeaderLimit } from '../../models/clusters/header-limit.entry.ts';
import { type ClusterSetting, clusterSettingState, saveClusterSetting } from '../../pipeline/cluster-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const SETTING: ClusterSetting<HeaderLimit> = {
  setting: HEADER_LIMIT,
  kind: 'header-limit',
  capability: 'header-limit-v1',
  audit: 'cluster.header_limit_update',
  reason: 'header_limit_updated',
};

/** Throws CLUSTER_NOT_FOUND. */
export async function getHeaderLimit(
  runtime: Runtime,
  { clusterId }: Input<typeof headerLimit.get>,
): Promise<Output<typeof headerLimit.get>> {
  const { settings, ...rest } = await clusterSettingState(runtime, SETTING, clusterId);
  return { ...settings, ...rest };
}

/** Saves and publishes the setting; an equal one changes nothing. Throws CLUSTER_NOT_FOUND. */
export async function setHeaderLimit(
  runtime: Runtime,
  { clusterId, fieldBytes = DEFAULT_FIELD_BYTES }: Input<typeof headerLimit.set>,
  call: Call,
): Promise<Output<typeof headerLimit.set>> {
  return saveClusterSetting(runtime, call, SETTING, {
    clusterId,
    settings: { fieldBytes },
    present: ({ settings, ...rest }) => ({ ...settings, ...rest }),
  });
}
