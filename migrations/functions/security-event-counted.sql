-- version 1
-- After a statement that wrote events: keeps the numbers of counted days true. `changed` are its rows.
create or replace function security_event_counted() returns trigger
language plpgsql as $$
declare
  v_until timestamptz;
begin
  select until into v_until from counted_log where log = 'security_event';
  if v_until is null or not exists (select from changed where occurred_at < v_until) then return null; end if;
  -- In one order, so that two statements never wait for each other.
  insert into security_event_day as d (site_id, day, kind, events)
    select site_id, (occurred_at at time zone 'UTC')::date, kind, count(*)
      from changed where occurred_at < v_until group by 1, 2, 3 order by 1, 2, 3
    on conflict (site_id, day, kind) do update set events = d.events + excluded.events;
  return null;
end $$;
create or replace trigger security_event_written after insert on security_event
  referencing new table as changed for each statement execute function security_event_counted();
