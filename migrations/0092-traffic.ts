// Statistics: sums of each site, each node and all sites by minute, window of five minutes, hour and UTC day.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- What was stored and is not in the sums of nodes and of all sites yet. id '' with the kind all.
    create table traffic_mark (
      mark bigint generated always as identity primary key,
      kind text not null check (kind in ('all', 'node')),
      id text not null,
      minute timestamptz not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      cache_hits numeric not null,
      cache_misses numeric not null,
      s1 numeric not null,
      s2 numeric not null,
      s3 numeric not null,
      s4 numeric not null,
      s5 numeric not null,
      figures jsonb
    );

    -- Windows whose sites wait to be summed; a generation more with each mark.
    create table traffic_dirty (
      window_start timestamptz primary key,
      generation bigint not null default 1
    );
    -- Windows that end by then are in the sums of sites, but for late ones.
    create table traffic_state (
      singleton boolean primary key default true check (singleton),
      summed_until timestamptz not null
    );
    insert into traffic_state (summed_until)
      values (date_bin('5 minutes', now(), timestamptz '2000-01-01 00:00:00+00'));

    -- figures: counts by key. s:200 a status, n:cache.HIT what the edge counts by name, l:5 a bucket of the latency.
    create table traffic_hour (
      kind text not null check (kind in ('all', 'node', 'site')),
      id text not null,
      starts_at timestamptz not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      cache_hits numeric not null,
      cache_misses numeric not null,
      s1 numeric not null,
      s2 numeric not null,
      s3 numeric not null,
      s4 numeric not null,
      s5 numeric not null,
      figures jsonb,
      primary key (kind, id, starts_at)
    );
    create index traffic_hour_time on traffic_hour (kind, starts_at);
    create table traffic_day (like traffic_hour including all);
    -- Only all and node: minutes of sites are in usage_minute.
    create table traffic_minute (like traffic_hour including all);
    create table traffic_window (like traffic_hour including all) partition by range (starts_at);
    create index traffic_minute_age on traffic_minute (starts_at);
    create index traffic_hour_age on traffic_hour (starts_at);
    create index traffic_day_age on traffic_day (starts_at);
  `);
}
