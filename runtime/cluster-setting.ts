// Settings of a cluster that are published as one entry: read with the nodes that cannot follow them, saved, audited and
// published when they differ.
import { isDeepStrictEqual } from 'node:util';
import type { Capability } from '../contract/capabilities.ts';
import { fail } from '../contract/errors.ts';
import { recordAudit } from '../models/audit-entry.ts';
import { type ClusterSettings, nodesLacking, readClusterSettings } from '../models/cluster-settings.ts';
import { publish } from '../models/publish.ts';
import type { Call } from './call.ts';
import type { Runtime } from './runtime.ts';
import { type Tx, write } from './write.ts';

type Field = Exclude<keyof ClusterSettings, 'name'>;

/** One of a cluster's settings. */
export interface ClusterSetting<F extends Field> {
  field: F;
  /** Kind of its entry. */
  kind: string;
  /** What a node needs to follow it. */
  capability: Capability;
  audit: string;
  reason: string;
  save(sql: Tx['sql'], clusterId: string, settings: ClusterSettings[F]): Promise<void>;
}

interface State<T> {
  settings: T;
  /** Active nodes that cannot follow them; at most 100. */
  unsupportedNodes: { id: string; name: string }[];
}

/** Throws CLUSTER_NOT_FOUND. */
export async function readClusterSetting<F extends Field>(
  { pools }: Runtime,
  { field, capability }: ClusterSetting<F>,
  clusterId: string,
): Promise<State<ClusterSettings[F]>> {
  const { [field]: settings } = (await readClusterSettings(pools.api, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
  return { settings, unsupportedNodes: await nodesLacking(pools.api, clusterId, capability) };
}

/** Saves and publishes; equal settings change nothing. Throws CLUSTER_NOT_FOUND, and what `check` throws. */
export async function saveClusterSetting<F extends Field, O>(
  runtime: Runtime,
  call: Call,
  { field, kind, capability, audit, reason, save }: ClusterSetting<F>,
  {
    clusterId,
    settings,
    check = async () => undefined,
    present,
  }: {
    clusterId: string;
    settings: ClusterSettings[F];
    check?: (tx: Tx) => Promise<void>;
    present: (saved: State<ClusterSettings[F]> & { revision: string | null }, sql: Tx['sql']) => O | Promise<O>;
  },
): Promise<O> {
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await readClusterSettings(tx.sql, clusterId, { lock: true })) ?? fail('CLUSTER_NOT_FOUND');
    await check(tx);
    const unsupportedNodes = await nodesLacking(tx.sql, clusterId, capability);
    const state = { settings, unsupportedNodes };
    if (isDeepStrictEqual(before[field], settings)) return present({ ...state, revision: null }, tx.sql);
    await save(tx.sql, clusterId, settings);
    const target = { type: 'cluster', id: clusterId, name: before.name };
    await recordAudit(tx, audit, target, { before: before[field], after: settings });
    const revision = await publish(tx, { clusterId, entries: [{ kind, id: '' }], reason });
    return present({ ...state, revision }, tx.sql);
  });
}
