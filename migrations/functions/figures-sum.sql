-- version 1
-- Counts by key: those of p_one, and those of p_other so many times. A key without a count is left out; null has none.
create or replace function figures_sum(p_one jsonb, p_other jsonb, p_times integer) returns jsonb
language sql immutable parallel safe as $$
  select case when p_other is null then p_one else (
    select jsonb_object_agg(key, n) from (
      select key, sum(n) as n from (
        select key, value::numeric as n from jsonb_each_text(p_one)
        union all
        select key, value::numeric * p_times from jsonb_each_text(p_other)) both_of
       group by key having sum(n) <> 0) sums) end
$$;
