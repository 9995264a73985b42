-- version 1
-- Makes the partition of a table that holds p_days days from p_start (UTC) unless it is there. Attaching one lets writers
-- of others go on.
create or replace function range_partition(p_table text, p_start date, p_days integer) returns void
language plpgsql as $$
declare
  v_name text := p_table || '_' || to_char(p_start, 'YYYYMMDD');
begin
  if to_regclass(v_name) is not null then return; end if;
  perform pg_advisory_xact_lock(1398162185, hashtext(p_table));
  -- A waiter sees here what the one before has committed; to_regclass remembers a name that it did not find.
  if exists (select from pg_class where relname = v_name and relnamespace = current_schema()::regnamespace) then
    return;
  end if;
  execute format('create table %I (like %I including defaults including constraints)', v_name, p_table);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', p_table, v_name,
    p_start::timestamp at time zone 'UTC', (p_start + p_days)::timestamp at time zone 'UTC');
end $$;
