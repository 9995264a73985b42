-- version 4
-- As consoles of the release before write a publication, which know no canary: while one runs they are refused.
-- Writes a publication whose differences were found under config_lock. Arrays of one group run in parallel;
-- a null hash removes the entry. An entry of p_entries may have an owner, and settings (canonical JSON as text) with their
-- hash; consoles of the release before give neither. An entry of before comes by its hashes alone: blob and settings
-- are there.
-- Sites that nodes serve are counted as they come and go.
-- A blob in use within the hour is left alone: ON CONFLICT would lock it, and clusters publishing the same platform
-- object would wait for each other. The foreign key takes FOR KEY SHARE on each, which the sweep skips.
-- Looks entries up one by one, whatever the statistics say: joined with a list of names, which the planner takes for 100
-- long, it read all entries of a cluster of 5,000 (1.6 ms under the lock instead of 0.1), and with the statistics of an
-- empty table all of them for each name.
create or replace function config_publish(
  p_cluster text, p_number bigint, p_set_hash bytea, p_entry_count bigint,
  p_reason text, p_params jsonb, p_actor jsonb, p_source text,
  p_entries jsonb, p_hashes bytea[], p_bodies bytea[],
  p_buckets smallint[], p_sums bytea[],
  p_features text[], p_counts bigint[]
) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_entry record;
  v_epoch bigint;
  v_now timestamptz := clock_timestamp();
  v_sites bigint := 0;
  v_moved bigint;
begin
  if exists (select from cluster_head where cluster_id = p_cluster and canary_revision is not null) then
    raise exception 'a canary runs' using errcode = 'lock_not_available';
  end if;
  insert into config_blob (hash, body)
    select distinct on (new.hash) new.hash, new.body
    from unnest(p_hashes, p_bodies) as new(hash, body)
    where new.body is not null and not exists (
      select from config_blob b where b.hash = new.hash and b.touched_at >= v_now - interval '1 hour')
    order by new.hash
    on conflict (hash) do update set touched_at = v_now
      where config_blob.touched_at < v_now - interval '1 hour';

  insert into config_settings (hash, settings)
    select distinct on (new.hash) new.hash, new.settings
    from (select decode(e."settingsHash", 'hex') as hash, e.settings
          from jsonb_to_recordset(p_entries) as e("settingsHash" text, settings text)
          where e."settingsHash" is not null and e.settings is not null) new
    where not exists (
      select from config_settings s where s.hash = new.hash and s.touched_at >= v_now - interval '1 hour')
    order by new.hash
    on conflict (hash) do update set touched_at = v_now
      where config_settings.touched_at < v_now - interval '1 hour';

  for v_entry in
    select * from jsonb_to_recordset(p_entries) as new(bucket smallint, kind text, id text)
  loop
    update config_entry set to_revision = p_number
      where cluster_id = p_cluster and track = 'S' and bucket = v_entry.bucket and kind = v_entry.kind
        and resource_id = v_entry.id and to_revision is null
      returning -(kind = 'site' and not 'state:disabled' = any(refs))::int into v_moved;
    v_sites := v_sites + coalesce(v_moved, 0);
  end loop;

  with added as (
    insert into config_entry (cluster_id, track, kind, resource_id, bucket, from_revision, blob_hash, features, refs,
        compiler_version, source, owner, settings_hash)
      select p_cluster, 'S', new.kind, new.id, new.bucket, p_number, new.hash, new.features, new.refs,
        new."compilerVersion", p_source, new.owner, decode(new."settingsHash", 'hex')
      from rows from (
        jsonb_to_recordset(p_entries) as (kind text, id text, bucket smallint, features text[], refs text[],
          "compilerVersion" integer, owner text, "settingsHash" text),
        unnest(p_hashes)
      ) as new(kind, id, bucket, features, refs, "compilerVersion", owner, "settingsHash", hash)
      where new.hash is not null
      returning kind, refs
  )
  select count(*) into v_moved from added where kind = 'site' and not 'state:disabled' = any(refs);
  v_sites := v_sites + v_moved;

  insert into config_bucket as b (cluster_id, track, bucket, sum)
    select p_cluster, 'S', new.bucket, new.sum from unnest(p_buckets, p_sums) as new(bucket, sum)
    on conflict (cluster_id, track, bucket) do update set sum = excluded.sum;

  insert into config_feature as f (cluster_id, track, feature, count)
    select p_cluster, 'S', new.feature, new.count from unnest(p_features, p_counts) as new(feature, count)
    on conflict (cluster_id, track, feature) do update set count = f.count + excluded.count;
  delete from config_feature
    where cluster_id = p_cluster and track = 'S' and feature = any(p_features) and count <= 0;

  update cluster_head
    set revision = p_number, set_hash = p_set_hash, entry_count = p_entry_count, published_at = v_now,
      site_count = site_count + v_sites
    where cluster_id = p_cluster returning epoch, site_count into v_epoch, v_sites;

  insert into config_revision (cluster_id, epoch, number, reason, params, actor, set_hash, entry_count, site_count,
      changed, created_at)
    select p_cluster, v_epoch, p_number, p_reason, p_params, p_actor, p_set_hash, p_entry_count, v_sites,
      coalesce(jsonb_agg(jsonb_build_object('kind', c.value->'kind', 'id', c.value->'id')), '[]'), v_now
    from (select value from jsonb_array_elements(p_entries) limit 100) as c;

  insert into outbox (topic, key) values ('config', p_cluster);
end $$;
