-- version 5
-- A node's report: new events of its cluster's sites, and (p_sites not null) everything that is above normal there.
create or replace function security_report(
  p_node text, p_cluster text, p_now timestamptz, p_events jsonb, p_sites jsonb, p_dropped bigint
) returns void
language plpgsql as $$
declare
  v_day date;
  v_left text[];
  v_heavy jsonb;
  -- Sites above normal at the node before; then those where that changed.
  v_above text[];
begin
  perform 1 from node where id = p_node for key share;
  if not found then return; end if;
  -- An event of a foreign site, or one that is too old to be kept, must not make a partition.
  select coalesce(jsonb_agg(e), '[]') into p_events from jsonb_array_elements(p_events) as e
    join site s on s.id = e ->> 'siteId' and s.cluster_id = p_cluster
   where (e ->> 'occurredAt')::timestamptz >= p_now - make_interval(days => coalesce(
     (select (value ->> 'eventRetentionDays')::integer from setting where key = 'protection'), 30));
  -- Reports of one node wait for each other here.
  insert into node_security as s (node_id, reported_at, dropped) values (p_node, p_now, p_dropped)
    on conflict (node_id) do update set dropped = excluded.dropped, reported_at = excluded.reported_at;
  for v_day in
    select distinct (e."occurredAt" at time zone 'UTC')::date from jsonb_to_recordset(p_events) e("occurredAt" timestamptz)
  loop
    perform range_partition('security_event', v_day, 1);
  end loop;
  with incoming as (
    select distinct on (e.id) e.* from jsonb_to_recordset(p_events) as e(
        id text, "siteId" text, "occurredAt" timestamptz, kind text, level smallint, "previousLevel" smallint,
        path text, address text, metric text, observed double precision, threshold double precision,
        "topIps" jsonb, "topPaths" jsonb, waf jsonb)
     order by e.id
  ), fresh as (
    insert into security_event_seen (node_id, event_id, seen_at) select p_node, id, p_now from incoming
      on conflict do nothing returning event_id
  ), stored as (
    insert into security_event (occurred_at, node_id, site_id, kind, level, previous_level, path, address, metric,
        observed, threshold, top_ips, top_paths, waf)
      select "occurredAt", p_node, "siteId", kind, level, "previousLevel", path, address, metric, observed,
        threshold, "topIps", "topPaths", waf
      from incoming join fresh on event_id = incoming.id
      returning site_id, kind, level, previous_level, occurred_at, top_ips, top_paths
  )
  select coalesce(array_agg(distinct site_id) filter (
        where kind = 'site_level' and previous_level = 0 and level > 0), '{}'),
      coalesce(jsonb_agg(jsonb_build_object('siteId', site_id, 'occurredAt', occurred_at, 'topIps', top_ips,
        'topPaths', top_paths)) filter (where top_ips <> '[]' or top_paths <> '[]'), '[]')
    into v_left, v_heavy from stored;
  perform security_heavy_add(p_now, v_heavy);
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
