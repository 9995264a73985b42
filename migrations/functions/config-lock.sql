-- version 2
-- As consoles of the release before call config_lock_all.
create or replace function config_lock(p_cluster text, p_buckets smallint[], p_kinds text[], p_ids text[]) returns jsonb
language sql as $$
  select config_lock_all(p_cluster, p_buckets, p_kinds, p_ids, '{}')
$$;
