// What became of a task on the nodes of a cluster, by where they are in the feed of purges.
import type { Knex } from 'knex';
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import { expired, resultOf, skipped, unsupported } from './node-result.ts';
import { PURGE_CAPABILITY, PURGE_DAYS, PURGE_FEED, type PurgePlace } from './purge.ts';

const RECOVERS = 'Its sites are purged as a whole when it is back.';
const LIFE_MS = PURGE_DAYS * 24 * 3_600_000;

/** A node and where it is. */
export interface PurgeNode {
  id: string;
  name: string;
  enrolledAt: Date;
  active: boolean;
  /** It follows the feed. */
  able: boolean;
  /** Null: it has reported none. */
  place: PurgePlace | null;
  reachedAt: Date | null;
}

/** Nodes of a cluster, and the epoch in force. */
export interface PurgeNodes {
  epoch: bigint;
  nodes: PurgeNode[];
}

interface Row extends Omit<PurgeNode, 'place'> {
  epoch: string | null;
  sequence: string;
}

export async function readPurgeNodes(sql: Knex, clusterId: string): Promise<PurgeNodes> {
  const { rows } = await sql.raw<{ rows: Row[] }>(
    `select n.id, n.name, n.enrolled_at as "enrolledAt", n.status = 'active' as active,
        :capability = any(coalesce(s.features, '{}')) as able, f.epoch, f.sequence, f.reached_at as "reachedAt"
      from node n left join node_state s on s.node_id = n.id
        left join node_feed f on f.node_id = n.id and f.feed = :feed
     where n.cluster_id = :clusterId order by n.name, n.id`,
    { capability: PURGE_CAPABILITY, feed: PURGE_FEED, clusterId },
  );
  const state = await sql.raw<{ rows: { epoch: string }[] }>('select epoch from console_state');
  return {
    epoch: BigInt(state.rows[0]!.epoch),
    nodes: rows.map(({ epoch, sequence, ...node }) => ({
      ...node,
      place: epoch === null ? null : { epoch: BigInt(epoch), sequence: BigInt(sequence) },
    })),
  };
}

/**
 * Whether a node has a place. One of an epoch before counts for nodes in the present one: they began it with all purges that
 * the console had.
 */
export function hasReached({ place }: Pick<PurgeNode, 'place'>, epoch: bigint, wanted: PurgePlace): boolean {
  if (place === null) return false;
  if (place.epoch === wanted.epoch) return place.sequence >= wanted.sequence;
  return place.epoch === epoch && wanted.epoch < epoch;
}

/** The result of each node that was there when the task was created. */
export function resultsAt(
  { epoch, nodes }: PurgeNodes,
  task: PurgePlace & Pick<CacheTask, 'type'> & { createdAt: Date },
  now: Date,
): CacheTaskNode[] {
  const isOld = now.getTime() - task.createdAt.getTime() > LIFE_MS;
  return nodes
    .filter(({ enrolledAt }) => enrolledAt <= task.createdAt)
    .map((node) => {
      const reached = hasReached(node, epoch, task);
      if (reached) return resultOf(node, 'succeeded', { finishedAt: node.reachedAt?.toISOString() ?? null });
      if (!node.active) return skipped(node);
      if (!node.able) return unsupported(node, task.type);
      return isOld ? expired(node, RECOVERS) : resultOf(node, 'pending');
    });
}
