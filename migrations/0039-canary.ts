// Canaries: how changes of a cluster are tried out, which one is being tried, by which nodes, and what came of it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- A cluster without a row has the defaults and never tried anything. candidate_revision is null unless a canary runs:
    -- then it is cluster_head.canary_revision.
    create table cluster_rollout (
      cluster_id text primary key references cluster on delete cascade,
      enabled boolean not null default false,
      window_seconds integer not null default 300,
      auto_promote boolean not null default true,
      error_ratio_multiplier double precision not null default 2,
      error_ratio_floor double precision not null default 0.05,
      min_requests integer not null default 100,
      undo_direct boolean not null default false,
      policy_updated_at timestamptz,
      state text not null default 'idle'
        check (state in ('idle', 'canary', 'awaiting_promotion', 'promoted', 'rolled_back', 'direct')),
      stable_revision bigint,
      candidate_revision bigint,
      last_candidate_revision bigint,
      window_started_at timestamptz,
      window_ends_at timestamptz,
      outcome text,
      finding jsonb,
      finished_at timestamptz,
      updated_at timestamptz not null default now()
    ) with (fillfactor = 70);
    create index cluster_rollout_running on cluster_rollout (cluster_id) where candidate_revision is not null;

    -- Who takes part in the canary that runs, or took part in the last one: settled when it begins.
    create table rollout_member (
      cluster_id text not null references cluster on delete cascade,
      node_id text not null references node on delete cascade,
      primary key (cluster_id, node_id)
    );

    -- What came of canaries, and what was undone.
    create table rollout_event (
      id text primary key,
      cluster_id text not null references cluster on delete cascade,
      at timestamptz not null,
      kind text not null check (kind in ('started', 'promoted', 'rolled_back', 'direct', 'undone', 'undo_stopped')),
      revision bigint,
      outcome text,
      finding jsonb,
      -- Ids of sites; '' for what concerns the whole cluster.
      sites text[] not null default '{}',
      actor jsonb not null
    );
    create index rollout_event_cluster on rollout_event (cluster_id, at desc, id desc);

    -- Whether nodes outside of a canary got another revision with it.
    alter table config_revision add column stable boolean not null default true;

    -- What each node should run: its cluster's candidate where it takes part in a canary.
    create view node_target as
      select n.id as node_id, h.epoch, case when m.node_id is null then 'S' else 'C' end as track,
          case when m.node_id is null then h.revision else h.canary_revision end as revision
        from node n join cluster_head h on h.cluster_id = n.cluster_id
        left join rollout_member m
          on h.canary_revision is not null and m.cluster_id = n.cluster_id and m.node_id = n.id;

    -- Sums modulo 2^256, and how many entries need a capability: those of what a canary runs as differences.
    comment on table config_bucket is 'track C: what is added to the sum of S';
    comment on table config_feature is 'track C: what is added to the count of S';
  `);
}
