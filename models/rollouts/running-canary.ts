// The canaries that run, and how the nodes that take part are.
import type { Knex } from 'knex';
import type { RolloutPolicy } from '../../contract/resources/rollout.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** Canaries looked at in one go. */
const MAX_CANARIES = 200;

export interface RunningCanary {
  clusterId: string;
  clusterName: string;
  state: 'canary' | 'awaiting_promotion';
  /** Pieces of it are on all nodes already. */
  promoting: boolean;
  policy: Pick<
    RolloutPolicy,
    'autoPromote' | 'windowSeconds' | 'errorRatioMultiplier' | 'errorRatioFloor' | 'minRequests'
  >;
  /** Decimal strings. */
  stableRevision: string;
  candidateRevision: string;
  windowStartedAt: Date;
  windowEndsAt: Date;
  /** When it was read, by the clock that the window is measured with. */
  readAt: Date;
}

export async function runningCanaries(sql: Knex): Promise<RunningCanary[]> {
  const { rows } = await sql.raw<{ rows: RunningCanary[] }>(
    `select c.id as "clusterId", c.name as "clusterName", r.state, r.promoting is not null as promoting, r.stable_revision::text as "stableRevision",
         r.candidate_revision::text as "candidateRevision", r.window_started_at as "windowStartedAt",
         r.window_ends_at as "windowEndsAt", now() as "readAt",
         jsonb_build_object('autoPromote', r.auto_promote, 'windowSeconds', r.window_seconds,
           'errorRatioMultiplier', r.error_ratio_multiplier, 'errorRatioFloor', r.error_ratio_floor,
           'minRequests', r.min_requests) as policy
       from cluster_rollout r join cluster c on c.id = r.cluster_id
      where r.candidate_revision is not null order by r.window_started_at limit ${MAX_CANARIES}`,
  );
  return rows;
}

/** A node that takes part. */
export interface Member {
  id: string;
  name: string;
  /** Disabled since it began: nobody's fault. */
  disabled: boolean;
  online: boolean;
  healthy: boolean;
  /** Whether it runs the candidate. */
  applied: boolean;
  /** Why it cannot apply something of the candidate; empty: it can. */
  failure: string;
}

/** `now`: the time at which who was heard of last is online or not. */
export async function membersOf(sql: Knex, clusterId: string, now: Date): Promise<Member[]> {
  const { rows } = await sql.raw<{ rows: Member[] }>(
    `select n.id, n.name, n.status <> 'active' as disabled,
         coalesce(s.last_seen_at > ?::timestamptz - make_interval(secs => ${ONLINE_SECONDS}), false) as online,
         coalesce(s.data_plane_healthy, false) as healthy,
         coalesce((s.epoch, s.track, s.revision) = (h.epoch, 'C', h.canary_revision), false) as applied,
         coalesce((select f.kind || ' ' || f.id || ': ' || f.reason
           from jsonb_to_recordset(s.failed) as f(kind text, id text, reason text)
          where exists (select from config_entry e where e.cluster_id = n.cluster_id and e.track = 'C' and e.kind = f.kind
            and e.resource_id = f.id and e.to_revision is null) limit 1), '') as failure
       from rollout_member m join node n on n.id = m.node_id
       join cluster_head h on h.cluster_id = n.cluster_id
       left join node_state s on s.node_id = n.id
      where m.cluster_id = ? order by n.name, n.id`,
    [now, clusterId],
  );
  return rows;
}
