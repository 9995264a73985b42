// Who may publish what some node cannot follow: an operator may (the node keeps its configuration and shows that it
// needs an upgrade), machines may not.
import type { Knex } from 'knex';
import type { Capability } from '../../contract/capabilities.ts';
import { fail } from '../../contract/errors.ts';
import type { Tx } from '../../runtime/write.ts';

const SHOWN_NODES = 5;

/**
 * Throws NODE_CAPABILITY_REQUIRED when the call is a service account's or the console's own and an active node of the
 * cluster lacks one of the capabilities.
 */
export async function assertCapabilities(tx: Tx, clusterId: string, needed: readonly string[]): Promise<void> {
  const { type } = tx.call.actor;
  if (needed.length === 0 || (type !== 'service_account' && type !== 'system')) return;
  const { rows } = await tx.sql.raw<{ rows: { name: string; lacking: string[] }[] }>(
    `select n.name, l.lacking from node n
       left join node_state s on s.node_id = n.id
       cross join lateral (
         select array_agg(f order by f) as lacking from unnest(?::text[]) f where not f = any(coalesce(s.features, '{}'))) l
      where n.cluster_id = ? and n.status = 'active' and l.lacking is not null
      order by n.name`,
    [needed as never, clusterId],
  );
  if (rows.length === 0) return;
  const features = [...new Set(rows.flatMap(({ lacking }) => lacking))].sort();
  const names = rows.slice(0, SHOWN_NODES).map(({ name }) => name);
  const rest = rows.length - names.length;
  fail('NODE_CAPABILITY_REQUIRED', {
    features: features.join(','),
    nodes: [...names, ...(rest > 0 ? [`+${rest}`] : [])].join(','),
  });
}

/** Capabilities that live entries of the owner need in the cluster, of all kinds but these; what a canary tries counts. */
export async function featuresOfOwner(
  sql: Knex,
  clusterId: string,
  owner: string,
  except: readonly string[],
): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { feature: string }[] }>(
    `select distinct unnest(features) as feature from config_entry
      where owner = ? and cluster_id = ? and to_revision is null and kind <> all(?::text[])`,
    [owner, clusterId, except as never],
  );
  return rows.map(({ feature }) => feature);
}

/** Whether an active node of the cluster, or of any with null, lacks the capability. */
export async function someNodeLacks(sql: Knex, clusterId: string | null, capability: Capability): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: { lacks: boolean }[] }>(
    `select exists (
       select from node n left join node_state s on s.node_id = n.id
        where n.status = 'active' and (?::text is null or n.cluster_id = ?)
          and not ? = any(coalesce(s.features, '{}'))) as lacks`,
    [clusterId as never, clusterId as never, capability],
  );
  return rows[0]!.lacks;
}
