-- version 3
-- Inserts a manual ban. An expired one of the address makes way; an automatic platform ban of the same addresses,
-- shared or not, is taken over: it is lifted in the feed's order before the new one is made. One that is locked is not
-- waited for, since whoever has it waits for the feed: it is being lifted, or its report sees this ban (ban_announce_merged).
-- Looks bans up as ban_check does, and for its reason.
create or replace function ban_insert(
  p_id text, p_site text, p_cluster text, p_cidr cidr, p_reason text, p_created_by jsonb,
  p_now timestamptz, p_expires timestamptz, out epoch bigint, out seq bigint)
language plpgsql
set enable_seqscan = off
as $$
declare
  taken record;
begin
  select n.epoch, n.seq into epoch, seq from ban_next() n;
  update ban set lifted_at = expires_at
   where source = 'manual' and coalesce(site_id, '') = coalesce(p_site, '') and cidr = p_cidr
     and coalesce(lifted_at, 'infinity') = 'infinity';
  if p_site is null then
    update ban b set lifted_at = p_now, seq = ban_insert.seq
     where b.id = (
       select a.id from ban a where a.source = 'auto' and a.scope = 'platform' and a.cidr = p_cidr
         and coalesce(a.lifted_at, 'infinity') = 'infinity'
         for update skip locked)
     returning b.id, b.expires_at into taken;
    if found then
      perform ban_record(array[seq], array[taken.id], array[''], array[taken.expires_at + interval '1 hour']);
      seq := nextval('ban_seq');
    end if;
  end if;
  insert into ban (id, scope, site_id, cluster_id, cidr, reason, source, created_by, created_at, expires_at, seq)
  values (p_id, case when p_site is null then 'platform' else 'site' end, p_site, p_cluster, p_cidr, p_reason,
    'manual', p_created_by, p_now, p_expires, seq);
  perform ban_record(array[seq], array[p_id], array[coalesce(p_cluster, '')], array[p_expires + interval '1 hour']);
end $$;
