import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { listenPorts } from '../../contract/resources/listen-ports.ts';
import { LISTEN_PORTS, LISTEN_PORTS_KIND, type ListenPorts } from '../../models/clusters/listen-ports.entry.ts';
import { portInUse } from '../../models/sites/site-ports.ts';
import { type ClusterSetting, clusterSettingState, saveClusterSetting } from '../../pipeline/cluster-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const SETTING: ClusterSetting<ListenPorts> = {
  setting: LISTEN_PORTS,
  kind: LISTEN_PORTS_KIND,
  capability: 'edge-ports-v1',
  audit: 'cluster.listen_ports_update',
  reason: 'listen_ports_updated',
};

/** Those that every node has. */
const USUAL: readonly number[] = [80, 443];

/** Throws CLUSTER_NOT_FOUND. */
export async function getListenPorts(
  runtime: Runtime,
  { clusterId }: Input<typeof listenPorts.get>,
): Promise<Output<typeof listenPorts.get>> {
  const { settings, unsupportedNodes } = await clusterSettingState(runtime, SETTING, clusterId);
  return { ...settings, unsupportedNodes };
}

/** Saves and publishes the ports; equal ones only where nodes lack them. Throws the errors the contract lists. */
export async function setListenPorts(
  runtime: Runtime,
  { clusterId, ...given }: Input<typeof listenPorts.set>,
  call: Call,
): Promise<Output<typeof listenPorts.set>> {
  const settings = { httpPorts: extraPorts(given, 'httpPorts'), httpsPorts: extraPorts(given, 'httpsPorts') };
  const shared = settings.httpPorts.find((port) => settings.httpsPorts.includes(port));
  if (shared !== undefined) fail('LISTEN_PORT_CONFLICT', { port: shared });
  return saveClusterSetting(runtime, call, SETTING, {
    clusterId,
    settings,
    // Sites that are saved meanwhile wait for the cluster.
    check: async ({ sql }, before) => {
      const gone = (list: keyof ListenPorts) => before[list].filter((port) => !settings[list].includes(port));
      const used =
        (await portInUse(sql, clusterId, 'http', gone('httpPorts'))) ??
        (await portInUse(sql, clusterId, 'https', gone('httpsPorts')));
      if (used) fail('LISTEN_PORT_IN_USE', used);
    },
    present: ({ settings: saved, unsupportedNodes, revision }) => ({ ...saved, unsupportedNodes, revision }),
  });
}

/** Sorted, each once. Throws BAD_REQUEST. */
function extraPorts(given: ListenPorts, list: keyof ListenPorts): number[] {
  const usual = given[list].findIndex((port) => USUAL.includes(port));
  if (usual >= 0) badField(`/${list}/${usual}`, 'usualPort', { port: given[list][usual] });
  return [...new Set(given[list])].sort((a, b) => a - b);
}
