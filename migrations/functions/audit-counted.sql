-- version 1
-- After a statement that wrote or deleted entries: keeps the numbers of counted days true. `changed` are its rows.
create or replace function audit_counted() returns trigger
language plpgsql as $$
declare
  v_until timestamptz;
  v_sign integer := case tg_op when 'INSERT' then 1 else -1 end;
begin
  select until into v_until from counted_log where log = 'audit_entry';
  if v_until is null or not exists (select from changed where occurred_at < v_until) then return null; end if;
  -- In one order, so that two statements never wait for each other.
  insert into audit_day as d (day, action, target_type, actor_type, entries)
    select (occurred_at at time zone 'UTC')::date, action, coalesce(target_type, ''), actor_type, v_sign * count(*)
      from changed where occurred_at < v_until group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (day, action, target_type, actor_type) do update set entries = d.entries + excluded.entries;
  if tg_op = 'DELETE' then
    delete from audit_day where entries = 0
      and day between (select min(occurred_at at time zone 'UTC')::date from changed)
                  and (select max(occurred_at at time zone 'UTC')::date from changed);
  end if;
  return null;
end $$;
create or replace trigger audit_written after insert on audit_entry
  referencing new table as changed for each statement execute function audit_counted();
create or replace trigger audit_deleted after delete on audit_entry
  referencing old table as changed for each statement execute function audit_counted();
