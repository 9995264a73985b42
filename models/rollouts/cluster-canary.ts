// The canary of a cluster: how changes are tried, who tries the one that runs, and what came of it. Written in the
// transaction of the publication that begins, moves or ends it, under the lock of the cluster's head.
import type { Pool } from 'pg';
import type { Finding, ROLLOUT_EVENT_KINDS, Rollout } from '../../contract/resources/rollout.ts';
import type { Tx } from '../../runtime/write.ts';
import { hint, leaveHints } from '../db/live-hint.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import { endCanaryWatches } from './vital-watch.ts';

type RolloutState = Rollout['state'];
export type RolloutOutcome = NonNullable<Rollout['outcome']>;

/** Capability of a node that can run another set of entries than its cluster. */
export const CANARY_CAPABILITY = 'canary-v1';

/** How a canary ended: whether everybody gets the candidate. */
function stateAfter(outcome: RolloutOutcome): RolloutState {
  if (outcome === 'no_canary') return 'direct';
  return outcome === 'auto_promote' || outcome === 'manual_promote' || outcome === 'policy_disabled'
    ? 'promoted'
    : 'rolled_back';
}

/**
 * Settles who tries the candidate: nodes of groups that are canaries, active, online, and able to do all of this. Answers
 * how many there are; with none nothing is written.
 */
export async function settleMembers(tx: Tx, clusterId: string, features: readonly string[]): Promise<number> {
  const { rowCount } = await tx.sql.raw<{ rowCount: number }>(
    `with able as (
       select n.id from node n join node_group g on g.id = n.node_group_id and g.is_canary
         join node_state s on s.node_id = n.id
        where n.cluster_id = :clusterId and n.status = 'active' and s.features @> :features
          and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
     ), former as (
       delete from rollout_member where cluster_id = :clusterId and exists (select from able) and node_id not in (select id from able)
     )
     insert into rollout_member (cluster_id, node_id) select :clusterId, id from able
       on conflict (cluster_id, node_id) do update set cluster_id = excluded.cluster_id`,
    { clusterId, features: [...new Set([CANARY_CAPABILITY, ...features])] } as never,
  );
  return rowCount;
}

/** A canary begins with this candidate. */
export async function noteStart(tx: Tx, clusterId: string, stable: string, candidate: string): Promise<void> {
  await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .update({
      state: 'canary',
      stable_revision: stable,
      candidate_revision: candidate,
      last_candidate_revision: candidate,
      // By the clock of the database, which is one, whoever looks at it.
      window_started_at: tx.sql.raw('now()'),
      window_ends_at: tx.sql.raw('now() + make_interval(secs => window_seconds)'),
      outcome: null,
      finding: null,
      finished_at: null,
      updated_at: tx.now,
    });
  await noteEvent(tx, clusterId, { kind: 'started', revision: candidate });
}

/** A further publication is the candidate now; the window and who takes part stay. */
export async function noteCandidate(tx: Tx, clusterId: string, candidate: string): Promise<void> {
  await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .update({ candidate_revision: candidate, last_candidate_revision: candidate, updated_at: tx.now });
}

/** The window is over, and somebody has to promote it. */
export async function noteWaiting(tx: Tx, clusterId: string): Promise<void> {
  await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .update({ state: 'awaiting_promotion', updated_at: tx.now });
  await leaveHints(tx.sql, [hint('revisions', clusterId)]);
}

/** A piece of the canary went to all nodes, and the others follow. */
export async function notePromoting(
  tx: Tx,
  clusterId: string,
  { outcome, candidate }: { outcome: RolloutOutcome; candidate: string },
): Promise<void> {
  await tx.sql('cluster_rollout').where({ cluster_id: clusterId }).update({
    promoting: outcome,
    candidate_revision: candidate,
    last_candidate_revision: candidate,
    updated_at: tx.now,
  });
}

/** The canary ended, with this revision. */
export async function noteEnd(
  tx: Tx,
  clusterId: string,
  { outcome, revision, finding }: { outcome: RolloutOutcome; revision: string; finding?: Finding | undefined },
): Promise<void> {
  const state = stateAfter(outcome);
  await endCanaryWatches(tx.sql, clusterId);
  await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .update({
      state,
      promoting: null,
      candidate_revision: null,
      outcome,
      finding: finding ? JSON.stringify(finding) : null,
      finished_at: tx.now,
      updated_at: tx.now,
    });
  await noteEvent(tx, clusterId, {
    kind: state === 'promoted' ? 'promoted' : 'rolled_back',
    revision,
    outcome,
    finding,
  });
}

/** A change went to all nodes, because none was there to try it. */
export async function noteDirect(tx: Tx, clusterId: string, revision: string): Promise<void> {
  await tx
    .sql('cluster_rollout')
    .where({ cluster_id: clusterId })
    .update({ state: 'direct', outcome: 'no_canary', finding: null, finished_at: tx.now, updated_at: tx.now });
  await noteEvent(tx, clusterId, { kind: 'direct', revision, outcome: 'no_canary' });
}

export interface RolloutEvent {
  kind: (typeof ROLLOUT_EVENT_KINDS)[number];
  revision?: string;
  outcome?: RolloutOutcome;
  finding?: Finding | undefined;
  /** Ids of the sites concerned, '' for what concerns the whole cluster. */
  sites?: readonly string[];
}

/** Adds to the history of the cluster's canaries. */
export async function noteEvent(
  tx: Tx,
  clusterId: string,
  { kind, revision, outcome, finding, sites = [] }: RolloutEvent,
): Promise<void> {
  await tx.sql.raw(
    `insert into rollout_event (id, cluster_id, at, kind, revision, outcome, finding, sites, actor)
     values (uuidv7()::text, ?, ?, ?, ?, ?, ?::jsonb, ?, ?::jsonb)`,
    [
      clusterId,
      tx.now,
      kind,
      revision ?? null,
      outcome ?? null,
      finding ? JSON.stringify(finding) : null,
      sites,
      JSON.stringify(tx.call.actor),
    ] as never,
  );
}

/** Ids of the nodes that try what the canaries of these clusters run, by cluster. */
export async function canaryMembers(
  pool: Pick<Pool, 'query'>,
  clusterIds: readonly string[],
): Promise<Map<string, Set<string>>> {
  if (clusterIds.length === 0) return new Map();
  const { rows } = await pool.query<{ cluster_id: string; nodes: string[] }>({
    name: 'canary-members',
    text: `select cluster_id, array_agg(node_id) as nodes from rollout_member where cluster_id = any($1) group by cluster_id`,
    values: [clusterIds],
  });
  return new Map(rows.map(({ cluster_id, nodes }) => [cluster_id, new Set(nodes)]));
}
