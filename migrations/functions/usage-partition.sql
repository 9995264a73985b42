-- version 2
-- Makes the partition of the week that begins with the day unless it is there. Attaching one lets writers of others go on.
create or replace function usage_partition(p_table text, p_week date) returns void
language plpgsql as $$
declare
  v_name text := p_table || '_' || to_char(p_week, 'YYYYMMDD');
begin
  if to_regclass(v_name) is not null then return; end if;
  perform pg_advisory_xact_lock(1398162180, 3);
  -- Who waited sees here what the one before has committed; a name that was looked up and not found is remembered.
  if exists (select from pg_class where relname = v_name and relnamespace = current_schema()::regnamespace) then
    return;
  end if;
  execute format('create table %I (like %I including defaults including constraints)', v_name, p_table);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', p_table, v_name,
    p_week::timestamp at time zone 'UTC', (p_week + 7)::timestamp at time zone 'UTC');
end $$;
