-- version 1
-- Adds what new events told of heavy addresses and paths to the minutes of their sites; 32 of each are kept a minute.
-- p_events: [{ siteId, occurredAt, topIps, topPaths }]. Sites one after the other, in one order.
create or replace function security_heavy_add(p_now timestamptz, p_events jsonb) returns void
language plpgsql as $$
declare
  v_site text;
begin
  for v_site in select distinct e."siteId" from jsonb_to_recordset(p_events) as e("siteId" text) order by 1 loop
    perform pg_advisory_xact_lock(hashtextextended(v_site, 1398162183));
    with told as (
      select k.kind, date_trunc('minute', e."occurredAt") as minute, h.value, sum(h.count)::bigint as count
        from jsonb_to_recordset(p_events) as e("siteId" text, "occurredAt" timestamptz, "topIps" jsonb, "topPaths" jsonb)
        cross join lateral (values ('address', e."topIps"), ('path', e."topPaths")) k(kind, top)
        cross join lateral jsonb_to_recordset(k.top) as h(value text, count bigint)
       where e."siteId" = v_site and e."occurredAt" > p_now - interval '168 hours'
       group by 1, 2, 3
    ), known as (
      select h.kind, h.minute, h.value, h.count from security_heavy h
        join (select distinct kind, minute from told) t using (kind, minute) where h.site_id = v_site
    ), ranked as (
      select kind, minute, value, coalesce(told.count, 0) + coalesce(known.count, 0) as count, known.value is null as fresh,
          told.value is not null as moved, row_number() over (partition by kind, minute
            order by coalesce(told.count, 0) + coalesce(known.count, 0) desc, value) as place
        from told full join known using (kind, minute, value)
    ), dropped as (
      delete from security_heavy h using ranked r where not r.fresh and r.place > 32
        and h.site_id = v_site and h.kind = r.kind and h.minute = r.minute and h.value = r.value
    )
    insert into security_heavy (site_id, kind, minute, value, count)
      select v_site, kind, minute, value, count from ranked where moved and place <= 32
      on conflict (site_id, kind, minute, value) do update set count = excluded.count;
  end loop;
end $$;
