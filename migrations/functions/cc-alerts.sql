-- version 1
-- The condition cc_mitigation of the sites: above normal on an online node, or (p_left) reported to have left it.
create or replace function cc_alerts(p_now timestamptz, p_sites text[], p_left text[]) returns void
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
