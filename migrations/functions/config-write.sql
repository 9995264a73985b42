-- version 1
-- Writes a publication whose differences were found under config_lock_all: what changes of the stable entries and of what
-- a canary has over them, the heads that follow, and the revision.
-- p_heads: `stable` { setHash, entryCount } when the stable entries move, `canary` { setHash, entryCount } while one runs
-- afterwards, `ends` when one ends: all that it had over the stable entries is closed.
-- p_entries runs in parallel with p_hashes and p_bodies. Without a hash the entry is removed from its track; of track C
-- with `removes`, it is removed from what the canary runs. An entry has an owner, and settings (canonical JSON as text) with
-- their hash; one of before comes by its hashes alone: blob and settings are there.
-- p_sums: { track, bucket, sum }, p_features: { track, feature, count }, those of C as differences to S.
-- Sites that nodes serve are counted as they come and go.
-- A blob in use within the hour is left alone: ON CONFLICT would lock it, and clusters publishing the same platform
-- object would wait for each other. The foreign key takes FOR KEY SHARE on each, which the sweep skips.
-- Looks entries up one by one, whatever the statistics say: joined with a list of names, which the planner takes for 100
-- long, it read all entries of a cluster of 5,000 (1.6 ms under the lock instead of 0.1), and with the statistics of an
-- empty table all of them for each name.
-- With p_audit it records the change as well (audit_record), in the same round trip: whatever is done under a cluster's
-- head lock is waited for by its next change.
create or replace function config_write(
  p_cluster text, p_number bigint, p_heads jsonb, p_note jsonb,
  p_entries jsonb, p_hashes bytea[], p_bodies bytea[], p_sums jsonb, p_features jsonb,
  p_hints text[], p_audit jsonb
) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_entry record;
  v_head cluster_head;
  v_now timestamptz := clock_timestamp();
  v_sites bigint := 0;
  v_moved bigint;
  v_ends boolean := coalesce((p_heads->>'ends')::boolean, false);
  v_stable jsonb := p_heads->'stable';
  v_canary jsonb := p_heads->'canary';
begin
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

  if v_ends then
    update config_entry set to_revision = p_number where cluster_id = p_cluster and track = 'C' and to_revision is null;
    delete from config_bucket where cluster_id = p_cluster and track = 'C';
    delete from config_feature where cluster_id = p_cluster and track = 'C';
  end if;

  for v_entry in
    select * from jsonb_to_recordset(p_entries) as new(track text, bucket smallint, kind text, id text)
  loop
    update config_entry set to_revision = p_number
      where cluster_id = p_cluster and track = v_entry.track and bucket = v_entry.bucket and kind = v_entry.kind
        and resource_id = v_entry.id and to_revision is null
      returning -(track = 'S' and kind = 'site' and not 'state:disabled' = any(refs))::int into v_moved;
    v_sites := v_sites + coalesce(v_moved, 0);
  end loop;

  with added as (
    insert into config_entry (cluster_id, track, kind, resource_id, bucket, from_revision, blob_hash, features, refs,
        compiler_version, source, owner, settings_hash)
      select p_cluster, new.track, new.kind, new.id, new.bucket, p_number, new.hash, new.features, new.refs,
        new."compilerVersion", p_note->>'source', new.owner, decode(new."settingsHash", 'hex')
      from rows from (
        jsonb_to_recordset(p_entries) as (track text, kind text, id text, bucket smallint, features text[], refs text[],
          "compilerVersion" integer, owner text, "settingsHash" text, removes boolean),
        unnest(p_hashes)
      ) as new(track, kind, id, bucket, features, refs, "compilerVersion", owner, "settingsHash", removes, hash)
      where new.hash is not null or new.removes
      returning track, kind, refs
  )
  select count(*) into v_moved from added where track = 'S' and kind = 'site' and not 'state:disabled' = any(refs);
  v_sites := v_sites + v_moved;

  insert into config_bucket as b (cluster_id, track, bucket, sum)
    select p_cluster, new.track, new.bucket, decode(new.sum, 'hex')
      from jsonb_to_recordset(p_sums) as new(track text, bucket smallint, sum text)
    on conflict (cluster_id, track, bucket) do update set sum = excluded.sum;

  insert into config_feature as f (cluster_id, track, feature, count)
    select p_cluster, new.track, new.feature, new.count
      from jsonb_to_recordset(p_features) as new(track text, feature text, count bigint)
    on conflict (cluster_id, track, feature) do update set count = f.count + excluded.count;
  delete from config_feature f
    using jsonb_to_recordset(p_features) as new(track text, feature text)
    where f.cluster_id = p_cluster and f.track = new.track and f.feature = new.feature
      and (f.count = 0 or f.track = 'S' and f.count < 0);

  update cluster_head set
      revision = case when v_stable is null then revision else p_number end,
      set_hash = coalesce(decode(v_stable->>'setHash', 'hex'), set_hash),
      entry_count = coalesce((v_stable->>'entryCount')::bigint, entry_count),
      published_at = case when v_stable is null then published_at else v_now end,
      site_count = site_count + v_sites,
      canary_revision = case when v_canary is null then null else p_number end,
      canary_set_hash = decode(v_canary->>'setHash', 'hex'),
      canary_entry_count = (v_canary->>'entryCount')::bigint
    where cluster_id = p_cluster returning * into v_head;

  insert into config_revision (cluster_id, epoch, number, reason, params, actor, set_hash, entry_count, canary_set_hash,
      canary_entry_count, stable, site_count, changed, created_at)
    select p_cluster, v_head.epoch, p_number, p_note->>'reason', p_note->'params', p_note->'actor', v_head.set_hash,
      v_head.entry_count, v_head.canary_set_hash, v_head.canary_entry_count, v_stable is not null, v_head.site_count,
      coalesce(jsonb_agg(jsonb_build_object('kind', c.kind, 'id', c.id)), '[]'), v_now
    from (select e.kind, e.id
            from rows from (jsonb_to_recordset(p_entries) as (kind text, id text)) with ordinality as e(kind, id, place)
           group by e.kind, e.id order by min(e.place) limit 100) as c;

  insert into outbox (topic, key)
    select topic, p_cluster from (values ('config', v_stable is not null), ('canary', v_canary is not null)) t(topic, moved)
     where moved;
  if p_audit is not null then perform audit_record(p_hints, p_audit); end if;
end $$;
