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

    -- The condition cc_mitigation of the sites: above normal on an online node, or (p_left) reported to have left it.
    create function cc_alerts(p_now timestamptz, p_sites text[], p_left text[]) returns void
    language plpgsql as $$
    declare
      v_site text;
      v_level smallint;
      v_open boolean;
      v_last timestamptz;
    begin
      for v_site in select distinct s from unnest(p_sites || p_left) s order by 1 loop
        perform pg_advisory_xact_lock(hashtextextended(v_site, 1398162182));
        select coalesce(max(x.level), 0) into v_level
          from site_security x join node n on n.id = x.node_id and n.status = 'active'
          join node_state s on s.node_id = n.id
         where x.site_id = v_site and s.last_seen_at > p_now - interval '45 seconds';
        select coalesce(bool_or(resolved_at is null), false), max(started_at) into v_open, v_last
          from alert where kind = 'cc_mitigation' and site_id = v_site;
        if v_level > 0 or v_site = any(p_left) then
          if not v_open and (v_last is null or v_last <= p_now - interval '15 minutes') then
            insert into alert (kind, site_id, detail, started_at)
              values ('cc_mitigation', v_site, jsonb_build_object('level', v_level), p_now);
            v_open := true;
            delete from alert_held where kind = 'cc_mitigation' and site_id = v_site;
          elsif not v_open and v_level > 0 then
            insert into alert_held (kind, site_id, since) values ('cc_mitigation', v_site, p_now) on conflict do nothing;
          end if;
        end if;
        if v_level = 0 then
          update alert set resolved_at = p_now
            where kind = 'cc_mitigation' and site_id = v_site and resolved_at is null;
          delete from alert_held where kind = 'cc_mitigation' and site_id = v_site;
        end if;
      end loop;
    end $$;

    -- A node's report: new events of its cluster's sites, and (p_sites not null) everything that is above normal there.
    create function security_report(
      p_node text, p_cluster text, p_now timestamptz, p_events jsonb, p_sites jsonb, p_dropped bigint
    ) returns void
    language plpgsql as $$
    declare
      v_day date;
      v_left text[];
      -- Sites above normal at the node before; then those where that changed.
      v_above text[];
    begin
      perform 1 from node where id = p_node for key share;
      if not found then return; end if;
      -- Reports of one node wait for each other here.
      insert into node_security as s (node_id, reported_at, dropped) values (p_node, p_now, p_dropped)
        on conflict (node_id) do update set dropped = excluded.dropped,
          reported_at = case when p_sites is null then s.reported_at else excluded.reported_at end;
      for v_day in
        select distinct (e."occurredAt" at time zone 'UTC')::date from jsonb_to_recordset(p_events) e("occurredAt" timestamptz)
      loop
        perform security_event_partition(v_day);
      end loop;
      with incoming as (
        select distinct on (e.id) e.* from jsonb_to_recordset(p_events) as e(
            id text, "siteId" text, "occurredAt" timestamptz, kind text, level smallint, "previousLevel" smallint,
            path text, address text, metric text, observed double precision, threshold double precision,
            "topIps" jsonb, "topPaths" jsonb)
          join site s on s.id = e."siteId" and s.cluster_id = p_cluster
         order by e.id
      ), fresh as (
        insert into security_event_seen (node_id, event_id, seen_at) select p_node, id, p_now from incoming
          on conflict do nothing returning event_id
      ), stored as (
        insert into security_event (occurred_at, node_id, site_id, kind, level, previous_level, path, address, metric,
            observed, threshold, top_ips, top_paths)
          select "occurredAt", p_node, "siteId", kind, level, "previousLevel", path, address, metric, observed,
            threshold, "topIps", "topPaths"
          from incoming join fresh on event_id = incoming.id
          returning site_id, kind, level, previous_level
      )
      select coalesce(array_agg(distinct site_id), '{}') into v_left
        from stored where kind = 'site_level' and previous_level = 0 and level > 0;
      select coalesce(array_agg(site_id), '{}') into v_above from site_security where node_id = p_node and level > 0;
      if p_sites is not null then
        delete from site_security x where node_id = p_node and not exists (
          select from jsonb_to_recordset(p_sites) as r("siteId" text) where r."siteId" = x.site_id);
        insert into site_security as x (node_id, site_id, level, paths, since)
          select distinct on (r."siteId") p_node, r."siteId", r.level, r.paths, p_now
            from jsonb_to_recordset(p_sites) as r("siteId" text, level smallint, paths jsonb)
            join site s on s.id = r."siteId" and s.cluster_id = p_cluster
           order by r."siteId"
          on conflict (node_id, site_id) do update set level = excluded.level, paths = excluded.paths
            where (x.level, x.paths) is distinct from (excluded.level, excluded.paths);
        -- Those that left normal here, and those that are back.
        select coalesce(array_agg(site), '{}') into v_above
          from unnest(v_above) as b(site)
          full join (select site_id from site_security where node_id = p_node and level > 0) as a(site) using (site)
         where a.site is null or b.site is null;
        perform cc_alerts(p_now, v_above, v_left);
      else
        perform cc_alerts(p_now, '{}', v_left);
      end if;
    end $$;

    -- The longest scan ban that a cluster's nodes can have made: a global unban ends all of theirs.
    alter table cluster add column longest_scan_ban_seconds integer not null default 0;
  `);
}
