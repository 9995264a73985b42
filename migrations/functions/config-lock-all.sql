-- version 4
-- Takes the head lock, then reads what a publication compares with: in that order, because only a statement that
-- starts after the lock is had sees what the holder before committed.
-- The arrays run in parallel: the bucket, kind and id of each name. p_ends: owners all of whose live entries are answered,
-- too, as ended.
-- While a canary runs it answers the same of what the canary has over the stable entries, where an entry without a hash is
-- one that the canary removes; and while a change could be one of a canary, what the stable entries were compiled from.
-- Looks entries up one by one, whatever the statistics say: joined with a list of names, which the planner takes for 100
-- long, it read all entries of a cluster of 5,000 (1.6 ms under the lock instead of 0.1), and with the statistics of an
-- empty table all of them for each name.
create or replace function config_lock_all(
  p_cluster text, p_buckets smallint[], p_kinds text[], p_ids text[], p_ends text[]
) returns jsonb
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  head cluster_head;
  rollout cluster_rollout;
  entries jsonb;
  overlay jsonb;
  buckets smallint[];
begin
  select * into head from cluster_head where cluster_id = p_cluster for no key update;
  if not found then
    insert into cluster_head (cluster_id, epoch)
      select p_cluster, s.epoch from console_state s for share
      on conflict do nothing;
    select * into head from cluster_head where cluster_id = p_cluster for no key update;
  end if;
  -- A new history that began while the cluster was being created did not see its head.
  update cluster_head h set epoch = s.epoch
    from console_state s where h.cluster_id = p_cluster and h.epoch <> s.epoch
    returning h.* into head;
  if not found then
    select * into head from cluster_head where cluster_id = p_cluster;
  end if;
  select * into rollout from cluster_rollout where cluster_id = p_cluster;
  select coalesce(jsonb_agg(jsonb_build_object(
      'kind', e.kind, 'id', e.resource_id, 'bucket', e.bucket, 'hash', encode(e.blob_hash, 'hex'),
      'features', to_jsonb(e.features), 'compilerVersion', e.compiler_version, 'ended', e.ended, 'settings',
      case when rollout.enabled or rollout.undo_direct or head.canary_revision is not null then
        (select s.settings::jsonb from config_settings s where s.hash = e.settings_hash) end)), '[]') into entries
    from (
      select l.*, false as ended from unnest(p_buckets, p_kinds, p_ids) as key(bucket, kind, id)
        cross join lateral (
          select * from config_entry where cluster_id = p_cluster and track = 'S' and bucket = key.bucket
            and kind = key.kind and resource_id = key.id and to_revision is null limit 1) l
      union all
      select l.*, true from unnest(p_ends) as ends(owner)
        cross join lateral (
          select * from config_entry where owner = ends.owner and cluster_id = p_cluster and track = 'S'
            and to_revision is null) l) e;
  if head.canary_revision is not null then
    select coalesce(jsonb_agg(jsonb_build_object(
        'kind', e.kind, 'id', e.resource_id, 'bucket', e.bucket, 'hash', encode(e.blob_hash, 'hex'),
        'features', to_jsonb(e.features), 'compilerVersion', e.compiler_version, 'ended', e.ended)), '[]') into overlay
      from (
        select l.*, false as ended from unnest(p_buckets, p_kinds, p_ids) as key(bucket, kind, id)
          cross join lateral (
            select * from config_entry where cluster_id = p_cluster and track = 'C' and bucket = key.bucket
              and kind = key.kind and resource_id = key.id and to_revision is null limit 1) l
        union all
        select l.*, true from unnest(p_ends) as ends(owner)
          cross join lateral (
            select * from config_entry where owner = ends.owner and cluster_id = p_cluster and track = 'C'
              and to_revision is null) l) e;
  end if;
  buckets := case when cardinality(p_ends) = 0 then p_buckets else p_buckets || array(
    select (e->>'bucket')::smallint from jsonb_array_elements(entries || coalesce(overlay, '[]')) e) end;
  return jsonb_build_object(
    'epoch', head.epoch::text,
    'revision', head.revision::text,
    'numberFloor', head.number_floor::text,
    'setHash', encode(head.set_hash, 'hex'),
    'entryCount', head.entry_count,
    'entries', entries,
    'buckets', (
      select coalesce(jsonb_object_agg(b.bucket, encode(b.sum, 'hex')), '{}')
      from config_bucket b where b.cluster_id = p_cluster and b.track = 'S' and b.bucket = any(buckets)),
    'tries', coalesce(rollout.enabled, false),
    'undoes', coalesce(rollout.undo_direct, false),
    'promoting', rollout.promoting,
    'canary', case when head.canary_revision is not null then jsonb_build_object(
      'revision', head.canary_revision::text,
      'setHash', encode(head.canary_set_hash, 'hex'),
      'entryCount', head.canary_entry_count,
      'entries', overlay,
      'buckets', (
        select coalesce(jsonb_object_agg(b.bucket, encode(b.sum, 'hex')), '{}')
        from config_bucket b where b.cluster_id = p_cluster and b.track = 'C' and b.bucket = any(buckets))) end);
end $$;
