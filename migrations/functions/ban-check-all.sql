-- version 1
-- ban_check for each of several addresses, in the order given, which is the same everywhere. Only one group of the
-- console is under way at a time, which bounds how many creates are. Without patience the group gives up soon when
-- one of its addresses has to wait, because all of its members would.
create or replace function ban_check_all(p_sites text[], p_cidrs cidr[], p_now timestamptz, p_patient boolean)
returns setof jsonb
language plpgsql as $$
begin
  if cardinality(p_cidrs) > 1 then
    perform pg_advisory_xact_lock(1398162181, 3);
  end if;
  if not p_patient then
    perform set_config('lock_timeout', '100ms', true);
  end if;
  for i in 1 .. cardinality(p_cidrs) loop
    return next ban_check(p_sites[i], p_cidrs[i], p_now);
  end loop;
  perform set_config('lock_timeout', '2s', true);
end $$;
