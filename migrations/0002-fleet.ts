// Regions, clusters, groups, nodes and how they are known: the internal CA, certificates, enrollment tokens.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table region (
      id text primary key default uuidv7()::text,
      name text not null,
      code text not null unique,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );

    -- client_ip, unknown_hosts: settings objects of the contract; null = defaults.
    -- cache, ports, dns and rollout settings get their columns with their features.
    create table cluster (
      id text primary key default uuidv7()::text,
      name text not null unique,
      description text not null default '',
      client_ip jsonb,
      unknown_hosts jsonb,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );

    create table node_group (
      id text primary key default uuidv7()::text,
      cluster_id text not null references cluster on delete cascade,
      name text not null,
      is_default boolean not null default false,
      is_canary boolean not null default false,
      region_id text references region on delete set null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      unique (cluster_id, name)
    );
    create unique index node_group_default on node_group (cluster_id) where is_default;

    -- What people set and what enrollment fixed; what the node reports lives in node_state.
    create table node (
      id text primary key default uuidv7()::text,
      cluster_id text not null references cluster,
      node_group_id text not null references node_group,
      name text not null,
      status text not null default 'active' check (status in ('active', 'disabled')),
      enrolled_at timestamptz not null default now(),
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create index node_cluster on node (cluster_id);
    create index node_by_group on node (node_group_id);

    -- Flushed at most once a second per process; no index on a changing column.
    create table node_state (
      node_id text primary key references node on delete cascade,
      last_seen_at timestamptz,
      info jsonb not null default '{}',
      features text[] not null default '{}',
      metrics jsonb,
      ban_status jsonb,
      remote_address text,
      auth_error text,
      data_plane_healthy boolean not null default false,
      data_plane_instance text,
      message text not null default '',
      missing_features text[] not null default '{}',
      -- Position of the configuration the node reported, and of the ban feed.
      epoch bigint,
      track text,
      revision bigint not null default 0,
      set_hash bytea,
      failed jsonb not null default '[]',
      applied_at timestamptz,
      ban_epoch bigint,
      ban_sequence bigint not null default 0,
      bans_applied_at timestamptz,
      certificate_not_after timestamptz,
      reported_at timestamptz
    ) with (fillfactor = 50);

    -- Addresses of nodes: what bans may not cover. Kept apart from node_state because ban checks lock on it.
    create table node_address (
      node_id text not null references node on delete cascade,
      cluster_id text not null references cluster,
      address inet not null,
      source text not null check (source in ('reported', 'remote', 'configured')),
      primary key (node_id, address, source)
    );
    create index node_address_cluster on node_address (cluster_id);

    -- private_key is sealed with the master key (row id = AAD).
    create table certificate_authority (
      id text primary key default uuidv7()::text,
      certificate_pem text not null,
      certificate_sha256 bytea not null,
      private_key text not null,
      created_at timestamptz not null default now()
    );

    create table node_certificate (
      serial text primary key,
      node_id text,
      state text not null check (state in ('active', 'superseded', 'revoked')),
      issued_at timestamptz not null default now(),
      not_after timestamptz not null,
      first_used_at timestamptz,
      revoked_at timestamptz,
      fingerprint text not null
    );
    create index node_certificate_node on node_certificate (node_id);

    create table enrollment_token (
      id text primary key default uuidv7()::text,
      cluster_id text not null references cluster on delete cascade,
      node_group_id text references node_group on delete set null,
      node_name text,
      prefix text not null,
      secret_hash bytea not null unique,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      used_at timestamptz,
      node_id text references node on delete set null
    );
  `);
}
