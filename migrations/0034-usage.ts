// Usage that is exact: what nodes counted, each batch once, and the records of five minutes, hours and days made of it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- How far the batches of an enrolment are stored. Outlives the node: its numbers are never used again.
    create table usage_cursor (
      node_id text primary key,
      sequence bigint not null default 0,
      -- The console has all that the node counted before it; null: the node never said.
      watermark timestamptz,
      stored_at timestamptz
    ) with (fillfactor = 50);
    insert into usage_cursor (node_id, sequence) select node_id, sequence from node_statistics;

    -- Times of which something is missing for good. told: the node said so; skipped: batches that no node has any more.
    create table usage_gap (
      id bigint generated always as identity primary key,
      node_id text not null,
      starts_at timestamptz not null,
      ends_at timestamptz not null,
      reason text not null check (reason in ('told', 'skipped')),
      recorded_at timestamptz not null default now()
    );
    create index usage_gap_time on usage_gap (ends_at);

    -- Appended, never updated: sums of the batches that one process took in a second. site_id '' = of no site.
    create table usage_minute (
      minute timestamptz not null,
      site_id text not null,
      cluster_id text not null,
      requests bigint not null,
      bytes_sent bigint not null,
      bytes_received bigint not null,
      -- Counts by status code and by name; answers by the bucket of their time.
      statuses jsonb,
      counts jsonb,
      latency bigint[]
    ) partition by range (minute);
    create index usage_minute_time on usage_minute (minute);
    create index usage_minute_site on usage_minute (site_id, minute);

    -- What was appended and is not noted yet in usage_dirty and cluster_request_minute; requests of sites.
    create table usage_mark (
      id bigint generated always as identity primary key,
      cluster_id text not null,
      minute timestamptz not null,
      requests bigint not null
    );
    -- Windows that wait for recomputation; a generation more with each mark.
    create table usage_dirty (
      window_start timestamptz primary key,
      generation bigint not null default 1
    );

    create sequence usage_seq;
    create table usage_record (
      window_start timestamptz not null,
      site_id text not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      revision integer not null default 1,
      seq bigint not null,
      updated_at timestamptz not null,
      primary key (window_start, site_id)
    ) partition by range (window_start);
    create index usage_record_seq on usage_record (seq);
    create index usage_record_site on usage_record (site_id, window_start);

    create table usage_hour (
      starts_at timestamptz not null,
      site_id text not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      primary key (starts_at, site_id)
    );
    create table usage_day (like usage_hour including all);

    create table usage_state (
      singleton boolean primary key default true check (singleton),
      complete_until timestamptz
    );
    insert into usage_state default values;

    -- Nodes may report what they counted for a site before it was deleted.
    create table deleted_site (
      site_id text primary key,
      cluster_id text not null,
      deleted_at timestamptz not null
    );
    create index deleted_site_age on deleted_site (deleted_at);

    -- Minutes stored by releases before this one are in site_request_minute, in no release are they in both.
    create view site_minute as
      select site_id, minute, sum(requests)::bigint as requests from (
        select site_id, minute, requests from usage_minute
        union all select site_id, minute, requests from site_request_minute) m
       group by site_id, minute;
  `);
}
