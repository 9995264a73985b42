-- version 1
-- Makes the partition of request_log that holds a day (UTC) unless it is there, in 16 parts by site.
create or replace function log_day(p_day date) returns void
language plpgsql as $$
declare
  c_parts constant integer := 16;
  v_name text := 'request_log_' || to_char(p_day, 'YYYYMMDD');
begin
  if to_regclass(v_name) is not null then return; end if;
  perform pg_advisory_xact_lock(1398162185, hashtext('request_log'));
  -- A waiter sees here what the one before has committed; to_regclass remembers a name that it did not find.
  if exists (select from pg_class where relname = v_name and relnamespace = current_schema()::regnamespace) then
    return;
  end if;
  execute format('create table %I (like request_log including defaults including constraints) partition by hash (site_hash)',
    v_name);
  for v_part in 0 .. c_parts - 1 loop
    execute format('create table %I partition of %I for values with (modulus %s, remainder %s)',
      v_name || '_' || v_part, v_name, c_parts, v_part);
  end loop;
  execute format('alter table request_log attach partition %I for values from (%L) to (%L)', v_name,
    p_day::timestamp at time zone 'UTC', (p_day + 1)::timestamp at time zone 'UTC');
end $$;
