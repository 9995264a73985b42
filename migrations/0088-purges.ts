// Purges of stored responses, as nodes get them, and the tasks that people see of them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The last number of each cluster. Its row is locked until a purge is committed: numbers are in the order of commits.
    create table purge_head (
      cluster_id text primary key references cluster on delete cascade,
      seq bigint not null
    );
    -- body: a svc.node.v1.Purge. After a week a purge is folded into purge_floor.
    create table purge (
      cluster_id text not null references cluster on delete cascade,
      seq bigint not null,
      epoch bigint not null,
      site_ids text[] not null,
      body bytea not null check (octet_length(body) <= 262144),
      created_at timestamptz not null,
      primary key (cluster_id, seq)
    );
    create index purge_created on purge (created_at);
    -- Everything of a site that was stored before a place is purged. Old purges of the site end here.
    create table purge_floor (
      cluster_id text not null references cluster on delete cascade,
      site_id text not null references site on delete cascade,
      seq bigint not null,
      epoch bigint not null,
      primary key (cluster_id, site_id)
    );
    create index purge_floor_seq on purge_floor (cluster_id, seq);

    create table cache_task (
      id text primary key default uuidv7()::text,
      type text not null check (type in ('url', 'prefix', 'site', 'host', 'tag', 'prefetch', 'sitemap')),
      targets text[] not null,
      -- [{"id": …, "name": …}] as of then.
      sites jsonb not null,
      variants text[] not null,
      max_urls integer,
      source text not null check (source in ('user', 'recovery', 'purge_method')),
      created_by_name text not null,
      created_at timestamptz not null,
      finished_at timestamptz
    );
    create index cache_task_created on cache_task (created_at);
    create table cache_task_site (
      site_id text not null references site on delete cascade,
      task_id text not null references cache_task on delete cascade,
      primary key (site_id, task_id)
    );
    create index cache_task_site_task on cache_task_site (task_id);
    -- Where a task is in the feed of a cluster; nodes are the results, null until all are there.
    create table cache_task_place (
      task_id text not null references cache_task on delete cascade,
      cluster_id text not null references cluster on delete cascade,
      epoch bigint not null,
      seq bigint not null,
      nodes jsonb,
      primary key (task_id, cluster_id)
    );
    create index cache_task_place_open on cache_task_place (cluster_id, seq) where nodes is null;

    -- {"usedBytes": …, "maxBytes": …, "measuredAt": …} of the last heartbeat with it.
    alter table node_state add column cache_usage jsonb;
  `);
}
