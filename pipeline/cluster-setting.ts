// Settings of a cluster that are published as one entry: read with the nodes that cannot follow them, saved, audited and
// published when they differ.
import { isDeepStrictEqual } from 'node:util';
import type { Capability } from '../contract/capabilities.ts';
import { fail } from '../contract/errors.ts';
import {
  nodesLacking,
  readClusterSetting,
  type SettingColumn,
  writeClusterSetting,
} from '../models/clusters/cluster-settings.ts';
import { publish } from '../models/config/publish.ts';
import type { Call } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Tx, write } from '../runtime/write.ts';

/** One of a cluster's settings. */
export interface ClusterSetting<T> {
  setting: SettingColumn<T>;
  /** Kind of its entry. */
  kind: string;
  /** What a node needs to follow it. */
  capability: Capability;
  audit: string;
  reason: string;
  /** Where more than the column is written. */
  save?(sql: Tx['sql'], clusterId: string, settings: T): Promise<void>;
}

interface State<T> {
  settings: T;
  /** Active nodes that cannot follow them; at most 100. */
  unsupportedNodes: { id: string; name: string }[];
}

/** Throws CLUSTER_NOT_FOUND. */
export async function clusterSettingState<T>(
  { pools }: Runtime,
  { setting, capability }: ClusterSetting<T>,
  clusterId: string,
): Promise<State<T>> {
  const { settings } = (await readClusterSetting(pools.api, clusterId, setting)) ?? fail('CLUSTER_NOT_FOUND');
  return { settings, unsupportedNodes: await nodesLacking(pools.api, clusterId, capability) };
}

/**
 * Saves and publishes. Equal settings are not saved again; nodes get them where they do not have them, as after a canary
 * that was aborted. Throws CLUSTER_NOT_FOUND, and what `check` throws.
 */
export async function saveClusterSetting<T, O>(
  runtime: Runtime,
  call: Call,
  { setting, kind, capability, audit, reason, save }: ClusterSetting<T>,
  {
    clusterId,
    settings,
    check = async () => undefined,
    present,
  }: {
    clusterId: string;
    settings: T;
    check?: (tx: Tx, before: T) => Promise<void>;
    present: (saved: State<T> & { revision: string | null }, sql: Tx['sql']) => O | Promise<O>;
  },
): Promise<O> {
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await readClusterSetting(tx.sql, clusterId, setting, { lock: true })) ?? fail('CLUSTER_NOT_FOUND');
    await check(tx, before.settings);
    const unsupportedNodes = await nodesLacking(tx.sql, clusterId, capability);
    const state = { settings, unsupportedNodes };
    const target = { type: 'cluster', id: clusterId, name: before.clusterName };
    const changed = !isDeepStrictEqual(before.settings, settings);
    if (changed)
      await (save ? save(tx.sql, clusterId, settings) : writeClusterSetting(tx.sql, clusterId, setting, settings));
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind, id: '' }],
      reason,
      ...(changed ? { audit: { action: audit, target, metadata: { before: before.settings, after: settings } } } : {}),
    });
    return present({ ...state, revision }, tx.sql);
  });
}
