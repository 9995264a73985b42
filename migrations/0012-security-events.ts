// What nodes report about attacks: events, kept by day, the levels of the moment, and the alerts they raise.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Of a day each, UTC; a partition is made ahead and dropped whole. level: 0 normal to 4 captcha.
    create table security_event (
      id text not null default uuidv7()::text,
      occurred_at timestamptz not null,
      node_id text not null,
      site_id text not null,
      kind text not null check (kind in ('site_level', 'path_level', 'ip_banned')),
      level smallint not null,
      previous_level smallint not null,
      path text,
      address text,
      metric text,
      observed double precision,
      threshold double precision,
      top_ips jsonb not null,
      top_paths jsonb not null,
      primary key (occurred_at, id)
    ) partition by range (occurred_at);
    create index security_event_site on security_event (site_id, occurred_at desc, id desc);

    -- Names of events by their nodes, for as long as one can be reported again.
    create table security_event_seen (
      node_id text not null references node on delete cascade,
      event_id text not null,
      seen_at timestamptz not null,
      primary key (node_id, event_id)
    );
    create index security_event_seen_age on security_event_seen (seen_at);

    -- Makes the partition of a day unless it is there. Attaching one lets writers of others go on.
    create function security_event_partition(p_day date) returns void
    language plpgsql as $$
    declare
      v_name text := 'security_event_' || to_char(p_day, 'YYYYMMDD');
    begin
      if to_regclass(v_name) is not null then return; end if;
      perform pg_advisory_xact_lock(1398162182, 1);
      if to_regclass(v_name) is not null then return; end if;
      execute format('create table %I (like security_event including defaults including constraints)', v_name);
      execute format('alter table security_event attach partition %I for values from (%L) to (%L)', v_name,
        p_day::timestamp at time zone 'UTC', (p_day + 1)::timestamp at time zone 'UTC');
    end $$;
    select security_event_partition((now() at time zone 'UTC')::date + d) from generate_series(-1, 7) d;

    -- When each node last told its levels, and the sites that were above normal, or had escalated paths, then.
    create table node_security (
      node_id text primary key references node on delete cascade,
      reported_at timestamptz not null,
      dropped bigint not null default 0
    ) with (fillfactor = 50);
    create table site_security (
      node_id text not null references node on delete cascade,
      site_id text not null references site on delete cascade,
      level smallint not null,
      -- [{ path, level }]
      paths jsonb not null,
      since timestamptz not null,
      primary key (node_id, site_id)
    );
    create index site_security_site on site_security (site_id);

    -- resolved_at null = it goes on.
    create table alert (
      id text primary key default uuidv7()::text,
      kind text not null,
      site_id text,
      detail jsonb not null default '{}',
      started_at timestamptz not null,
      resolved_at timestamptz
    );
    create unique index alert_open on alert (kind, site_id) where resolved_at is null;
    create index alert_latest on alert (kind, site_id, started_at desc);
    create index alert_age on alert (started_at);
    -- Raised too soon after the last one: fires once the window is over, unless the site has recovered.
    create table alert_held (
      kind text not null,
      site_id text not null,
      since timestamptz not null,
      primary key (kind, site_id)
    );

    -- The longest scan ban that a cluster's nodes can have made: a global unban ends all of theirs.
    alter table cluster add column longest_scan_ban_seconds integer not null default 0;
  `);
}
