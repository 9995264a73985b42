// Clusters with canaries at the pipeline: things with a switch that must not wait, and nodes that only the database knows.

import type { CompiledEntry } from '../../models/config/entry-kind.ts';
import { publish } from '../../models/config/publish.ts';
import { abortCanary, promoteCanary } from '../../models/rollouts/finish-canary.ts';
import type { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ModelNode } from './model-node.ts';
import { addCluster, change, saveThings, THING, thingKind } from './pipeline.ts';

/** What a thing is; its switch must not wait. */
export interface Settings {
  version: number;
  on: boolean;
}

export const bodyOf = ({ version, on }: Settings) => JSON.stringify({ version, on });
export const compiled = (settings: Settings): CompiledEntry => ({
  body: Buffer.from(bodyOf(settings)),
  features: settings.version % 3 === 0 ? ['every-third-v1'] : [],
  refs: [],
  settings,
});

/** Until {@link unswitch} things have the switch. */
export function switchThings(): void {
  Object.assign(thingKind, {
    bypass: (stable: object, now: CompiledEntry | null) => {
      const [before, after] = [stable as Settings, now?.settings as Settings | undefined];
      return after && before.on !== after.on ? compiled({ ...before, on: after.on }) : undefined;
    },
  });
}

export function unswitch(): void {
  Object.assign(thingKind, { bypass: false });
}

/** A node in a group that is a canary or in one that is none. */
export async function addNode(
  runtime: Runtime,
  clusterId: string,
  id: string,
  {
    isCanary,
    features = ['canary-v1', 'every-third-v1'],
    online = true,
  }: { isCanary: boolean; features?: string[]; online?: boolean },
): Promise<void> {
  const sql = runtime.pools.api;
  const group = `${id}-group`;
  await sql('node_group').insert({ id: group, cluster_id: clusterId, name: group, is_canary: isCanary });
  await sql('node').insert({ id, name: id, cluster_id: clusterId, node_group_id: group });
  await sql.raw(
    `insert into node_state (node_id, features, last_seen_at) values (?, ?, now() - make_interval(secs => ?))
     on conflict (node_id) do update set features = excluded.features, last_seen_at = excluded.last_seen_at`,
    [id, features as never, online ? 0 : 3600],
  );
}

export async function setPolicy(runtime: Runtime, clusterId: string, enabled: boolean): Promise<void> {
  const sql = runtime.pools.api;
  await sql('cluster_rollout').insert({ cluster_id: clusterId, enabled }).onConflict('cluster_id').merge({ enabled });
}

export async function save(
  runtime: Runtime,
  clusterId: string,
  id: string,
  settings: Settings | null,
  owner = false,
): Promise<string | null> {
  const entry = settings && compiled(settings);
  const { output } = await change(
    runtime,
    async (tx) => {
      const thing = { id, body: entry ? Buffer.from(entry.body) : null, features: entry?.features ?? [] };
      await saveThings(tx.sql, clusterId, [settings ? { ...thing, settings } : thing]);
      const ends = owner ? [id.split('/')[0]!] : [];
      return publish(tx, { clusterId, entries: owner ? [] : [{ kind: THING, id }], ends, reason: 'test' });
    },
    { clusterId },
  );
  return output;
}

export const promote = (runtime: Runtime, clusterId: string) =>
  change(runtime, (tx) => promoteCanary(tx, clusterId, 'manual_promote'), { clusterId });
export const abort = (runtime: Runtime, clusterId: string) =>
  change(runtime, (tx) => abortCanary(tx, clusterId, 'manual_abort'), { clusterId });

export const rolloutOf = (runtime: Runtime, clusterId: string) =>
  runtime.pools.api('cluster_rollout').where({ cluster_id: clusterId }).first();

/** The things that the node runs. */
export const thingsOf = (node: ModelNode) =>
  Object.fromEntries(
    [...node.entries.values()]
      .filter(({ kind }) => kind === THING)
      .map(({ id, body }) => [id, Buffer.from(body).toString()])
      .sort(),
  );
export async function converge(runtime: Runtime, node: ModelNode, track: Track): Promise<void> {
  node.asked = track;
  await node.heartbeat(runtime.pools.channel);
}

export async function canaryCluster(runtime: Runtime, id: string): Promise<string> {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, id, { isCanary: true });
  await setPolicy(runtime, clusterId, true);
  return clusterId;
}
