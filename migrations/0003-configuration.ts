// Published configuration: append-only entries with content-addressed bodies, numbered revisions, and the head of each
// cluster. Track 'S' is what everybody runs; 'C' is the overlay a canary will use.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Locked FOR NO KEY UPDATE by each publication of the cluster. Sums are 32 bytes, big-endian (proto/entry-hash.ts).
    -- delta_floor: entries closed up to it may be swept, so a difference or a snapshot can start at it, not before.
    create table cluster_head (
      cluster_id text primary key references cluster on delete cascade,
      epoch bigint not null,
      revision bigint not null default 0,
      set_hash bytea not null default decode(repeat('00', 32), 'hex'),
      entry_count bigint not null default 0,
      canary_revision bigint,
      canary_set_hash bytea,
      canary_entry_count bigint,
      delta_floor bigint not null default 0,
      published_at timestamptz
    ) with (fillfactor = 50);

    -- Bucket sums of the received set; absent = zero. Read whole only for a repair.
    create table config_bucket (
      cluster_id text not null references cluster on delete cascade,
      track text not null check (track in ('S', 'C')),
      bucket smallint not null check (bucket between 0 and 4095),
      sum bytea not null,
      primary key (cluster_id, track, bucket)
    ) with (fillfactor = 70);

    -- How many live entries of the cluster need a capability.
    create table config_feature (
      cluster_id text not null references cluster on delete cascade,
      track text not null check (track in ('S', 'C')),
      feature text not null,
      count bigint not null,
      primary key (cluster_id, track, feature)
    );

    create table config_blob (
      hash bytea primary key,
      body bytea not null,
      touched_at timestamptz not null default now()
    );
    create index config_blob_touched on config_blob (touched_at);

    -- blob_hash null = tombstone (an overlay that deletes). to_revision null = live.
    create table config_entry (
      cluster_id text not null references cluster on delete cascade,
      track text not null check (track in ('S', 'C')),
      kind text not null,
      resource_id text not null,
      bucket smallint not null check (bucket between 0 and 4095),
      from_revision bigint not null,
      to_revision bigint,
      blob_hash bytea references config_blob,
      features text[] not null default '{}',
      refs text[] not null default '{}',
      compiler_version integer not null,
      source text not null check (source in ('save', 'rollback', 'recompile')),
      primary key (cluster_id, track, kind, resource_id, from_revision)
    );
    create index config_entry_from on config_entry (cluster_id, from_revision);
    create index config_entry_to on config_entry (cluster_id, to_revision) where to_revision is not null;
    create index config_entry_resource on config_entry (cluster_id, resource_id, kind, from_revision);
    create index config_entry_blob on config_entry (blob_hash);
    -- One live row of a name (its bucket follows from the name), and the live rows of a bucket. Made last: among indexes
    -- that look equal, as they do with the statistics of an empty table, the planner takes the youngest.
    create unique index config_entry_live on config_entry (cluster_id, track, bucket, kind, resource_id)
      where to_revision is null;

    -- People see the latest 200; older rows stay as far back as deltas reach, because a base is checked by its hash.
    create table config_revision (
      cluster_id text not null references cluster on delete cascade,
      epoch bigint not null,
      number bigint not null,
      reason text not null,
      params jsonb not null default '{}',
      actor jsonb not null,
      set_hash bytea not null,
      entry_count bigint not null,
      canary_set_hash bytea,
      canary_entry_count bigint,
      changed jsonb not null default '[]',
      created_at timestamptz not null default now(),
      primary key (cluster_id, epoch, number)
    );

    -- Platform-wide changes: committed with the change, published per cluster afterwards in its own transaction.
    create table publish_request (
      id bigint generated always as identity primary key,
      cluster_id text not null references cluster on delete cascade,
      entries jsonb not null,
      reason text not null,
      params jsonb not null default '{}',
      actor jsonb not null,
      created_at timestamptz not null default now()
    );
    create index publish_request_cluster on publish_request (cluster_id, id);

    -- Names of sites for revision lists, also after the site is gone.
    create table site_label (site_id text primary key, name text not null);
  `);
}
