-- version 2
-- Makes the partition of a day unless it is there. Attaching one lets writers of others go on.
create or replace function security_event_partition(p_day date) returns void
language plpgsql as $$
declare
  v_name text := 'security_event_' || to_char(p_day, 'YYYYMMDD');
begin
  if to_regclass(v_name) is not null then return; end if;
  perform pg_advisory_xact_lock(1398162182, 1);
  -- Who waited sees here what the one before has committed; a name that was looked up and not found is remembered.
  if exists (select from pg_class where relname = v_name and relnamespace = current_schema()::regnamespace) then
    return;
  end if;
  execute format('create table %I (like security_event including defaults including constraints)', v_name);
  execute format('alter table security_event attach partition %I for values from (%L) to (%L)', v_name,
    p_day::timestamp at time zone 'UTC', (p_day + 1)::timestamp at time zone 'UTC');
end $$;
