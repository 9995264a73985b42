// Bans and their feed. Feed numbers are taken under a transaction-scoped advisory lock as the last statements of the
// transaction, so the order of numbers is the order of commits (a bare nextval made a polling reader skip rows).
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- cluster_id: whose nodes receive it; null = all (platform scope).
    -- lifted_at: lifted by hand, kept one hour after expires_at.
    create table ban (
      id text primary key default uuidv7()::text,
      scope text not null check (scope in ('site', 'platform')),
      site_id text,
      cluster_id text,
      cidr cidr not null,
      reason text not null,
      source text not null check (source in ('manual', 'auto')),
      node_id text,
      trigger jsonb,
      created_by jsonb,
      distributed boolean not null default true,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      lifted_at timestamptz,
      seq bigint not null
    );
    -- The one active manual ban of an address: lifting sets lifted_at; an expired one is replaced (same row) by a renewal.
    create unique index ban_one_manual on ban (coalesce(site_id, ''), cidr) where source = 'manual' and lifted_at is null;
    create unique index ban_one_auto_site on ban (node_id, site_id, cidr) where source = 'auto' and scope = 'site' and lifted_at is null;
    create unique index ban_one_auto_platform on ban (cidr) where source = 'auto' and scope = 'platform' and lifted_at is null;
    create index ban_cidr on ban using gist (cidr inet_ops);
    create index ban_expiry on ban (expires_at);
    create index ban_manual_active on ban (expires_at) where source = 'manual' and lifted_at is null;
    create index ban_newest on ban (created_at desc, id desc) where lifted_at is null;
    create index ban_site on ban (site_id) where site_id is not null;
    create index ban_active_cluster on ban (cluster_id, id) where lifted_at is null;

    create sequence ban_seq;
    -- cluster_id '' = all clusters.
    create table ban_change (
      seq bigint primary key,
      ban_id text not null,
      cluster_id text not null,
      keep_until timestamptz not null
    );
    create index ban_change_cluster on ban_change (cluster_id, seq);
    create index ban_change_age on ban_change (keep_until);
    create table ban_head (cluster_id text primary key, seq bigint not null) with (fillfactor = 50);
    insert into ban_head (cluster_id, seq) values ('', 0);

    -- FOR SHARE by creates, FOR NO KEY UPDATE by writers of allow lists, node addresses and maxTotal.
    create table ban_guard (id boolean primary key default true check (id));
    insert into ban_guard default values;

    -- How many manual bans were active when the feed's sequence stood at at_seq. Each create takes a number, so
    -- counted + (numbers since) is never below the truth, and nobody counts or bumps a counter far from the limit.
    create table ban_count (
      id boolean primary key default true check (id),
      counted bigint not null default 0,
      at_seq bigint not null default 0
    );
    insert into ban_count default values;

    create index node_address_lookup on node_address using gist (address inet_ops);

    -- Manual bans a node reported it could not hold.
    create table ban_unapplied (
      node_id text not null references node on delete cascade,
      ban_id text not null,
      primary key (node_id, ban_id)
    );
    create index ban_unapplied_ban on ban_unapplied (ban_id);
  `);
}
