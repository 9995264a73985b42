// How a cluster tries changes out, and the canary that runs or ran last: one row, and defaults without one. Publications and
// canaries write their part of it (models/canary), people the policy.
import type { Knex } from 'knex';
import type { Finding, Rollout, RolloutPolicy } from '../../contract/resources/rollout.ts';

/** Policy of a cluster without a row: one from before new clusters got theirs (createRolloutPolicy). */
export const DEFAULT_ROLLOUT_POLICY: Readonly<RolloutPolicy> = {
  enabled: false,
  windowSeconds: 300,
  autoPromote: true,
  errorRatioMultiplier: 2,
  errorRatioFloor: 0.05,
  minRequests: 100,
  undoDirect: false,
};

const POLICY_COLUMNS: Readonly<Record<keyof RolloutPolicy, string>> = {
  enabled: 'enabled',
  windowSeconds: 'window_seconds',
  autoPromote: 'auto_promote',
  errorRatioMultiplier: 'error_ratio_multiplier',
  errorRatioFloor: 'error_ratio_floor',
  minRequests: 'min_requests',
  undoDirect: 'undo_direct',
};

/** Numbers of revisions are decimal strings. */
export interface RolloutRow {
  clusterId: string;
  clusterName: string;
  policy: RolloutPolicy;
  /** Of the policy; of the cluster where it was never set. */
  policyUpdatedAt: Date;
  state: Rollout['state'];
  /** What nodes outside of a canary run. */
  stableRevision: string;
  /** What they ran when the canary began. */
  startedFrom: string;
  candidateRevision: string | null;
  lastCandidateRevision: string | null;
  windowStartedAt: Date | null;
  windowEndsAt: Date | null;
  outcome: Rollout['outcome'];
  finding: Partial<Finding> | null;
  finishedAt: Date | null;
  updatedAt: Date;
}

/** Undefined: there is no such cluster. */
export async function readRollout(sql: Knex, clusterId: string): Promise<RolloutRow | undefined> {
  const policy = Object.entries(POLICY_COLUMNS).map(([field, column]) => `'${field}', r.${column}`);
  const { rows } = await sql.raw<{ rows: (Omit<RolloutRow, 'policy'> & { policy: RolloutPolicy | null })[] }>(
    `select c.id as "clusterId", c.name as "clusterName",
         case when r.cluster_id is not null then jsonb_build_object(${policy.join(', ')}) end as policy,
         coalesce(r.policy_updated_at, c.created_at) as "policyUpdatedAt", coalesce(r.state, 'idle') as state,
         coalesce(h.revision, 0)::text as "stableRevision",
         coalesce(r.stable_revision, h.revision, 0)::text as "startedFrom",
         r.candidate_revision::text as "candidateRevision", r.last_candidate_revision::text as "lastCandidateRevision",
         r.window_started_at as "windowStartedAt", r.window_ends_at as "windowEndsAt", r.outcome, r.finding,
         r.finished_at as "finishedAt", coalesce(r.updated_at, c.created_at) as "updatedAt"
       from cluster c left join cluster_head h on h.cluster_id = c.id left join cluster_rollout r on r.cluster_id = c.id
      where c.id = ?`,
    [clusterId],
  );
  const [row] = rows;
  return row && { ...row, policy: row.policy ?? DEFAULT_ROLLOUT_POLICY };
}

/** Saves the policy; whoever does holds the cluster's head. */
export async function writeRolloutPolicy(
  sql: Knex,
  clusterId: string,
  policy: RolloutPolicy,
  { policyUpdatedAt, now }: { policyUpdatedAt: Date; now: Date },
): Promise<void> {
  const fields = Object.entries(POLICY_COLUMNS).map(([field, column]) => [
    column,
    policy[field as keyof RolloutPolicy],
  ]);
  const values = { ...Object.fromEntries(fields), policy_updated_at: policyUpdatedAt, updated_at: now };
  await sql('cluster_rollout')
    .insert({ cluster_id: clusterId, ...values })
    .onConflict('cluster_id')
    .merge(values);
}

/**
 * The policy of a new cluster: changes to all nodes are undone automatically in the first cluster of an installation; each
 * further one follows the cluster before it.
 */
export async function createRolloutPolicy(sql: Knex, clusterId: string, now: Date): Promise<void> {
  await sql.raw(
    `insert into cluster_rollout (cluster_id, updated_at, undo_direct)
     select :clusterId, :now::timestamptz, coalesce((select coalesce(r.undo_direct, false) from cluster c
         left join cluster_rollout r on r.cluster_id = c.id
        where c.id <> :clusterId order by c.created_at desc, c.id desc limit 1), true)`,
    { clusterId, now },
  );
}

const A_DAY = "interval '24 hours'";

export interface RolloutAttention {
  kind: 'canary_rolled_back' | 'canary_awaiting_promotion' | 'canary_running' | 'changes_undone';
  clusterId: string;
  clusterName: string;
  revision: string | null;
  at: Date | null;
  /** Changes that were undone, or given up. */
  count: number;
}

/** Clusters whose canary runs, waits for somebody, or was taken back within a day; and where changes were undone in one. */
export async function rolloutAttention(sql: Knex, clusterId: string | null): Promise<RolloutAttention[]> {
  const { rows } = await sql.raw<{ rows: RolloutAttention[] }>(
    `select * from (
       select case state when 'rolled_back' then 'canary_rolled_back' when 'canary' then 'canary_running'
             else 'canary_awaiting_promotion' end as kind,
           c.id as "clusterId", c.name as "clusterName", coalesce(candidate_revision, last_candidate_revision)::text as revision,
           case state when 'rolled_back' then finished_at when 'canary' then window_started_at else window_ends_at end as at,
           0 as count
         from cluster_rollout r join cluster c on c.id = r.cluster_id
        where candidate_revision is not null and state in ('canary', 'awaiting_promotion')
           or state = 'rolled_back' and finished_at > now() - ${A_DAY}
       union all
       select 'changes_undone', c.id, c.name, max(e.revision)::text, min(e.at), count(*)::int
         from rollout_event e join cluster c on c.id = e.cluster_id
        where e.kind in ('undone', 'undo_stopped') and e.at > now() - ${A_DAY} group by c.id) a
      where ?::text is null or "clusterId" = ? order by at, "clusterName"`,
    [clusterId, clusterId] as never,
  );
  return rows;
}
